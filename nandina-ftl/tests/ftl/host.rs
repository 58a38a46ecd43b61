//! A host that knows what each logical page must read as, in a vector.

use nandina::blocks::GcPolicy;
use nandina::flash::Flash;
use nandina::flash::profile::Profile;
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::{
    Choices, Ftl, FtlError, logical_pages_apart_beside, logical_pages_apart_max,
    logical_pages_beside, logical_pages_max, ram_needed_for, ram_needed_with, space_of,
};
use nandina_ftl::mapping::registry::by_name;
use nandina_ftl::mapping::{Mapping, Space};
use nandina_ftl::transit::Buffer;
use nandina_sim::{Chip, ChipError};

use crate::cutting::{Open, Subject, UseOf};
use crate::numbers::Numbers;

pub use crate::cutting::Outcome;

/// An FTL of the tests.
pub type Device<'a> = Ftl<'a, &'a mut Chip, &'a mut dyn Mapping>;

/// A change of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A logical page, and the number of its content.
    Write(u32, u32),
    /// A logical page, how many from it on, and the number of their content.
    Row(u32, u32, u32),
    /// The same, as a whole.
    Request(u32, u32, u32),
    /// A logical page, and how many from it on.
    Trim(u32, u32),
    /// The same, as a volatile trim.
    Volatile(u32, u32),
}

impl Change {
    /// What a page holds after the change, if the change concerns it.
    pub fn of(self, logical: u32) -> Option<Option<u32>> {
        match self {
            Self::Write(written, content) if written == logical => Some(Some(content)),
            Self::Row(start, count, content) | Self::Request(start, count, content)
                if (start..start + count).contains(&logical) =>
            {
                Some(Some(content))
            }
            Self::Trim(start, count) | Self::Volatile(start, count)
                if (start..start + count).contains(&logical) =>
            {
                Some(None)
            }
            _ => None,
        }
    }
}

/// The RAM of an FTL, and the memory of its mapping.
pub struct Memory {
    ram: Vec<u8>,
    map: Vec<u8>,
    pub name: &'static str,
    pub logical_pages: u32,
    /// How many pages garbage collection sorts at a time: with `page` none, with `compact` those of
    /// a block, else three.
    pub order: Vec<u32>,
    /// How blocks to collect are chosen: with `compact` by cost and benefit, with `emt` of three
    /// samples.
    pub victims: GcPolicy,
    /// The transit buffer before it.
    pub buffer: Buffer,
    /// Conversions over all sessions.
    pub conversions: u64,
    /// What hosts are to do with it ([`Host::requests`], [`Host::forgets_marks`]).
    pub requests: u32,
    pub forgets_marks: bool,
    /// One in so many changes comes after a checkpoint ([`Host::checkpoints`]).
    pub checkpoints: u32,
    /// Whether sessions end with [`Ftl::close`].
    pub closes: bool,
    /// Times that [`Subject::verify`] met a checkpoint.
    pub from_checkpoint: u32,
}

impl Memory {
    /// For the most logical pages that the chip has room for.
    pub fn new(profile: &Profile, name: &'static str) -> Self {
        let most = logical_pages_max(&profile.geometry, &profile.capabilities);
        Self::with_pages(profile, name, most)
    }

    /// For the most beside which pages that collection moves have a block of their own.
    pub fn apart(profile: &Profile, name: &'static str) -> Self {
        let most = logical_pages_apart_max(&profile.geometry, &profile.capabilities);
        assert!(most > 0, "a chip too small for two open blocks");
        Self::with_pages(profile, name, most)
    }

    /// One or the other.
    pub fn by(apart: bool, profile: &Profile, name: &'static str) -> Self {
        if apart { Self::apart(profile, name) } else { Self::new(profile, name) }
    }

    /// Behind a transit buffer, for the most logical pages, or those with two open blocks.
    pub fn behind(buffer: Buffer, apart: bool, profile: &Profile, name: &'static str) -> Self {
        let Profile { geometry, capabilities, .. } = profile;
        let most = if apart { logical_pages_apart_beside } else { logical_pages_beside };
        let logical_pages = most(geometry, capabilities, &buffer);
        assert!(logical_pages > 0, "a chip too small for {buffer:?}");
        let memory = Self::with_pages(profile, name, logical_pages);
        let choices = Choices { victims: memory.victims, buffer };
        let ram = vec![0; ram_needed_for(geometry, capabilities, &choices)];
        Self { ram, buffer, ..memory }
    }

    pub fn with_pages(profile: &Profile, name: &'static str, logical_pages: u32) -> Self {
        let space = space_of(&profile.geometry, &profile.capabilities, logical_pages);
        let entry = by_name(name).unwrap();
        let map = vec![0; (entry.memory)(space, logical_pages as usize + 8) + 256];
        let sorted = match name {
            "page" => 0,
            "compact" => profile.geometry.pages_per_block as usize,
            _ => 3,
        };
        let victims = match name {
            "compact" => GcPolicy::CostBenefit,
            "emt" => GcPolicy::Sampled(3),
            _ => GcPolicy::Fewest,
        };
        let (ram, order) = (vec![0; ram_needed_with(&profile.geometry, victims)], vec![0; sorted]);
        let checkpoints = if matches!(name, "compact" | "vet") { 8 } else { 0 };
        let (requests, forgets_marks) = (0, false);
        let closes = false;
        Self {
            ram,
            map,
            name,
            logical_pages,
            order,
            victims,
            buffer: Buffer::NONE,
            conversions: 0,
            requests,
            forgets_marks,
            checkpoints,
            closes,
            from_checkpoint: 0,
        }
    }

    /// Calls `work` with an FTL on the chip, formatted or opened.
    pub fn with<T>(
        &mut self,
        chip: &mut Chip,
        is_new: bool,
        work: impl FnOnce(&mut Device<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let profile = chip.profile();
        let space: Space = space_of(&profile.geometry, &profile.capabilities, self.logical_pages);
        let mut map = (by_name(self.name).unwrap().build)(space, &mut self.map)?;
        let make = if is_new { Ftl::format_with } else { Ftl::open_with };
        let map = &mut *map as &mut dyn Mapping;
        let choices = Choices { victims: self.victims, buffer: self.buffer };
        let mut ftl = make(chip, map, self.logical_pages, choices, &mut self.ram)?;
        ftl.sort_moves(&mut self.order);
        let done = work(&mut ftl);
        self.conversions += ftl.conversions().blocks;
        let done = done?;
        if self.closes {
            ftl.close()?;
        }
        Ok(done)
    }
}

/// An FTL that is open, and its host.
struct Opened<'d, 'a>(&'d mut Device<'a>, &'d mut Host);

impl Open for Opened<'_, '_> {
    fn ftl(&mut self) -> &mut dyn LogicalPages<Error = FtlError<ChipError>> {
        self.0
    }

    fn change(&mut self, numbers: &mut Numbers) -> Outcome<()> {
        self.1.change(self.0, numbers)
    }

    fn write(&mut self, logical: u32, content: u32) -> Outcome<()> {
        self.1.make(self.0, Change::Write(logical, content))
    }

    fn verify(&mut self, what: &str) -> Outcome<()> {
        self.1.verify(self.0, what)
    }

    fn expect_sound(&mut self, what: &str) -> Outcome<()> {
        expect_sound(self.0, what)
    }
}

impl Subject for Memory {
    type Host = Host;

    fn new_host(&self) -> Host {
        let mut host = Host::new(self.logical_pages);
        host.checkpoints = self.checkpoints;
        (host.requests, host.forgets_marks) = (self.requests, self.forgets_marks);
        host
    }

    fn with(
        &mut self,
        chip: &mut Chip,
        host: &mut Host,
        is_new: bool,
        work: &mut UseOf<'_>,
    ) -> Outcome<()> {
        Self::with(self, chip, is_new, |ftl| work(&mut Opened(ftl, host)))
    }

    fn session(
        &mut self,
        chip: &mut Chip,
        host: &mut Host,
        numbers: &mut Numbers,
        changes: u32,
    ) -> Outcome<()> {
        // Where sessions end, they are short.
        let (each, often) = if self.closes { (6, 4) } else { (changes, 16) };
        for from in (0..changes).step_by(each as usize) {
            Self::with(self, chip, false, |ftl| {
                for at in from..changes.min(from + each) {
                    host.change(ftl, numbers)?;
                    if at % often == often - 1 {
                        ftl.idle(20)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn verify(&mut self, chip: &mut Chip, host: &mut Host, what: &str) {
        let verified = Self::with(self, chip, false, |ftl| {
            host.verify(ftl, what)?;
            Ok(ftl.has_checkpoint())
        });
        let is_used = verified.unwrap_or_else(|error| panic!("{what}: {error}"));
        self.from_checkpoint += u32::from(is_used);
    }
}

/// What the host knows.
#[derive(Clone)]
pub struct Host {
    /// By logical page, the number of its content.
    pub pages: Vec<Option<u32>>,
    /// The change that was begun and did not return.
    pub pending: Option<Change>,
    /// By logical page that a volatile trim made a hole, its content before, and that trim's number.
    ///
    /// A mount may undo the trim, if nothing is known to have made it durable.
    volatile: Vec<Option<(u32, u32)>>,
    /// Volatile trims.
    trims: u32,
    /// Pages that the session had trimmed at the last look: a new session has trimmed fewer.
    seen: u64,
    written: u32,
    /// One in so many changes comes after a checkpoint of the mapping; 0 for none.
    pub checkpoints: u32,
    /// The most pages of a request that is written as a whole; 0 for none.
    pub requests: u32,
    /// Writes requests page by page: a canary.
    pub forgets_marks: bool,
}

/// The bytes of a content.
fn bytes_of(logical: u32, content: u32, bytes: usize) -> Vec<u8> {
    let word = (logical << 20 ^ content).to_le_bytes();
    word.into_iter().cycle().take(bytes).collect()
}

impl Host {
    pub fn new(logical_pages: u32) -> Self {
        Self {
            pages: vec![None; logical_pages as usize],
            pending: None,
            volatile: vec![None; logical_pages as usize],
            trims: 0,
            seen: 0,
            written: 0,
            checkpoints: 0,
            requests: 0,
            forgets_marks: false,
        }
    }

    /// Makes a random change: one in ten is a trim, and two of three trims are volatile.
    pub fn change<F: Flash, M: Mapping>(
        &mut self,
        ftl: &mut Ftl<'_, F, M>,
        numbers: &mut Numbers,
    ) -> Result<(), FtlError<F::Error>> {
        let (pages, logical) = (self.pages.len() as u32, numbers.below(self.pages.len() as u32));
        if self.checkpoints > 0 && numbers.below(self.checkpoints) == 0 {
            self.look(ftl)?;
            // If it fails, a mount follows.
            let seen = core::mem::replace(&mut self.seen, u64::MAX);
            ftl.checkpoint()?;
            self.seen = seen;
            self.volatile.fill(None);
        }
        let change = if numbers.below(10) == 0 {
            let count = 1 + numbers.below(12).min(pages - logical - 1);
            let is_durable = numbers.below(3) == 0;
            if is_durable { Change::Trim(logical, count) } else { Change::Volatile(logical, count) }
        } else {
            self.written += 1;
            // Every other write goes to an eighth of the pages.
            let logical = if numbers.below(2) == 0 { logical / 8 } else { logical };
            if self.requests > 0 && numbers.below(3) == 0 {
                let count = 1 + numbers.below(self.requests.min(pages - logical));
                Change::Request(logical, count, self.written)
            } else if numbers.below(6) == 0 {
                Change::Row(logical, 1 + numbers.below(12).min(pages - logical - 1), self.written)
            } else {
                Change::Write(logical, self.written)
            }
        };
        self.make(ftl, change)
    }

    pub fn make<F: Flash, M: Mapping>(
        &mut self,
        ftl: &mut Ftl<'_, F, M>,
        change: Change,
    ) -> Result<(), FtlError<F::Error>> {
        self.look(ftl)?;
        self.pending = Some(change);
        match change {
            Change::Write(logical, content) => {
                ftl.write(logical, &bytes_of(logical, content, ftl.page_bytes()))?;
            }
            Change::Row(start, count, content) => {
                let page = |logical| bytes_of(logical, content, ftl.page_bytes());
                let bytes: Vec<u8> = (start..start + count).flat_map(page).collect();
                ftl.write_pages(start, &bytes)?;
            }
            Change::Request(start, count, content) => {
                let page = |logical| bytes_of(logical, content, ftl.page_bytes());
                let bytes: Vec<u8> = (start..start + count).flat_map(page).collect();
                if self.forgets_marks {
                    ftl.write_pages(start, &bytes)?;
                } else {
                    ftl.write_pages_atomic(start, &bytes)?;
                }
            }
            Change::Trim(logical, count) => ftl.trim(logical, count)?,
            Change::Volatile(logical, count) => {
                self.trims += 1;
                ftl.trim_volatile(logical, count)?;
            }
        }
        self.pending = None;
        self.seen = ftl.statistics().host_trims;
        if matches!(change, Change::Request(..)) && !self.forgets_marks {
            self.volatile.fill(None);
        }
        for (logical, (page, volatile)) in (0..).zip(self.pages.iter_mut().zip(&mut self.volatile))
        {
            let Some(content) = change.of(logical) else { continue };
            let before = core::mem::replace(page, content);
            let trimmed = before.map(|before| (before, self.trims)).or(*volatile);
            *volatile = trimmed.filter(|_| matches!(change, Change::Volatile(..)));
        }
        Ok(())
    }

    /// Whether a mount may have undone volatile trims since the last look.
    fn may_have_lost<F: Flash, M: Mapping>(&self, ftl: &Ftl<'_, F, M>) -> bool {
        ftl.statistics().host_trims < self.seen || self.pending.is_some()
    }

    /// Finds out which volatile trims a mount has undone, if there was one.
    fn look<F: Flash, M: Mapping>(
        &mut self,
        ftl: &mut Ftl<'_, F, M>,
    ) -> Result<(), FtlError<F::Error>> {
        let is_known = self.volatile.iter().all(Option::is_none);
        if is_known || !self.may_have_lost(ftl) {
            return Ok(());
        }
        self.verify(ftl, "after a mount")
    }

    /// Reads every page: each is as known, or as the pending change makes it.
    ///
    /// After a mount it may be as before a volatile trim, if all those after it are undone as well.
    /// What is found is known from then on.
    pub fn verify<F: Flash, M: Mapping>(
        &mut self,
        ftl: &mut Ftl<'_, F, M>,
        what: &str,
    ) -> Result<(), FtlError<F::Error>> {
        let mut bytes = vec![0; ftl.page_bytes()];
        let (mut old, mut fresh) = (0, 0);
        let is_mounted = self.may_have_lost(ftl);
        // The first trim of which a page is back, and the last of which none is.
        let (mut undone, mut kept) = (u32::MAX, 0);
        for (logical, (known, volatile)) in (0..).zip(self.pages.iter_mut().zip(&mut self.volatile))
        {
            let is_there = ftl.read(logical, &mut bytes)?;
            let content = |content: u32| bytes_of(logical, content, bytes.len()) == bytes;
            let is = |page: &Option<u32>| match *page {
                Some(number) => is_there && content(number),
                None => !is_there && bytes.iter().all(|&byte| byte == 0xFF),
            };
            let new = self.pending.and_then(|change| change.of(logical));
            let before = volatile.filter(|_| is_mounted).map(|(content, _)| Some(content));
            let found = [Some(*known), before, new].into_iter().flatten().find(is);
            match *volatile {
                Some((_, trim)) if found == before => undone = undone.min(trim),
                Some((_, trim)) if found == Some(None) && new.is_none() => kept = kept.max(trim),
                _ => {}
            }
            if is_mounted {
                // What one mount finds, all later ones find.
                *volatile = None;
            }
            if new.is_some() {
                *(if found == new { &mut fresh } else { &mut old }) += 1;
            }
            *known = found.unwrap_or_else(|| {
                let expected = (*known, before, new);
                panic!("{what}: page {logical} reads {:?}, expected {expected:?}", &bytes[..4])
            });
        }
        assert!(kept < undone, "{what}: volatile trim {undone} is undone, and {kept} is not");
        let is_torn = matches!(self.pending, Some(Change::Request(..))) && old > 0 && fresh > 0;
        assert!(!is_torn, "{what}: {old} pages of the request are old, {fresh} are new");
        self.pending = None;
        self.seen = ftl.statistics().host_trims;
        Ok(())
    }
}

/// Expects that an FTL is sound.
pub fn expect_sound(ftl: &mut Device<'_>, what: &str) -> Outcome<()> {
    let found = ftl.check()?;
    assert_eq!(found, Ok(()), "{what}");
    Ok(())
}
