//! Hardships of an index beside cuts and faults of its chip, and their names.

/// Conditions that make a run or a swarm harder. All are off by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hardships {
    /// Torn pages are unstable: each read of one may find something else.
    pub unstable: bool,
    /// Runs buffer changes in a write buffer of a page, and a flush acknowledges them.
    ///
    /// Swarms choose a write buffer themselves.
    pub buffered: bool,
    /// Every opening has other options, as far as they are not stored on the medium.
    pub changed: bool,
    /// The chip is formatted over the index now and then.
    pub formats: bool,
    /// The device gives operations up, and the same index continues.
    ///
    /// In runs the first cut is such an error.
    pub errors: bool,
    /// Half of the chips of a swarm have small pages: nodes have few records, and trees become
    /// high.
    ///
    /// With checkpoints half of these have many blocks, so that a checkpoint takes several. Runs,
    /// which need checkpoints then, have a chip with small pages, most of whose blocks are bad: a
    /// checkpoint takes two blocks. Swarms over an FTL keep their chips.
    pub narrow: bool,
    /// Runs keep values in the journal, if the system has one.
    ///
    /// Swarms choose that themselves.
    pub journal_values: bool,
    /// The chip of runs can program a part of a page again, like NOR flash.
    ///
    /// So a journal programs its changes one by one. Swarms draw from all chips, of which some can.
    pub overwrite: bool,
}

impl Hardships {
    /// None of them.
    pub const NONE: Self = Self {
        unstable: false,
        buffered: false,
        changed: false,
        formats: false,
        errors: false,
        narrow: false,
        journal_values: false,
        overwrite: false,
    };

    /// All of them, on a chip that programs each page at once.
    pub const ALL: Self = Self {
        unstable: true,
        buffered: true,
        changed: true,
        formats: true,
        errors: true,
        narrow: true,
        journal_values: true,
        overwrite: false,
    };

    /// Whether there is any.
    pub fn any(self) -> bool {
        self != Self::NONE
    }

    /// The names of those that are on, each after a blank, as in a case's name.
    pub(super) fn words(self) -> String {
        let Self {
            unstable,
            buffered,
            changed,
            formats,
            errors,
            narrow,
            journal_values,
            overwrite,
        } = self;
        [
            ("unstable", unstable),
            ("buffered", buffered),
            ("changed", changed),
            ("formats", formats),
            ("errors", errors),
            ("narrow", narrow),
            ("journal-values", journal_values),
            ("overwrite", overwrite),
        ]
        .into_iter()
        .filter(|&(_, on)| on)
        .map(|(word, _)| format!(" {word}"))
        .collect()
    }

    /// The hardships in `words`, each once and in the order of [`words`](Self::words).
    pub(super) fn of_words(words: &str) -> Option<Self> {
        let mut all = Self::NONE;
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            match word {
                "unstable" => all.unstable = true,
                "buffered" => all.buffered = true,
                "changed" => all.changed = true,
                "formats" => all.formats = true,
                "errors" => all.errors = true,
                "narrow" => all.narrow = true,
                "journal-values" => all.journal_values = true,
                "overwrite" => all.overwrite = true,
                _ => return None,
            }
        }
        (all.words() == words).then_some(all)
    }
}
