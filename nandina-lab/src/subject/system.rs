//! The systems of the registry as subjects.

use std::marker::PhantomData;

use nandina::store::Visitor;
use nandina::{
    Index, Inserted, OpenError, Options, ReadError, Removed, System, WriteError, ram_needed,
};
use nandina_sim::{Chip, ChipError};

use super::{Counts, Maker, Setup, Subject, SubjectError};
use crate::fit::lack;
use crate::layer::{Bus, FtlWork};
use crate::systems::visit_any;
use crate::{LabError, fit};

/// The system whose key is `key`, of the registry or a rival.
pub fn system(key: &str) -> Result<&'static dyn Maker, LabError> {
    visit_any(key, Find).ok_or_else(|| LabError::no_system(key))
}

struct Find;

impl Visitor for Find {
    type Output = &'static dyn Maker;

    fn visit<S: System + 'static>(self) -> Self::Output {
        &Indexes::<S>(PhantomData)
    }
}

/// Makes indexes of system `S`.
struct Indexes<S>(PhantomData<fn() -> S>);

impl<S: System> Indexes<S> {
    /// Returns the settings of an index.
    ///
    /// With a bound on RAM it uses as many page buffers as fit, or as many leaves if the system
    /// keeps a directory of them. An error is the reason why the
    /// system cannot run on the chip.
    fn options(setup: &Setup) -> Result<Options, String> {
        if let Some(missing) = S::DESCRIPTION.needs.missing(&setup.profile.capabilities) {
            return Err(lack(missing));
        }
        let Some(ram_bytes) = setup.ram_bytes else {
            return Ok(setup.options);
        };
        let with_buffers = |buffers| Options { page_buffers: Some(buffers), ..setup.options };
        let needed = |buffers| ram_needed::<S>(&setup.profile.geometry, &with_buffers(buffers));
        let least = S::DESCRIPTION.buffers_min;
        if S::DESCRIPTION.has_directory()
            && setup.options.leaves.is_none()
            && needed(least) > ram_bytes
        {
            let with_leaves = |leaves| Options { leaves: Some(leaves), ..with_buffers(least) };
            let fits = |leaves| {
                ram_needed::<S>(&setup.profile.geometry, &with_leaves(leaves)) <= ram_bytes
            };
            let (mut few, mut many) = (1, setup.profile.geometry.pages());
            while many - few > 1 {
                let middle = few + (many - few) / 2;
                if fits(middle) { few = middle } else { many = middle }
            }
            if few > 1 {
                return Ok(with_leaves(few));
            }
        }
        let buffers = (least..=16).rev().find(|&buffers| needed(buffers) <= ram_bytes);
        buffers.map(with_buffers).ok_or_else(|| {
            format!(
                "{ram_bytes} bytes of RAM are too few, it needs {} on {}: raise --ram or choose a chip \
                 with smaller pages",
                needed(least),
                setup.profile.key,
            )
        })
    }
}

impl<S: System + 'static> Maker for Indexes<S> {
    fn key(&self) -> &'static str {
        S::DESCRIPTION.key
    }

    fn ram_bytes(&self, setup: &Setup) -> Result<usize, String> {
        Ok(ram_needed::<S>(&setup.profile.geometry, &Self::options(setup)?))
    }

    fn refusal(&self, setup: &Setup, records: u32) -> Option<String> {
        match Self::options(setup) {
            Ok(options) => fit::refusal::<S>(&setup.profile, &options, records),
            Err(reason) => Some(reason),
        }
    }

    fn buffers_changes(&self, setup: &Setup) -> bool {
        setup.options.write_buffer > 0
    }

    fn format<'c>(
        &self,
        setup: &Setup,
        chip: &'c mut Chip,
        ram: &'c mut [u8],
    ) -> Result<Box<dyn Subject + 'c>, SubjectError> {
        let options = Self::options(setup).map_err(SubjectError::Unsuited)?;
        Ok(Box::new(Index::<_, S>::format(chip, &options, ram)?))
    }

    fn format_over<'c>(
        &self,
        setup: &Setup,
        disk: &'c mut (dyn Bus + 'c),
        ram: &'c mut [u8],
    ) -> Result<Box<dyn Subject + 'c>, SubjectError> {
        let options = Self::options(setup).map_err(SubjectError::Unsuited)?;
        Ok(Box::new(Index::<_, S>::format(disk, &options, ram)?))
    }
}

impl<B: Bus + ?Sized, S: System> Subject for Index<'_, &mut B, S> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Option<bool>, SubjectError> {
        Ok(match Index::insert(self, key, value)? {
            Inserted::New => Some(true),
            Inserted::Replaced => Some(false),
            _ => None,
        })
    }

    fn remove(&mut self, key: &[u8]) -> Result<Option<bool>, SubjectError> {
        Ok(match Index::remove(self, key)? {
            Removed::Found => Some(true),
            Removed::Absent => Some(false),
            _ => None,
        })
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, SubjectError> {
        Ok(Index::get(self, key)?)
    }

    fn scan(
        &mut self,
        from: &[u8],
        records: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), SubjectError> {
        let mut range = self.range(from..)?;
        for _ in 0..records {
            let Some((key, value)) = range.next()? else { break };
            each(key, value);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SubjectError> {
        Ok(Index::flush(self)?)
    }

    fn idle_step(&mut self) -> Result<(), SubjectError> {
        self.gc_step(self.gc_step_least())?;
        Ok(())
    }

    fn counts(&self) -> Counts {
        let statistics = self.statistics();
        Counts {
            height: Some(statistics.height),
            records: Some(statistics.records),
            valid_pages: Some(statistics.valid_pages),
            collected_blocks: Some(statistics.collected_blocks),
            moved_pages: Some(statistics.moved_pages),
            nodes: self.node_counters(),
        }
    }

    fn chip(&mut self) -> &Chip {
        self.flash().simulated()
    }

    fn ftl(&mut self) -> Option<FtlWork> {
        self.flash().ftl()
    }
}

impl From<OpenError<ChipError>> for SubjectError {
    fn from(error: OpenError<ChipError>) -> Self {
        match error {
            OpenError::Device(_) => Self::Failed(error.to_string()),
            OpenError::Unsuited(missing) => Self::Unsuited(lack(missing)),
            _ => Self::Unsuited(error.to_string()),
        }
    }
}

impl From<ReadError<ChipError>> for SubjectError {
    fn from(error: ReadError<ChipError>) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<WriteError<ChipError>> for SubjectError {
    fn from(error: WriteError<ChipError>) -> Self {
        match error {
            WriteError::Full { .. } => Self::Full(error.to_string()),
            WriteError::TooHigh { .. } => Self::TooHigh(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
