//! Which index a chip holds, read from its pages.
//!
//! So a medium can be opened without knowing its settings. Nothing is written, and no tree is
//! walked.

use crate::engine::{bounded, unusable};
use crate::error::OpenError;
use crate::flash::{Flash, Geometry};
use crate::log::END;
use crate::node::Medium;
use crate::space::{self, Any, Buffers, Space};

/// Reads for what the newest index on the chip was made.
///
/// Returns its system, its sizes, and the counts of the chip that it was
/// formatted on, which may be another chip than this one.
///
/// It is not certain that an index of these settings can be opened: the pages that it needs may be
/// damaged.
///
/// Cost: one read for each block; where its first pages are damaged, one for each page up to the
/// first that is not. `ram` has at least [`ram_to_identify`] bytes.
///
/// ```
/// use nandina::store::{Mu, key_of};
/// use nandina::{Index, Options, identify, ram_needed, ram_to_identify};
/// use nandina_sim::{Chip, TINY};
///
/// let mut chip = Chip::new(TINY);
/// let options = Options::new(4, 8);
/// let mut ram = vec![0; ram_needed::<Mu>(&TINY.geometry, &options)];
/// Index::<_, Mu>::format(&mut chip, &options, &mut ram).unwrap();
///
/// let mut ram = vec![0; ram_to_identify(&TINY.geometry)];
/// let medium = identify(&mut chip, &mut ram).unwrap();
/// assert_eq!((medium.key_bytes, medium.value_bytes), (4, 8));
/// assert_eq!(key_of(medium.system), Some("mu"));
/// ```
pub fn identify<F: Flash>(flash: F, ram: &mut [u8]) -> Result<Medium, OpenError<F::Error>> {
    let geometry = flash.geometry();
    if let Some(reason) = unusable(&geometry) {
        return Err(OpenError::BadOption { reason });
    }
    let (needed, given) = (ram_to_identify(&geometry), ram.len());
    if given < needed {
        return Err(OpenError::RamTooSmall { needed, given });
    }
    // The survey does not compare anything with the settings of the caller.
    let unknown = Medium {
        system: 0,
        key_bytes: 0,
        value_bytes: 0,
        blocks: 0,
        pages_per_block: 0,
        checkpoints: false,
        appended: false,
        replaced: false,
        atomic: false,
    };
    let mut space =
        Space::<_, Any>::new(flash, unknown, &Buffers::SINGLE, (0, 0), |_, _, _, _, _, _| {}, ram);
    Ok(*space.survey(END, None)?.expect(0)?.1)
}

/// Bytes of the buffer that [`identify`] needs on a chip of this geometry.
///
/// One page buffer, one bit for each page and five for each block, and four bytes. The buffer of
/// any index suffices too.
pub fn ram_to_identify(geometry: &Geometry) -> usize {
    let geometry = &bounded(geometry);
    space::ram_needed(geometry, &crate::log::layout_of(geometry), &Buffers::SINGLE)
}
