//! Loss of power: when it happens, and what it leaves behind.
//!
//! A program that the chip reports as failed leaves its page in the same way.

use nandina::flash::PageNumber;
use rand::{Rng, RngCore};
use rand_chacha::ChaCha8Rng;

use crate::block::Block;
use crate::mix::{Extent, mix, mix_bits};

/// Where in an operation power fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Before the operation changes anything.
    Before,
    /// Inside: a torn page or a torn block. A read has no inside.
    Inside(Tear),
    /// After the operation is complete, before the caller learns of it.
    After,
}

impl Cut {
    /// Every kind of cut: trying all of them at an operation covers it.
    pub const ALL: [Self; 5] = [
        Self::Before,
        Self::Inside(Tear::Mixture),
        Self::Inside(Tear::Ones),
        Self::Inside(Tear::Unreadable),
        Self::After,
    ];
}

/// What a torn page, or each page of a torn block, looks like afterwards.
///
/// The bytes of a torn overwrite are a mixture under each of these, and the page stays readable
/// (rule 15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tear {
    /// A mixture of old and new bits by the seed.
    ///
    /// It has none, all, a prefix, a suffix, or single bits of the new ones.
    Mixture,
    /// All ones, as if erased; but it must be erased before it is programmed.
    Ones,
    /// More wrong bits than the ECC corrects.
    Unreadable,
}

/// Tears `page`, which was to become `new` (rule 6).
pub fn tear_program(
    block: &mut Block,
    page: PageNumber,
    new: &[u8],
    tear: Tear,
    random: &mut ChaCha8Rng,
) {
    let old = block.page_bytes_mut(page);
    match tear {
        Tear::Mixture => mix(old, new, random),
        Tear::Ones => old.fill(0xFF),
        Tear::Unreadable => {
            mix(old, new, random);
            block.damage_mut(page).unreadable = true;
        }
    }
}

/// Tears `page`, which was to be replaced by `new` (rule 14).
///
/// The page is left as it was, erased, or a mixture, since the chip erases it first and then writes
/// it.
pub fn tear_rewrite(
    block: &mut Block,
    page: PageNumber,
    new: &[u8],
    tear: Tear,
    random: &mut ChaCha8Rng,
) {
    if tear != Tear::Ones && random.random() {
        mix_ones(block.page_bytes_mut(page), random);
    } else {
        block.erase_page(page);
        let erased = block.page_bytes_mut(page);
        if tear != Tear::Ones {
            mix(erased, new, random);
        }
    }
    if tear == Tear::Unreadable {
        block.damage_mut(page).unreadable = true;
    }
}

/// Tears `old`, bytes of a page that were to become `new` (rule 15).
///
/// The result is a mixture, whatever `tear` is. The other tears select its extremes: no visible
/// change, and single bits.
pub fn tear_overwrite(old: &mut [u8], new: &[u8], tear: Tear, random: &mut ChaCha8Rng) {
    match tear {
        Tear::Mixture => mix(old, new, random),
        Tear::Ones => {}
        Tear::Unreadable => mix_bits(old, new, random),
    }
}

/// Damages `page`, which shares cells with a torn one (rule 13), or leaves it whole.
pub fn tear_partner(block: &mut Block, page: PageNumber, tear: Tear, random: &mut ChaCha8Rng) {
    if block.page_bytes(page).is_none() {
        return;
    }
    match tear {
        Tear::Mixture if random.random() => {
            for byte in block.page_bytes_mut(page) {
                *byte ^= random.next_u32() as u8 & random.next_u32() as u8;
            }
        }
        Tear::Unreadable => block.damage_mut(page).unreadable = true,
        Tear::Mixture | Tear::Ones => {}
    }
}

/// Leaves every page of `block` in an arbitrary state (rule 7).
pub fn tear_erase(block: &mut Block, pages: u32, tear: Tear, random: &mut ChaCha8Rng) {
    for page in (0..pages).map(PageNumber) {
        match tear {
            Tear::Ones => block.page_bytes_mut(page).fill(0xFF),
            Tear::Mixture => mix_ones(block.page_bytes_mut(page), random),
            Tear::Unreadable => {
                mix_ones(block.page_bytes_mut(page), random);
                block.damage_mut(page).unreadable = true;
            }
        }
    }
}

fn mix_ones(page: &mut [u8], random: &mut ChaCha8Rng) {
    match Extent::choose(random, page.len()) {
        Extent::Nothing => {}
        Extent::All => page.fill(0xFF),
        Extent::Prefix(bytes) => page[..bytes].fill(0xFF),
        Extent::Suffix(bytes) => {
            let start = page.len() - bytes;
            page[start..].fill(0xFF);
        }
        Extent::Bits if random.random() => random.fill_bytes(page),
        Extent::Bits => {
            for byte in page {
                *byte |= random.next_u32() as u8;
            }
        }
    }
}
