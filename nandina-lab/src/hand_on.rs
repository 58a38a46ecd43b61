//! Forwarding for devices that wrap another one and change only some operations.

/// Forwards methods of [`Flash`](nandina::flash::Flash) to a field.
///
/// `capabilities` also forwards what else the driver says of itself, and its checksums. The inner
/// device has the same error type. Use it in the wrapper's `impl Flash`.
///
/// ```
/// use nandina::flash::{BlockNumber, Flash, PageNumber, Reading};
/// use nandina_lab::hand_on;
/// use nandina_sim::{Chip, ChipError, TINY};
///
/// struct Erases {
///     chip: Chip,
///     count: u32,
/// }
///
/// impl Flash for Erases {
///     type Error = ChipError;
///
///     hand_on!(chip: geometry, capabilities, read, program, rewrite, overwrite, is_bad, mark_bad);
///
///     fn erase(&mut self, block: BlockNumber) -> Result<(), ChipError> {
///         self.count += 1;
///         self.chip.erase(block)
///     }
/// }
///
/// let mut device = Erases { chip: Chip::new(TINY), count: 0 };
/// device.erase(BlockNumber(1)).unwrap();
/// assert_eq!((device.count, device.chip.erase_count(BlockNumber(1))), (1, 1));
/// ```
#[macro_export]
macro_rules! hand_on {
    (@geometry $inner:tt) => {
        fn geometry(&self) -> ::nandina::flash::Geometry {
            self.$inner.geometry()
        }
    };
    (@capabilities $inner:tt) => {
        fn capabilities(&self) -> ::nandina::flash::Capabilities {
            self.$inner.capabilities()
        }

        fn reports_corrections(&self) -> bool {
            self.$inner.reports_corrections()
        }

        fn checksum(&mut self, pieces: &[&[u8]]) -> u32 {
            self.$inner.checksum(pieces)
        }
    };
    (@read $inner:tt) => {
        fn read(
            &mut self,
            page: ::nandina::flash::PageNumber,
            main: &mut [u8],
            spare: &mut [u8],
        ) -> Result<::nandina::flash::Reading, Self::Error> {
            self.$inner.read(page, main, spare)
        }

        fn read_part(
            &mut self,
            page: ::nandina::flash::PageNumber,
            part: ::core::ops::Range<usize>,
            main: &mut [u8],
        ) -> Result<::nandina::flash::Reading, Self::Error> {
            self.$inner.read_part(page, part, main)
        }
    };
    (@program $inner:tt) => {
        fn program(
            &mut self,
            page: ::nandina::flash::PageNumber,
            main: &[u8],
            spare: &[u8],
        ) -> Result<(), Self::Error> {
            self.$inner.program(page, main, spare)
        }
    };
    (@erase $inner:tt) => {
        fn erase(&mut self, block: ::nandina::flash::BlockNumber) -> Result<(), Self::Error> {
            self.$inner.erase(block)
        }
    };
    (@rewrite $inner:tt) => {
        fn rewrite(
            &mut self,
            page: ::nandina::flash::PageNumber,
            main: &[u8],
            spare: &[u8],
        ) -> Result<(), Self::Error> {
            self.$inner.rewrite(page, main, spare)
        }

        fn discard(&mut self, page: ::nandina::flash::PageNumber) -> Result<(), Self::Error> {
            self.$inner.discard(page)
        }

        fn idle(&mut self, budget: u32) -> Result<::nandina::flash::Upkeep, Self::Error> {
            self.$inner.idle(budget)
        }

        fn idle_least(&self) -> u32 {
            self.$inner.idle_least()
        }
    };
    (@overwrite $inner:tt) => {
        fn overwrite(
            &mut self,
            page: ::nandina::flash::PageNumber,
            offset: u32,
            bytes: &[u8],
        ) -> Result<(), Self::Error> {
            self.$inner.overwrite(page, offset, bytes)
        }
    };
    (@is_bad $inner:tt) => {
        fn is_bad(&mut self, block: ::nandina::flash::BlockNumber) -> Result<bool, Self::Error> {
            self.$inner.is_bad(block)
        }
    };
    (@mark_bad $inner:tt) => {
        fn mark_bad(&mut self, block: ::nandina::flash::BlockNumber) -> Result<(), Self::Error> {
            self.$inner.mark_bad(block)
        }
    };
    ($inner:tt: $($method:ident),+ $(,)?) => {
        $($crate::hand_on!(@$method $inner);)+
    };
}
