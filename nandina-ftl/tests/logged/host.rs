//! A host that knows what each logical page must read as, in a vector.

use nandina::flash::profile::Profile;
use nandina_ftl::LogicalPages;
use nandina_ftl::ftl::FtlError;
use nandina_ftl::logged::{LogMerges, Logged, Scheme, logical_pages_max, ram_needed};
use nandina_sim::{Chip, ChipError};

use crate::cutting::{Open, Subject, UseOf};
use crate::numbers::Numbers;

pub use crate::cutting::Outcome;

pub type Device<'b> = Logged<'b, &'b mut Chip>;

/// The RAM of an FTL, and merges over all of its sessions.
pub struct Memory {
    ram: Vec<u8>,
    scheme: Scheme,
    pub logical_pages: u32,
    pub merges: LogMerges,
}

impl Memory {
    /// For the most logical pages that the chip has room for.
    pub fn new(profile: &Profile, scheme: Scheme) -> Self {
        let logical_pages = logical_pages_max(&profile.geometry, &profile.capabilities, scheme);
        assert!(logical_pages > 0, "{scheme:?}");
        let ram = vec![0xA5; ram_needed(&profile.geometry, logical_pages)];
        Self { ram, scheme, logical_pages, merges: LogMerges::default() }
    }

    /// Calls `work` with an FTL on the chip, formatted or opened.
    pub fn with<T>(
        &mut self,
        chip: &mut Chip,
        is_new: bool,
        work: impl FnOnce(&mut Device<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let make = if is_new { Logged::format } else { Logged::open };
        let mut ftl = make(chip, self.scheme, self.logical_pages, &mut self.ram)?;
        let done = work(&mut ftl);
        let LogMerges { blocks, divisions, records } = ftl.merges();
        self.merges.blocks += blocks;
        self.merges.divisions += divisions;
        self.merges.records += records;
        done
    }
}

/// An FTL that is open, and its host.
struct Opened<'d, 'b>(&'d mut Device<'b>, &'d mut Host);

impl Open for Opened<'_, '_> {
    fn ftl(&mut self) -> &mut dyn LogicalPages<Error = FtlError<ChipError>> {
        self.0
    }

    fn change(&mut self, numbers: &mut Numbers) -> Outcome<()> {
        self.1.change(self.0, numbers)
    }

    fn write(&mut self, logical: u32, content: u32) -> Outcome<()> {
        let page = content.to_le_bytes().into_iter().cycle().take(self.0.page_bytes()).collect();
        self.1.make(self.0, Change::Write(logical, page))
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
        Host::new(self.logical_pages)
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
}

/// A change of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Write(u32, Vec<u8>),
    /// A logical page, and how many from it on.
    Trim(u32, u32),
}

impl Change {
    /// What a page holds after the change, if the change concerns it.
    fn of(&self, logical: u32) -> Option<Option<&Vec<u8>>> {
        match self {
            Self::Write(written, content) if *written == logical => Some(Some(content)),
            Self::Trim(start, count) if (*start..start + count).contains(&logical) => Some(None),
            _ => None,
        }
    }
}

/// What the host knows.
#[derive(Clone)]
pub struct Host {
    pub pages: Vec<Option<Vec<u8>>>,
    /// The change that was begun and did not return.
    pub pending: Option<Change>,
    written: u32,
}

impl Host {
    pub fn new(logical_pages: u32) -> Self {
        Self { pages: vec![None; logical_pages as usize], pending: None, written: 0 }
    }

    /// Makes a random change: mostly a few bytes of a page, now and then all of it, or a trim.
    pub fn change(&mut self, ftl: &mut Device<'_>, numbers: &mut Numbers) -> Outcome<()> {
        let pages = self.pages.len() as u32;
        let mut logical = numbers.below(pages);
        // Every other change goes to an eighth of the pages.
        if numbers.below(2) == 0 {
            logical /= 8;
        }
        self.written += 1;
        let bytes = ftl.page_bytes();
        let word = self.written.to_le_bytes();
        let whole = || word.into_iter().cycle().take(bytes).collect::<Vec<u8>>();
        let change = match (numbers.below(24), &self.pages[logical as usize]) {
            (0, _) => Change::Trim(logical, 1 + numbers.below(5).min(pages - logical - 1)),
            (1, Some(page)) => {
                let mut page = page.clone();
                let at = numbers.below(bytes as u32 - 8) as usize;
                page.drain(at..at + 8);
                page.extend([0; 8]);
                Change::Write(logical, page)
            }
            (2, _) | (_, None) => Change::Write(logical, whole()),
            (_, Some(page)) => {
                let mut page = page.clone();
                let at = numbers.below(bytes as u32 - 8) as usize;
                page.truncate(bytes - 8);
                page.splice(at..at, word.into_iter().chain(word));
                Change::Write(logical, page)
            }
        };
        self.make(ftl, change)
    }

    pub fn make(&mut self, ftl: &mut Device<'_>, change: Change) -> Outcome<()> {
        self.pending = Some(change.clone());
        match &change {
            Change::Write(logical, page) => ftl.write(*logical, page)?,
            Change::Trim(logical, count) => ftl.trim(*logical, *count)?,
        }
        self.pending = None;
        for (logical, page) in (0..).zip(&mut self.pages) {
            if let Some(new) = change.of(logical) {
                *page = new.cloned();
            }
        }
        Ok(())
    }

    /// Reads every page: each is as known, or as the pending change makes it.
    ///
    /// What is found is known from then on.
    pub fn verify(&mut self, ftl: &mut Device<'_>, what: &str) -> Outcome<()> {
        let mut bytes = vec![0; ftl.page_bytes()];
        let blank = vec![0xFF; bytes.len()];
        for (logical, known) in (0..).zip(&mut self.pages) {
            let is_there = ftl.read(logical, &mut bytes)?;
            assert!(is_there || bytes == blank, "{what}: page {logical}");
            let found = is_there.then_some(&bytes);
            let new = self.pending.as_ref().and_then(|change| change.of(logical));
            let is_new = new.is_some_and(|new| new == found);
            let is_known = known.as_ref() == found;
            let begin = |page: Option<&Vec<u8>>| page.map(|page| page[..8].to_vec());
            assert!(
                is_known || is_new,
                "{what}: page {logical} reads {:?}, {:?} or {:?}",
                begin(found),
                begin(known.as_ref()),
                new.map(begin)
            );
            *known = found.cloned();
        }
        self.pending = None;
        Ok(())
    }
}

/// Expects that an FTL is sound.
pub fn expect_sound(ftl: &mut Device<'_>, what: &str) -> Outcome<()> {
    assert_eq!(ftl.check()?, Ok(()), "{what}");
    Ok(())
}
