//! What is on a chip: the pages that can be read, whatever kind of FTL wrote them.

use nandina::flash::{Flash, PageNumber};
use nandina::log::layout_of;
use nandina::node::PageHeader;
use nandina_sim::Chip;

/// The pages of a chip that can be read, with their headers and bytes, by sequence number.
pub fn whole_pages(chip: &mut Chip) -> Vec<(PageNumber, PageHeader, Vec<u8>)> {
    let geometry = chip.profile().geometry;
    let (layout, mut found) = (layout_of(&geometry), Vec::new());
    for page in (0..geometry.pages()).map(PageNumber) {
        let mut frame = vec![0; layout.frame_bytes()];
        let (main, spare) = frame.split_at_mut(layout.page_bytes());
        chip.read(page, main, spare).unwrap();
        if let Ok(header) = layout.open(&frame) {
            found.push((page, header, frame));
        }
    }
    found.sort_by_key(|(_, header, _)| header.sequence);
    found
}
