//! Options of one system: those that it has, and in constants only in their ranges.
//!
//! [`Options`] is one type for all systems, as programs need it that choose the system at run time;
//! an option that the chosen one lacks is an error when the index is opened. Firmware knows its
//! system: with [`OptionsFor`] it does not compile. Nothing is read or written here.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

use super::options::{CHECKPOINTS_MAX, PAGE_BUFFERS_MAX};
use super::{KEY_BYTES_MAX, Options, System};
use crate::blocks::{GcPolicy, WearPolicy};

/// Options of an index of system `S`.
///
/// Each function is one that `S` has: a call of another one is an error of the compiler, which says
/// what is missing. The ranges are those of [`Options`]; [`checked`](Self::checked) tests them, in
/// a constant also when it is compiled. Paper modes are set in [`Options`].
///
/// ```
/// use nandina::store::Vm;
/// use nandina::OptionsFor;
///
/// const OPTIONS: OptionsFor<Vm> =
///     OptionsFor::new(4, 8).mapping_bytes(512).checkpoints(4).checked();
/// assert_eq!(OPTIONS.mapping_bytes, 512);
/// ```
///
/// A B-tree has no table of mappings:
///
/// ```compile_fail
/// use nandina::store::BTree;
/// use nandina::OptionsFor;
///
/// const OPTIONS: OptionsFor<BTree> = OptionsFor::new(4, 8).mapping_bytes(512);
/// println!("{}", OPTIONS.mapping_bytes);
/// ```
///
/// And no index has keys of 65 bytes:
///
/// ```compile_fail
/// use nandina::store::Vm;
/// use nandina::OptionsFor;
///
/// const OPTIONS: OptionsFor<Vm> = OptionsFor::new(65, 8).checked();
/// println!("{}", OPTIONS.key_bytes);
/// ```
pub struct OptionsFor<S> {
    options: Options,
    system: PhantomData<fn() -> S>,
}

impl<S> Clone for OptionsFor<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for OptionsFor<S> {}

impl<S> fmt::Debug for OptionsFor<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(formatter)
    }
}

impl<S> Deref for OptionsFor<S> {
    type Target = Options;

    fn deref(&self) -> &Options {
        &self.options
    }
}

/// Options with which an index of system `S` can be opened.
pub trait Chosen<S> {
    /// The options, as every system has them.
    fn options(&self) -> &Options;
}

impl<S> Chosen<S> for Options {
    fn options(&self) -> &Options {
        self
    }
}

impl<S> Chosen<S> for OptionsFor<S> {
    fn options(&self) -> &Options {
        &self.options
    }
}

impl<S, C: Chosen<S> + ?Sized> Chosen<S> for &C {
    fn options(&self) -> &Options {
        (**self).options()
    }
}

/// Defines functions that set an option of the systems with a property.
macro_rules! options {
    ($($(#[$doc:meta])* $name:ident($($value:ident: $type:ty)?) if $has:expr, $missing:literal;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub const fn $name(mut self $(, $value: $type)?) -> Self {
                const { assert!($has, $missing) };
                self.options = self.options.$name($($value)?);
                self
            }
        )*
    };
}

impl<S: System> OptionsFor<S> {
    /// Settings for keys and values of these sizes in bytes, with all other defaults.
    pub const fn new(key_bytes: usize, value_bytes: usize) -> Self {
        Self { options: Options::new(key_bytes, value_bytes), system: PhantomData }
    }

    options! {
        /// Sets [`Options::page_buffers`].
        page_buffers(buffers: usize) if true, "";
        /// Sets [`Options::verify`].
        verify() if true, "";
        /// Sets [`Options::wear`].
        wear(wear: WearPolicy) if S::DESCRIPTION.collects(),
            "a system that replaces nodes in place spares no blocks";
        /// Sets [`Options::read_cache`].
        read_cache(pages: usize) if S::DESCRIPTION.has_read_cache(),
            "this system has no read cache, or the feature `read-cache` is off";
        /// Sets [`Options::write_cache`].
        write_cache(pages: usize) if S::DESCRIPTION.has_write_cache(),
            "only systems that write paths have a write cache";
        /// Sets [`Options::write_buffer`].
        write_buffer(pages: usize) if S::DESCRIPTION.has_write_buffer(),
            "this system has no write buffer, or the feature `write-buffer` is off";
        /// Sets [`Options::write_buffer_changes`].
        write_buffer_changes(changes: u32) if S::DESCRIPTION.has_write_buffer(),
            "this system has no write buffer, or the feature `write-buffer` is off";
        /// Sets [`Options::write_buffer_ticks`].
        write_buffer_ticks(ticks: u32) if S::DESCRIPTION.has_write_buffer(),
            "this system has no write buffer, or the feature `write-buffer` is off";
        /// Sets [`Options::checkpoints`].
        checkpoints(blocks: u32) if S::DESCRIPTION.has_checkpoints(),
            "this system has no checkpoints, or the feature `checkpoints` is off";
        /// Sets [`Options::mapping_bytes`].
        mapping_bytes(bytes: usize) if S::DESCRIPTION.has_mapping_table(),
            "this system has no table of mappings";
        /// Sets [`Options::leaves`].
        leaves(leaves: u32) if S::DESCRIPTION.has_directory(),
            "this system has no directory of leaves";
        /// Sets [`Options::fanout`].
        fanout(children: u16) if S::DESCRIPTION.has_arena(),
            "this system packs no nodes";
        /// Sets [`Options::arena_bytes`].
        arena_bytes(bytes: usize) if S::DESCRIPTION.has_arena(),
            "this system changes no nodes in RAM";
        /// Sets [`Options::journal_pages`].
        journal_pages(pages: u32) if S::DESCRIPTION.has_arena(),
            "this system has no journal";
        /// Sets [`Options::commit_step`].
        commit_step(pages: u32) if S::DESCRIPTION.has_arena(),
            "this system has no commits of many nodes";
        /// Sets [`Options::shrink_percent`].
        shrink_percent(percent: u8) if S::DESCRIPTION.has_arena(),
            "this system keeps no changed nodes in RAM";
        /// Sets [`Options::journal_values`].
        journal_values(in_journal: bool) if S::DESCRIPTION.has_arena(),
            "this system has no journal";
    }

    /// Chooses blocks to collect by cost and benefit; see [`GcPolicy::CostBenefit`].
    #[must_use]
    pub const fn cost_benefit(mut self) -> Self {
        const { assert!(S::DESCRIPTION.collects(), "this system collects no blocks") };
        self.options.victims = GcPolicy::CostBenefit;
        self
    }

    /// Checks the ranges that no chip changes.
    ///
    /// # Panics
    ///
    /// If a value is out of its range; in a constant that is an error of the compiler.
    #[must_use]
    pub const fn checked(self) -> Self {
        let Options { key_bytes, value_bytes, page_buffers, checkpoints, leaves, .. } =
            self.options;
        let is_key = key_bytes >= 1 && key_bytes <= KEY_BYTES_MAX;
        assert!(is_key, "keys have 1 to 64 bytes");
        assert!(value_bytes <= u16::MAX as usize, "values have at most 65535 bytes");
        if let Some(buffers) = page_buffers {
            let are_there = buffers >= S::DESCRIPTION.buffers_min && buffers <= PAGE_BUFFERS_MAX;
            assert!(are_there, "page buffers: what the system needs, to 16");
        }
        if let Some(blocks) = checkpoints {
            assert!(blocks >= 1 && blocks <= CHECKPOINTS_MAX, "checkpoints: 1 to 12 blocks apart");
            let is_circular = matches!(self.options.wear, Some(WearPolicy::Circular));
            assert!(!is_circular, "checkpoints are for blocks whose erases are counted");
        }
        let Options { read_cache, write_cache, write_buffer, .. } = self.options;
        let most = u16::MAX as usize;
        let fit = read_cache <= most && write_cache <= most && write_buffer <= most;
        assert!(fit, "caches and write buffers have at most 65535 pages");
        let Options { write_buffer_changes, write_buffer_ticks, .. } = self.options;
        let is_bound =
            !matches!(write_buffer_changes, Some(0)) && !matches!(write_buffer_ticks, Some(0));
        assert!(is_bound, "a bound of the write buffer is at least 1");
        assert!(
            self.options.mapping_bytes <= 1 << 24,
            "a table of mappings has at most 2^24 bytes"
        );
        assert!(!matches!(leaves, Some(0 | 1)), "a directory has at least 2 leaves");
        let Options { fanout, journal_pages, commit_step, shrink_percent, .. } = self.options;
        let is_share = matches!(shrink_percent, None | Some(1..=100));
        assert!(is_share, "a share of the clean nodes is 1 to 100 per cent");
        assert!(!matches!(fanout, Some(0..4)), "fanout is at least 4");
        assert!(!matches!(journal_pages, Some(0)), "a journal has at least one page");
        assert!(!matches!(commit_step, Some(0)), "a step of a commit has at least one page");
        self
    }
}
