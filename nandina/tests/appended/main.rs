//! Nodes whose records are appended to their page.
//!
//! After any upsert, removal, cut and read the node equals a map, no bit of a page rises, and no
//! bytes make it panic.

mod cases;
mod page;

use nandina::node::appended::{
    Change, NoNode, append_image, capacity, change, find, pack, removal, sealed, unpack,
};
use nandina::node::{Node, NodeMut, Shape};
use page::{FORMS, Model, Page, Step, act, begin, key, payload, records, shape, step};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Lets some bits of `old` fall to those of `new`.
///
/// These are all bytes up to one, all from one on, or any bits.
fn mix(old: &mut [u8], new: &[u8], mut seed: u64) {
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    let (kind, place) = (random() % 5, random() % (old.len() + 1));
    for (at, (old, new)) in old.iter_mut().zip(new).enumerate() {
        let mask = match kind {
            0 => 0xFF * u8::from(at < place),
            1 => 0xFF * u8::from(at >= place),
            // Nearly all bits.
            2 => (random() | random() | random() | random()) as u8,
            3 => (random() & random() & random()) as u8,
            _ => random() as u8,
        };
        *old = *old & !mask | new & mask;
    }
}

/// Cuts power while changes are appended to the page.
///
/// What is then read is checked and becomes the model.
fn tear(
    page: &mut Page,
    node: &mut Vec<u8>,
    shape: &Shape,
    told: &mut Model,
    seed: u64,
) -> Result<(), TestCaseError> {
    let (mut after, mut image) = (page.area.clone(), [0; 4096]);
    let mut possible = vec![told.clone()];
    match change(node, shape) {
        Change::Append { records: count } => {
            let full = records(node, shape);
            let (at, bytes) = append_image(node, shape, &mut image).unwrap();
            mix(&mut after[at..at + bytes], &image[..bytes], seed);
            // The new records in the order of their keys: any first ones of them.
            for slot in image[..bytes].chunks_exact(shape.record_bytes()) {
                let mut next = possible.last().unwrap().clone();
                let key = slot[..shape.key_bytes()].to_vec();
                next.insert(key.clone(), full[&key].clone());
                possible.push(next);
            }
            prop_assert_eq!(possible.len(), count + 1);
            prop_assert_eq!(possible.last().unwrap(), &full);
        }
        Change::Remove => {
            possible.push(records(node, shape));
            let (at, byte) = removal(node, shape).unwrap();
            mix(&mut after[at..=at], &[byte], seed);
        }
        // A new page is torn: the old one is unchanged.
        Change::Nothing | Change::Whole => {}
    }
    prop_assert_eq!(sealed(&after, shape).unwrap(), sealed(&page.area, shape).unwrap());
    page.area = after.clone();
    unpack(&mut after, shape).unwrap();
    let found = records(&after, shape);
    prop_assert!(possible.contains(&found), "{:?} is none of {:?}", found, possible);
    (*node, *told) = (after, found);
    Ok(())
}

/// A lookup in a page finds what a lookup in its node in RAM finds.
fn found_as_in_ram(area: &[u8], shape: &Shape) -> Result<(), TestCaseError> {
    let mut unpacked = area.to_vec();
    unpack(&mut unpacked, shape).unwrap();
    let node = Node::parse(&unpacked, *shape).unwrap();
    let record = |bytes: &[u8]| bytes[..shape.key_bytes() + shape.payload_bytes()].to_vec();
    let numbers = (0..node.count()).map(|at| u16::from_be_bytes([0, node.key(at)[0]]));
    for number in numbers.chain([0, 1, 17, 130, 255, 256, 0xFFFF]).collect::<Vec<_>>() {
        for near in [number.saturating_sub(1), number, number.saturating_add(1)] {
            let wanted = key(near, shape);
            let slot = find(area, shape, &wanted).unwrap();
            let found = slot.map(|slot| record(&area[slot_at(shape, slot)..]));
            let index = (node.count() > 0).then(|| node.child_slot(&wanted));
            let expected = index.map(|index| record(&unpacked[slot_at(shape, index)..]));
            prop_assert_eq!(found, expected, "key {}", near);
        }
    }
    Ok(())
}

fn slot_at(shape: &Shape, slot: usize) -> usize {
    shape.head_bytes() + slot * shape.record_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Round trips through the page, and cuts, at any time: the node equals the map.
    ///
    /// After a cut it has what was appended before, and of the batch that was cut the first
    /// records.
    #[test]
    fn a_node_is_what_a_map_says(
        form in prop::sample::select(FORMS.to_vec()),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let shape = shape(form);
        let (mut node, mut page) = begin(form, &shape);
        let (mut model, mut told) = (Model::new(), Model::new());
        for step in &steps {
            act(&mut node, &shape, &mut model, step);
            match step {
                Step::Put => {
                    page.put(&mut node, &shape);
                    told = model.clone();
                }
                Step::Reload => {
                    node = page.area.clone();
                    unpack(&mut node, &shape).unwrap();
                    model = told.clone();
                }
                Step::Tear(seed) => {
                    tear(&mut page, &mut node, &shape, &mut told, *seed)?;
                    model = told.clone();
                }
                _ => {}
            }
            prop_assert_eq!(records(&node, &shape), model.clone(), "after {:?}", step);
            found_as_in_ram(&page.area, &shape)?;
        }
    }

    /// Cuts of any batch of new records, and of a whole page.
    ///
    /// A first part of the records is found, or no node, and never a record that was not written.
    #[test]
    fn a_torn_page_is_no_node_or_has_the_first_records(
        form in prop::sample::select(FORMS.to_vec()),
        numbers in prop::collection::btree_set(0..200u16, 1..40),
        value: u8,
        seed: u64,
    ) {
        let shape = shape(form);
        let room = capacity(form.0, &shape);
        let mut node = vec![0; form.0];
        let mut new = NodeMut::empty(&mut node, shape);
        for (index, &number) in numbers.iter().take(room).enumerate() {
            if new.as_node().search(&key(number, &shape)).is_err() {
                new.insert(index.min(new.count()), &key(number, &shape), &payload(value, &shape));
            }
        }
        let model = records(&node, &shape);
        pack(&mut node, &shape);
        let mut torn = vec![0xFF; form.0];
        mix(&mut torn, &node, seed);
        let sealed_whole = sealed(&torn, &shape) == sealed(&node, &shape);
        if unpack(&mut torn, &shape).is_ok() {
            let found = records(&torn, &shape);
            // A torn count can only be too high, and then slots are missing; valid bits do not
            // fall.
            prop_assert!(found == model && sealed_whole, "{:?} of {:?}", found, model);
        }
    }

    /// Bytes of any kind are no node, or one that can be used; they never panic.
    #[test]
    fn hostile_bytes_never_panic(
        form in prop::sample::select(FORMS.to_vec()),
        noise in prop::collection::vec(any::<u8>(), 2200),
        few: bool,
        wholes in prop::collection::vec((0..40usize, any::<u8>()), 0..40),
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let shape = shape(form);
        let mut node = noise[..form.0].to_vec();
        // Slots that are whole, of keys that repeat, between those that are not.
        for (slot, byte) in wholes {
            let at = shape.head_bytes() + slot % capacity(form.0, &shape) * shape.record_bytes();
            let slot = &mut node[at..at + shape.record_bytes()];
            let data = shape.record_bytes() - shape.tag_bytes();
            slot[..data].fill(byte % 5);
            let zeros: u32 = slot[..data].iter().map(|byte| byte.count_zeros()).sum();
            slot[data..].copy_from_slice(&(zeros as u16).to_le_bytes()[..shape.tag_bytes()]);
        }
        if few {
            (node[0], node[1]) = (node[0] % 4, 0);
        }
        let _ = sealed(&node, &shape);
        let before = node.clone();
        let wanted = key(7, &shape);
        if let Ok(Some(slot)) = find(&node, &shape, &wanted) {
            prop_assert!(slot < capacity(form.0, &shape));
        }
        if unpack(&mut node, &shape).is_err() {
            prop_assert_eq!(node, before);
            return Ok(());
        }
        let mut page = Page { area: before, appends: 0, removals: 0, pages: 0 };
        let mut model = records(&node, &shape);
        for step in &steps {
            act(&mut node, &shape, &mut model, step);
            if matches!(step, Step::Put) {
                page.put(&mut node, &shape);
            }
            prop_assert_eq!(records(&node, &shape), model.clone());
        }
        // Short areas too.
        for bytes in 0..shape.head_bytes() {
            prop_assert_eq!(unpack(&mut noise[..bytes].to_vec(), &shape), Err(NoNode));
        }
    }
}
