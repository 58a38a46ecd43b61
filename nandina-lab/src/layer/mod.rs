//! What lies between an index and its chip: an FTL, chosen by name.
//!
//! `ftl:page`, `ftl:compact` and the others of the list of mappings are an FTL with that mapping;
//! `ftl:block`, `ftl:bast` and `ftl:fast` are the hybrid FTLs; `ftl:ipl` and `ftl:dipl` keep log
//! records in the blocks of their pages. This is the only file of the lab that
//! knows them by name. Nothing here makes or uses a chip.

mod bus;
mod call_costs;
mod opened;

pub use bus::{Bus, FtlWork};
pub use call_costs::CallCosts;
pub use nandina_ftl::WriteCost;
pub use opened::{OnFtl, Pages, Room};

use std::fmt;

use nandina::blocks::GcPolicy;
use nandina::flash::{Geometry, Needs, Pairing, Profile};
use nandina_ftl::ftl::{self, Choices, DISK, Disk, logical_page_bytes, space_of};
use nandina_ftl::hybrid::{self, Bast, Block, Buffer, Fast, Policy, SequentialRule, Transit};
use nandina_ftl::logged::{self, Scheme};
use nandina_ftl::mapping::MAPPINGS;
use nandina_ftl::mapping::registry::{Entry, by_name};
use nandina_sim::Chip;

use crate::LabError;

/// How the name of every layer begins.
const PREFIX: &str = "ftl:";

/// What separates a system from the FTL below it, in names.
pub(crate) const OVER: &str = " over ";

// What separates an FTL from its parts in names, and these from one another.
const WITH: &str = " with ";
const AND: &str = " and ";

// What follows the number of log or of buffer blocks: of one, and of several.
const LOG_BLOCKS: [&str; 2] = [" log block", " log blocks"];
const BUFFER_BLOCKS: [&str; 2] = [" buffer block", " buffer blocks"];
const AS_PRINTED: &str = " as printed";

/// The name of a system above a layer: `btree`, or `btree over ftl:fast`.
pub fn name_of(system: &str, layer: Option<Layer>) -> String {
    over(system, layer.map(|layer| layer.name()).as_deref())
}

/// The same with the name of the layer.
pub(crate) fn over(system: &str, layer: Option<&str>) -> String {
    layer.map_or(system.into(), |layer| format!("{system}{OVER}{layer}"))
}

/// More runs than a change of a mapping needs besides those that it has.
const RUNS_OF_A_CHANGE: usize = 1000;

/// The hybrid FTLs: name, what it is, and whether it has log blocks.
pub const HYBRIDS: [(&str, &str, bool); 3] = [
    ("block", "a block map: a page that is replaced copies its block", false),
    ("bast", "log blocks that belong to one logical block each", true),
    ("fast", "log blocks for any page, and a sequential one", true),
];

/// The FTLs with log records in the blocks of their pages: name, and what it is.
pub const LOGGED: [(&str, &str, Scheme); 2] = [
    ("ipl", "log records in a sixteenth of each block (IPL)", Scheme::Ipl),
    ("dipl", "log records in the pages that a block has left (dIPL)", Scheme::Dipl),
];

/// An FTL and its settings.
#[derive(Clone, Copy)]
pub struct Layer {
    kind: Kind,
    /// Spare pages in per cent of the logical ones.
    over_provisioning: u32,
    log_blocks: u32,
    /// Whether its name says how many log blocks it has.
    names_log_blocks: bool,
    /// How garbage collection of an FTL with a mapping chooses a block.
    victims: GcPolicy,
    /// When FAST opens its sequential log block.
    sequential: SequentialRule,
    /// Buffer blocks before an FTL with a mapping or a hybrid one.
    transit: Option<TransitBuffer>,
}

/// The number before one of these words, if `name` is just that.
fn number_before(name: &str, words: [&str; 2]) -> Option<u32> {
    let number = words.iter().find_map(|word| name.strip_suffix(word))?;
    number.parse().ok().filter(|&number| number > 0)
}

/// A number with the word for one of them or for several.
fn counted(number: u32, [one, several]: [&str; 2]) -> String {
    format!("{number}{}", if number == 1 { one } else { several })
}

/// The transit buffer of the WPCB-tree before an FTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransitBuffer {
    /// Buffer blocks, 1 or more (*C* in the paper).
    pub blocks: u32,
    /// Whether it works as the paper has it, without the improvements of [`Buffer::improved`].
    pub as_printed: bool,
}

impl TransitBuffer {
    /// The buffer of a name such as `2 buffer blocks as printed`.
    fn named(name: &str) -> Option<Self> {
        let (name, as_printed) = match name.strip_suffix(AS_PRINTED) {
            Some(name) => (name, true),
            None => (name, false),
        };
        number_before(name, BUFFER_BLOCKS).map(|blocks| Self { blocks, as_printed })
    }
}

/// Which FTL.
#[derive(Clone, Copy)]
enum Kind {
    Mapped(&'static Entry),
    Block,
    Bast,
    Fast,
    Logged(Scheme),
}

/// Does `$does` with the policy of a hybrid FTL behind the buffer, `$mapped` with the entry of a
/// mapping, or `$logged` with the scheme of an FTL with logs.
macro_rules! with_kind {
    (
        $layer:expr, $buffer:expr, $entry:ident => $mapped:expr, $scheme:ident => $logged:expr,
        $policy:ident => $does:expr
    ) => {
        match $layer.kind {
            Kind::Mapped($entry) => $mapped,
            Kind::Logged($scheme) => $logged,
            Kind::Block => {
                let $policy = Transit { over: Block, buffer: $buffer };
                $does
            }
            Kind::Bast => {
                let over = Bast { log_blocks: $layer.log_blocks };
                let $policy = Transit { over, buffer: $buffer };
                $does
            }
            Kind::Fast => {
                let Layer { log_blocks, sequential, .. } = *$layer;
                let over = Fast { log_blocks, sequential };
                let $policy = Transit { over, buffer: $buffer };
                $does
            }
        }
    };
}
use with_kind;

impl Layer {
    /// Spare pages in per cent of the logical ones, if nothing else is set.
    pub const OVER_PROVISIONING: u32 = 7;

    /// Log blocks of a hybrid FTL that has any, if nothing else is set.
    pub const LOG_BLOCKS: u32 = 16;

    /// The layer of this name, with the default settings.
    ///
    /// A number of log blocks and a transit buffer may follow, as [`name`](Self::name) has them:
    /// `ftl:fast with 8 log blocks and 2 buffer blocks as printed`.
    pub fn named(name: &str) -> Result<Self, LabError> {
        if let Some((below, parts)) = name.split_once(WITH) {
            return parts.split(AND).try_fold(Self::named(below)?, |layer, part| {
                if let Some(log_blocks) = number_before(part, LOG_BLOCKS) {
                    let layer = layer.with_log_blocks(log_blocks)?;
                    return Ok(Self { names_log_blocks: true, ..layer });
                }
                let transit = TransitBuffer::named(part).ok_or_else(|| {
                    let form = "'ftl:fast with 8 log blocks and 2 buffer blocks'";
                    LabError(format!("an FTL has no '{part}': write it as in {form}"))
                })?;
                layer.with_transit(transit)
            });
        }
        let kind = name.strip_prefix(PREFIX).and_then(|kind| match kind {
            "block" => Some(Kind::Block),
            "bast" => Some(Kind::Bast),
            "fast" => Some(Kind::Fast),
            "ipl" => Some(Kind::Logged(Scheme::Ipl)),
            "dipl" => Some(Kind::Logged(Scheme::Dipl)),
            mapping => by_name(mapping).map(Kind::Mapped),
        });
        let kind = kind.ok_or_else(|| {
            let known = Self::names().join(", ");
            LabError(format!("there is no layer '{name}': choose from {known}"))
        })?;
        let (over_provisioning, log_blocks) = (Self::OVER_PROVISIONING, Self::LOG_BLOCKS);
        let (victims, sequential) = (GcPolicy::Fewest, SequentialRule::FirstPage);
        let (names_log_blocks, transit) = (false, None);
        Ok(Self {
            kind,
            over_provisioning,
            log_blocks,
            names_log_blocks,
            victims,
            sequential,
            transit,
        })
    }

    /// The name of every layer.
    pub fn names() -> Vec<String> {
        let mappings = MAPPINGS.iter().map(|entry| entry.name);
        let hybrids = HYBRIDS.iter().map(|(name, ..)| *name);
        let all = mappings.chain(hybrids).chain(LOGGED.iter().map(|(name, ..)| *name));
        all.map(|name| format!("{PREFIX}{name}")).collect()
    }

    /// The name.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Mapped(entry) => entry.name,
            Kind::Block => "block",
            Kind::Bast => "bast",
            Kind::Fast => "fast",
            Kind::Logged(Scheme::Ipl) => "ipl",
            Kind::Logged(Scheme::Dipl) => "dipl",
        };
        let log_blocks = self.names_log_blocks.then(|| counted(self.log_blocks, LOG_BLOCKS));
        let transit = self.transit.map(|TransitBuffer { blocks, as_printed }| {
            let how = if as_printed { AS_PRINTED } else { "" };
            format!("{}{how}", counted(blocks, BUFFER_BLOCKS))
        });
        let parts: Vec<_> = log_blocks.into_iter().chain(transit).collect();
        let with = if parts.is_empty() { "" } else { WITH };
        format!("{PREFIX}{kind}{with}{}", parts.join(AND))
    }

    /// Whether its name said how many log blocks it has.
    pub const fn names_log_blocks(&self) -> bool {
        self.names_log_blocks
    }

    /// The same layer with spare pages of so many per cent of the logical ones.
    pub const fn with_over_provisioning(self, per_cent: u32) -> Self {
        Self { over_provisioning: per_cent, ..self }
    }

    /// The same layer, whose garbage collection chooses blocks so; a hybrid FTL does not choose.
    pub const fn with_victims(self, victims: GcPolicy) -> Self {
        Self { victims, ..self }
    }

    /// The same layer with so many log blocks. Refuses those that have none, and too few.
    pub fn with_log_blocks(self, log_blocks: u32) -> Result<Self, LabError> {
        let least = match self.kind {
            Kind::Mapped(_) | Kind::Block | Kind::Logged(_) => {
                return Err(LabError(format!("{} has no log blocks", self.name())));
            }
            Kind::Bast => Bast::LOG_BLOCKS_MIN,
            Kind::Fast => Fast::LOG_BLOCKS_MIN,
        };
        if log_blocks < least {
            let name = self.name();
            return Err(LabError(format!("{name} needs {least} log blocks, not {log_blocks}")));
        }
        Ok(Self { log_blocks, ..self })
    }

    /// The same layer, where FAST opens its sequential log block by this rule.
    ///
    /// Default: at each write to the first page of a logical block.
    pub const fn with_sequential_rule(self, sequential: SequentialRule) -> Self {
        Self { sequential, ..self }
    }

    /// Whether it is a hybrid FTL, with maps of its own.
    pub const fn is_hybrid(&self) -> bool {
        matches!(self.kind, Kind::Block | Kind::Bast | Kind::Fast)
    }

    /// Whether it can have a transit buffer: FTLs with log records cannot.
    pub const fn takes_transit(&self) -> bool {
        !matches!(self.kind, Kind::Logged(_))
    }

    /// The same layer with a transit buffer. Refuses FTLs with log records.
    pub fn with_transit(self, transit: TransitBuffer) -> Result<Self, LabError> {
        if !self.takes_transit() {
            let name = self.name();
            return Err(LabError(format!(
                "{name} has no transit buffer: it keeps log records instead"
            )));
        }
        Ok(Self { transit: Some(transit), ..self })
    }

    /// The transit buffer; `None` where there is none.
    pub const fn transit(&self) -> Option<TransitBuffer> {
        self.transit
    }

    /// Blocks of the transit buffer; `None` where there is none.
    pub fn buffer_blocks(&self) -> Option<u32> {
        self.transit.map(|transit| transit.blocks)
    }

    /// The settings of the transit buffer before so many logical pages.
    pub(crate) const fn buffer(&self, logical_pages: u32, block_pages: u32) -> Buffer {
        match self.transit {
            None => Buffer::NONE,
            Some(TransitBuffer { blocks, as_printed: true }) => Buffer::as_printed(blocks),
            Some(TransitBuffer { blocks, as_printed: false }) => {
                Buffer::improved(blocks, logical_pages, block_pages)
            }
        }
    }

    /// How many log blocks there are; `None` where there are none.
    pub const fn log_blocks(&self) -> Option<u32> {
        match self.kind {
            Kind::Bast | Kind::Fast => Some(self.log_blocks),
            Kind::Mapped(_) | Kind::Block | Kind::Logged(_) => None,
        }
    }

    /// What the chip has to allow.
    fn needs(&self) -> Needs {
        match self.kind {
            Kind::Logged(_) => logged::NEEDS,
            _ => Needs::NOTHING,
        }
    }

    /// A chip like this one that can carry the FTL.
    ///
    /// One with log records takes four programs a page, which no two pages share, and has pages of
    /// 256 bytes or more in blocks of four or more.
    pub fn suited(&self, mut profile: Profile) -> Profile {
        if matches!(self.kind, Kind::Logged(_)) {
            let (geometry, capabilities) = (&mut profile.geometry, &mut profile.capabilities);
            geometry.page_bytes = geometry.page_bytes.max(256);
            geometry.pages_per_block = geometry.pages_per_block.max(4);
            capabilities.overwrite = true;
            capabilities.pairing = Pairing::None;
            capabilities.programs_per_page =
                capabilities.programs_per_page.map(|allowed| allowed.max(4));
        }
        profile
    }

    /// The fewest blocks of a chip like this one for so many logical pages; at least those of the
    /// over-provisioning.
    ///
    /// Returns `u32::MAX` if no number suffices.
    pub fn blocks_needed(&self, profile: &Profile, logical_pages: u32) -> u32 {
        let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
        let buffer = self.buffer(logical_pages, block_pages(profile));
        let needed = with_kind!(self, buffer,
            _entry => ftl::blocks_needed_beside(geometry, capabilities, &buffer, logical_pages),
            scheme => logged::blocks_needed(geometry, capabilities, scheme, logical_pages),
            policy => hybrid::blocks_needed(geometry, capabilities, &policy, logical_pages));
        let safe = block_pages(profile);
        let pages = u64::from(logical_pages) * u64::from(100 + self.over_provisioning);
        let spared = (pages / 100).div_ceil(safe.max(1).into());
        needed.max(u32::try_from(spared).unwrap_or(u32::MAX))
    }

    /// The most that the write of a page costs.
    ///
    /// `size` is what [`size`](Self::size) says.
    pub fn write_cost(&self, profile: &Profile, size: &Size) -> WriteCost {
        let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
        let logical_pages = size.logical_pages;
        let buffer = self.buffer(logical_pages, block_pages(profile));
        let choices = Choices { victims: self.victims, buffer };
        with_kind!(self, buffer,
            _entry => ftl::write_cost(geometry, capabilities, &choices, logical_pages),
            _scheme => logged::write_cost(geometry, capabilities),
            policy => hybrid::write_cost(geometry, capabilities, &policy, logical_pages))
    }

    /// What an index meets on this chip. The error is why there can be no such FTL on it.
    pub fn size(&self, profile: &Profile) -> Result<Size, String> {
        let name = self.name();
        if profile.capabilities.rewrite {
            return Err(format!("{} replaces pages in place: it needs no FTL", profile.key));
        }
        let needs = self.needs();
        if let Some(missing) = needs.missing(&profile.capabilities) {
            return Err(format!("{} cannot carry {name}: {missing}", profile.key));
        }
        let group = block_pages(profile);
        let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
        // The number of neighbours does not change how many blocks are needed.
        let buffer = self.buffer(0, group);
        let most = with_kind!(self, buffer,
            _entry => ftl::logical_pages_beside(geometry, capabilities, &buffer),
            scheme => logged::logical_pages_max(geometry, capabilities, scheme),
            policy => hybrid::logical_pages_max(geometry, capabilities, &policy));
        let safe_pages = u64::from(group) * u64::from(geometry.blocks);
        let spared = safe_pages * 100 / u64::from(100 + self.over_provisioning);
        let logical_pages = u64::from(most).min(spared) as u32;
        let logical_pages = logical_pages - logical_pages % group.max(1);
        if logical_pages == 0 {
            let logs = self
                .log_blocks()
                .map_or(String::new(), |count| format!(" with {count} log blocks"));
            let fewer = match (self.log_blocks(), self.buffer_blocks()) {
                (None, None) => "",
                (Some(_), None) => " or fewer log blocks",
                (None, Some(_)) => " or fewer buffer blocks",
                (Some(_), Some(_)) => " or fewer log or buffer blocks",
            };
            let blocks = self.blocks_needed(profile, group.max(1));
            return Err(format!(
                "{} has {} blocks, {name}{logs} needs {blocks} at least: choose a larger chip{fewer}",
                profile.key, geometry.blocks
            ));
        }
        Ok(self.sized(profile, logical_pages))
    }

    /// The same for so many logical pages, which the chip has room for.
    pub(crate) fn sized(&self, profile: &Profile, logical_pages: u32) -> Size {
        let (geometry, capabilities) = (&profile.geometry, &profile.capabilities);
        let page_bytes = logical_page_bytes(geometry);
        let seen =
            Disk::<Pages<'_, Chip>>::geometry_of(logical_pages, page_bytes, block_pages(profile));
        let buffer = self.buffer(logical_pages, block_pages(profile));
        let (ram_bytes, memory_bytes) = with_kind!(self, buffer,
            entry => {
                let space = space_of(geometry, capabilities, logical_pages);
                // Enough for any content, each page a run of its own, and for any change of it.
                let runs = logical_pages as usize + RUNS_OF_A_CHANGE;
                let choices = Choices { victims: self.victims, buffer };
                (ftl::ram_needed_for(geometry, capabilities, &choices), (entry.memory)(space, runs))
            },
            _scheme => (logged::ram_needed(geometry, logical_pages), 0),
            policy => (hybrid::ram_needed(geometry, capabilities, &policy, logical_pages), 0));
        let profile = Profile { geometry: seen, capabilities: DISK, ..*profile };
        Size { profile, logical_pages, ram_bytes, memory_bytes }
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Logical pages that make a block of the device: as many as a block of the chip has safe ones.
pub(crate) const fn block_pages(profile: &Profile) -> u32 {
    profile.capabilities.pairing.safe_pages(profile.geometry.pages_per_block)
}

/// What an index meets above an FTL, and what the FTL needs.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// The device as the index sees it; timing and the like are those of the chip.
    pub profile: Profile,
    /// Logical pages.
    pub logical_pages: u32,
    /// Bytes of RAM of the FTL, without the memory of a mapping.
    pub ram_bytes: usize,
    /// Bytes given to the mapping; 0 for hybrid FTLs, whose maps are in `ram_bytes`.
    pub memory_bytes: usize,
}

impl Size {
    /// Spare pages of this chip in per cent of the logical ones.
    pub fn over_provisioning(&self, chip: &Geometry) -> f64 {
        let safe = self.profile.geometry.pages_per_block;
        let physical = f64::from(safe) * f64::from(chip.blocks);
        100.0 * (physical / f64::from(self.logical_pages) - 1.0)
    }
}
