//! Settings of an index that several commands take.

use clap::Args;
use nandina::store::Description;
use nandina::{Eviction, GcPolicy, LivenessTracking, Options};
use nandina_lab::LabError;
use nandina_lab::systems::SYSTEMS;

use crate::values::{eviction, size, validity, victims};

#[derive(Args)]
pub struct Settings {
    /// Pages of the read cache, 0 to 65,535
    #[arg(long, default_value_t = 0, value_parser = size(0..=65_535))]
    read_cache: usize,
    /// Pages of the write cache, 0 to 65,535; changes are durable when it is flushed
    #[arg(long, default_value_t = 0, value_parser = size(0..=65_535))]
    write_cache: usize,
    /// Pages of the write buffer, in which changes wait to be applied leaf by leaf, 0 to 65,535;
    /// they are durable when it is flushed
    #[arg(long, value_name = "PAGES", default_value_t = 0, value_parser = size(0..=65_535))]
    write_buffer: usize,
    /// Changes after which the write buffer is flushed, 1 and more [default: when it is full]
    #[arg(long, value_name = "CHANGES", value_parser = clap::value_parser!(u32).range(1..))]
    write_buffer_changes: Option<u32>,
    /// Which changes a full write buffer writes: all, ibsf (the leaf of the oldest change) or mb
    /// (the leaf with the most changes), the rules of IBSF and MB-tree
    #[arg(long, default_value = "all", value_parser = eviction)]
    eviction: Eviction,
    /// Removals merge and rotate nodes that are less than half full, as in a textbook's B-tree
    #[arg(long)]
    rebalance: bool,
    /// How garbage collection chooses a block: fewest (valid pages), cost-benefit, sampled:N,
    /// the best of N that are drawn at random, or tracked:N, the μ-Tree paper's bounded bookkeeping
    /// of N blocks
    #[arg(long, default_value = "fewest", value_parser = victims)]
    victims: GcPolicy,
    /// How valid pages are tracked: marked (a bit for each page) or searched (a count for each
    /// block, and reads to find its pages)
    #[arg(long, default_value = "marked", value_parser = validity)]
    validity: LivenessTracking,
    /// Blocks from one checkpoint to the next, 1 to 12 [default: no checkpoints]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=12))]
    checkpoints: Option<u32>,
    #[command(flatten)]
    nodes: NodeSettings,
    /// Pages of the journal of tnc from one commit to the next [default: 128]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(1..))]
    journal_pages: Option<u32>,
    /// Pages of a commit of tnc that one change writes; more than it has: all at once [default: 4,
    /// or a thirty-second of the largest commit, and all at once if these are fewer than 16 steps]
    #[arg(long, value_name = "PAGES", value_parser = clap::value_parser!(u32).range(1..))]
    commit_step: Option<u32>,
    /// Clean nodes of tnc that leave RAM at once when it is full, after a commit, in per cent, 1 to
    /// 100, as in the TNC paper [default: the oldest leaves where a slot is needed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    shrink_percent: Option<u8>,
    /// Leaves that the directory of rosette has RAM for, whatever the keys [default: as many as the
    /// chip allows]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    leaves: Option<u32>,
}

/// Settings of the nodes of tnc; its medium states all but the first.
#[derive(Args, Clone, Copy)]
pub struct NodeSettings {
    /// Bytes of RAM for nodes of tnc, 11 nodes and more; those for more than 65,520 are not taken
    /// [default: 32 nodes]
    #[arg(long, value_name = "BYTES", value_parser = size(0..=1 << 32))]
    arena_bytes: Option<usize>,
    /// The most children of an inner node of tnc: nodes have room for that number, and are packed
    /// into pages by the bytes that they use [default: nodes have fixed places, with room for 32
    /// children or 4 records, or more where these fill the page]
    #[arg(long, value_name = "CHILDREN", value_parser = clap::value_parser!(u16).range(4..))]
    fanout: Option<u16>,
    /// Whether the values of tnc stay in the journal, where they were first written, and its tree
    /// has pointers [default: values of an eighth of a page and more]
    #[arg(long, value_name = "BOOL")]
    journal_values: Option<bool>,
}

impl NodeSettings {
    fn given(self) -> [Given; 3] {
        [
            ("--arena-bytes", self.arena_bytes.is_some(), |system| system.has_arena()),
            ("--fanout", self.fanout.is_some(), |system| system.has_arena()),
            ("--journal-values", self.journal_values.is_some(), |system| system.has_arena()),
        ]
    }

    /// Returns `options` with these settings, for an index of `system`.
    ///
    /// Refuses them where `system` does not have them.
    pub fn of(self, options: Options, system: &str) -> Result<Options, LabError> {
        refuse_foreign(&self.given(), &[system], "--system")?;
        Ok(self.set(options))
    }

    fn set(self, options: Options) -> Options {
        let Self { arena_bytes, fanout, journal_values } = self;
        Options { arena_bytes, fanout, journal_values, ..options }
    }
}

/// An option, whether it was given, and whether a system has it.
type Given = (&'static str, bool, fn(&Description) -> bool);

impl Settings {
    /// Returns `options` with these settings, for an index of one of `systems`.
    ///
    /// Refuses settings that none of them has: none is ignored. A system refuses by itself the
    /// caches and checkpoints that it lacks.
    pub fn of(&self, options: Options, systems: &[&str]) -> Result<Options, LabError> {
        if self.write_buffer_changes.is_some() && self.write_buffer == 0 {
            let what = "--write-buffer-changes is for a write buffer: add --write-buffer PAGES or leave it out";
            return Err(LabError(what.into()));
        }
        if self.eviction != Eviction::All && self.write_buffer == 0 {
            let what = "--eviction is for a write buffer: add --write-buffer PAGES or leave it out";
            return Err(LabError(what.into()));
        }
        let given: [Given; 7] = [
            ("--rebalance", self.rebalance, Description::has_rebalancing),
            ("--eviction", self.eviction != Eviction::All, Description::has_evictions),
            ("--victims", self.victims != GcPolicy::Fewest, Description::collects),
            ("--journal-pages", self.journal_pages.is_some(), |system| system.has_arena()),
            ("--commit-step", self.commit_step.is_some(), |system| system.has_arena()),
            ("--shrink-percent", self.shrink_percent.is_some(), |system| system.has_arena()),
            ("--leaves", self.leaves.is_some(), |system| system.has_directory()),
        ];
        refuse_foreign(&given, systems, "--systems")?;
        refuse_foreign(&self.nodes.given(), systems, "--systems")?;
        Ok(Options {
            read_cache: self.read_cache,
            write_cache: self.write_cache,
            write_buffer: self.write_buffer,
            write_buffer_changes: self.write_buffer_changes,
            eviction: self.eviction,
            rebalances: self.rebalance,
            victims: self.victims,
            validity: self.validity,
            checkpoints: self.checkpoints,
            journal_pages: self.journal_pages,
            commit_step: self.commit_step,
            shrink_percent: self.shrink_percent,
            leaves: self.leaves,
            ..self.nodes.set(options)
        })
    }
}

/// Refuses options that were given and that none of `systems` has; `choice` chooses systems.
fn refuse_foreign(given: &[Given], systems: &[&str], choice: &str) -> Result<(), LabError> {
    for (option, _, has) in given.iter().filter(|(_, is_given, _)| *is_given) {
        let having: Vec<_> =
            SYSTEMS.iter().filter(|system| has(system)).map(|system| system.key).collect();
        if !systems.iter().any(|system| having.contains(system)) {
            let having = having.join(", ");
            return Err(LabError(format!(
                "{option} is for {having}: choose such a system with {choice} or leave it out"
            )));
        }
    }
    Ok(())
}
