//! What RAM knows of the index beside directory and pool, and whether it is true.
//!
//! Nothing is read or written here.

use super::cells::Sector;
use crate::flash::PageNumber;

/// The counts of an index, and how far RAM can be trusted.
pub struct State {
    /// An operation is running or failed half way: RAM may differ from the chip.
    in_doubt: bool,
    /// The newest leaf could not be settled: nothing may be changed.
    unsettled: bool,
    /// The last session ended by a close: nothing is torn.
    ended: bool,
    /// The number of the session in the newest leaf.
    session: u32,
    /// The sector of the newest leaf, which has these bits.
    newest: Sector,
    /// The last sector that was seen with a leaf that was begun and not committed.
    begun: Option<Sector>,
    /// There was another one before.
    begun_before: bool,
    /// A mount saw pages of another index.
    foreign: bool,
    /// A page that a mount could not read, or that is no whole head of a leaf.
    damaged: Option<PageNumber>,
    /// Leaves that a mount saw, with those that own no keys.
    found: usize,
    identity: u32,
    /// The highest sequence number that was seen or given.
    sequence: u64,
    records: u32,
    /// Leaves written since the mount.
    written: u32,
    /// The most that any sector was erased, as far as it is known.
    erases: u32,
    collected: u32,
    /// Where the search for two leaves to merge continues.
    sparse: usize,
    /// The sector behind which the search for cold data continues.
    hand: Sector,
    /// Leaves written since the mount when the hand moved last.
    hand_moved: u32,
}

impl State {
    /// Before a mount.
    pub const UNKNOWN: Self = Self {
        in_doubt: true,
        unsettled: false,
        ended: false,
        session: 0,
        newest: 0,
        begun: None,
        begun_before: false,
        foreign: false,
        damaged: None,
        found: 0,
        identity: 0,
        sequence: 0,
        records: 0,
        written: 0,
        erases: 0,
        collected: 0,
        sparse: 0,
        hand: 0,
        hand_moved: 0,
    };

    pub const fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// From now on RAM may differ from the chip.
    pub const fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// RAM is as the chip is.
    pub const fn trust(&mut self) {
        self.in_doubt = false;
    }

    /// Whether the newest leaf could not be settled, so that nothing may be changed.
    pub const fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    /// Whether a mount could settle the newest leaf.
    pub const fn note_unsettled(&mut self, unsettled: bool) {
        self.unsettled = unsettled;
    }

    /// A mount found the newest leaf, the session in it, and whether that has ended.
    pub const fn begin(&mut self, newest: Sector, identity: u32, (session, ended): (u32, bool)) {
        self.newest = newest;
        self.identity = identity;
        self.session = session;
        self.ended = ended;
        self.written = 0;
        (self.hand, self.hand_moved) = (newest, 0);
    }

    /// Whether the last session ended by a close, and this one has written nothing.
    pub const fn is_ended(&self) -> bool {
        self.ended
    }

    /// The number of the session in the newest leaf.
    pub const fn session(&self) -> u32 {
        self.session
    }

    /// The next session has begun.
    pub const fn note_session(&mut self) {
        self.session += 1;
        self.ended = false;
    }

    /// The session has ended.
    pub const fn note_end(&mut self) {
        self.ended = true;
    }

    /// The sector of the newest leaf.
    pub const fn newest(&self) -> Sector {
        self.newest
    }

    /// A sector with a leaf that was begun and not committed.
    ///
    /// Also returns whether there were others. All of them are forgotten.
    pub const fn take_begun(&mut self) -> Option<(Sector, bool)> {
        let found = match self.begun {
            Some(sector) => Some((sector, self.begun_before)),
            None => None,
        };
        (self.begun, self.begun_before) = (None, false);
        found
    }

    /// A leaf was seen that was begun and not committed.
    pub const fn note_begun(&mut self, sector: Sector) {
        self.begun_before |= self.begun.is_some();
        self.begun = Some(sector);
    }

    /// Whether a mount saw pages of another index.
    pub const fn has_foreign(&self) -> bool {
        self.foreign
    }

    /// A mount saw pages of another index, or it begins and saw none.
    pub const fn note_foreign(&mut self, foreign: bool) {
        self.foreign = foreign;
    }

    /// A page that a mount could not read, or that is no whole head of a leaf.
    pub const fn damaged(&self) -> Option<PageNumber> {
        self.damaged
    }

    /// A mount saw such a page, or it begins and saw none.
    pub const fn note_damaged(&mut self, page: Option<PageNumber>) {
        self.damaged = page;
    }

    /// Leaves that a mount saw and that are not marked as replaced.
    pub const fn found(&self) -> usize {
        self.found
    }

    /// A mount saw this many leaves, or all others are marked as replaced.
    pub const fn note_found(&mut self, leaves: usize) {
        self.found = leaves;
    }

    pub const fn identity(&self) -> u32 {
        self.identity
    }

    /// A formatting begins, after this one.
    pub const fn set_identity(&mut self, identity: u32) {
        self.identity = identity;
    }

    /// A sequence number was seen.
    pub fn note_sequence(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
    }

    /// The next numbers are above all that a cut may have hidden.
    pub const fn leave_gap(&mut self, gap: u64) {
        self.sequence += gap;
    }

    /// Gives the next sequence number.
    pub const fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// A leaf was committed there. It is the newest, and has no ends.
    pub const fn note_leaf(&mut self, sector: Sector) {
        self.newest = sector;
        self.session = 0;
        self.ended = false;
        self.written = self.written.saturating_add(1);
    }

    /// Leaves written since the mount.
    pub const fn written(&self) -> u32 {
        self.written
    }

    pub const fn records(&self) -> u32 {
        self.records
    }

    /// There are this many records from now on.
    pub const fn set_records(&mut self, records: u32) {
        self.records = records;
    }

    /// The number of erases of a sector was seen.
    pub fn note_erases(&mut self, erases: u32) {
        self.erases = self.erases.max(erases);
    }

    /// The most erases that were seen.
    pub const fn erases(&self) -> u32 {
        self.erases
    }

    /// A sector was erased.
    pub const fn note_erase(&mut self) {
        self.collected = self.collected.saturating_add(1);
    }

    /// Sectors erased since the index was opened.
    pub const fn collected(&self) -> u32 {
        self.collected
    }

    /// Where the search for two leaves to merge continues.
    pub const fn sparse(&self) -> usize {
        self.sparse
    }

    /// The search for two leaves to merge ended here.
    pub const fn note_sparse(&mut self, rank: usize) {
        self.sparse = rank;
    }

    /// Whether a leaf was written since the hand moved last.
    pub const fn is_to_level(&self) -> bool {
        self.hand_moved != self.written
    }

    /// The next of all sectors that may have cold data.
    ///
    /// There is one for each leaf that was written.
    pub const fn next_to_level(&mut self, sectors: usize) -> Option<Sector> {
        if !self.is_to_level() {
            return None;
        }
        self.hand_moved = self.written;
        self.hand = ((self.hand as usize + 1) % sectors) as Sector;
        Some(self.hand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_that_were_begun_are_not_concealed() {
        let mut state = State::UNKNOWN;
        assert_eq!(state.take_begun(), None);
        state.note_begun(3);
        assert_eq!(state.take_begun(), Some((3, false)));
        for sector in [3, 5, 8] {
            state.note_begun(sector);
        }
        assert_eq!(state.take_begun(), Some((8, true)));
        assert_eq!(state.take_begun(), None);
    }
}
