//! Single cases: sizes, batches, removals, closed pages, split nodes.

use nandina::node::appended::{
    Change, append_image, capacity, change, is_closed, make_whole, removal, unpack,
};
use nandina::node::{NodeMut, Shape};

use super::page::{Model, Step, act, begin, key, payload, records, shape};

fn put_numbers(node: &mut [u8], shape: &Shape, numbers: impl IntoIterator<Item = (u16, u8)>) {
    for (number, value) in numbers {
        act(node, shape, &mut Model::new(), &Step::Insert(number, value));
    }
}

#[test]
fn sizes_are_as_they_are_said() {
    for (area, key, payload, tag_bytes, slots) in [
        // 472 bytes: a page of DataFlash without the header; 4 + 12 + 1 bytes and an eighth a slot.
        (472, 4, 12, 1, 27),
        (2048, 4, 4, 1, 224),
        (2048, 4, 3, 2, 223),
        (4096, 8, 8, 1, 238),
        (4096, 4, 4, 2, 403),
        (4096, 16, 16, 2, 119),
        (11, 2, 3, 1, 1),
        (10, 2, 3, 1, 0),
        (0, 2, 3, 1, 0),
        (1 << 20, 1, 0, 2, 65_528),
    ] {
        let shape = Shape::sorted(key, payload).appended(area).unwrap();
        let found = (shape.tag_bytes(), capacity(area, &shape));
        assert_eq!(found, (tag_bytes, slots), "{area} bytes, {key} + {payload}");
        assert_eq!(shape.record_bytes(), key + payload + tag_bytes);
        assert!(shape.head_bytes() + slots * shape.record_bytes() <= area || slots == 0);
        assert_eq!(shape.head_bytes(), 2 + 2 * tag_bytes + slots.div_ceil(8));
    }
    assert_eq!(Shape::sorted(4, 8188).appended(1 << 20), None);
    assert!(Shape::sorted(4, 8187).appended(1 << 20).is_some());
}

#[test]
fn records_are_appended_one_by_one_and_in_batches_until_the_page_is_full() {
    let form = (216, 2, 4);
    let shape = shape(form);
    let room = capacity(form.0, &shape);
    let (mut node, mut page) = begin(form, &shape);
    put_numbers(&mut node, &shape, [(5, 1)]);
    assert_eq!(change(&node, &shape), Change::Append { records: 1 });
    assert_eq!(append_image(&mut node, &shape, &mut [0; 6]), None, "too short");
    page.put(&mut node, &shape);
    put_numbers(&mut node, &shape, [(3, 1), (9, 1), (1, 1)]);
    assert_eq!(change(&node, &shape), Change::Append { records: 3 });
    page.put(&mut node, &shape);
    // An unchanged record is not appended; a replaced one takes one more slot.
    put_numbers(&mut node, &shape, [(9, 1)]);
    assert_eq!(change(&node, &shape), Change::Nothing);
    put_numbers(&mut node, &shape, [(9, 2), (9, 3)]);
    assert_eq!(change(&node, &shape), Change::Append { records: 1 });
    page.put(&mut node, &shape);
    assert_eq!((page.appends, page.pages), (3, 1));
    put_numbers(&mut node, &shape, (10..10 + room as u16 - 5).map(|number| (number, 0)));
    assert!(!is_closed(&node, &shape));
    assert_eq!(change(&node, &shape), Change::Append { records: room - 5 });
    page.put(&mut node, &shape);
    assert!(is_closed(&node, &shape));
    // One of the slots holds the old 9: one more record fits in a new page.
    put_numbers(&mut node, &shape, [(0, 7)]);
    assert_eq!(change(&node, &shape), Change::Whole);
    page.put(&mut node, &shape);
    assert_eq!((page.appends, page.pages, records(&node, &shape).len()), (4, 2, room));
}

#[test]
fn one_record_is_removed_in_place_unless_older_ones_would_come_back() {
    let form = (216, 2, 4);
    let shape = shape(form);
    let (mut node, mut page) = begin(form, &shape);
    put_numbers(&mut node, &shape, (0..10).map(|number| (number, 1)));
    page.put(&mut node, &shape);
    let remove = |node: &mut [u8], number| {
        act(node, &shape, &mut Model::new(), &Step::Remove(number));
        change(node, &shape)
    };
    assert_eq!(remove(&mut node, 9), Change::Remove);
    page.put(&mut node, &shape);
    assert_eq!((page.removals, records(&node, &shape).len()), (1, 9));
    // The record returns as a new one, which can also be removed in place, before and after a
    // mount.
    put_numbers(&mut node, &shape, [(9, 2)]);
    assert_eq!(change(&node, &shape), Change::Append { records: 1 });
    page.put(&mut node, &shape);
    node = page.area.clone();
    unpack(&mut node, &shape).unwrap();
    assert_eq!(remove(&mut node.clone(), 9), Change::Remove);
    // A record that was never appended simply disappears.
    put_numbers(&mut node, &shape, [(70, 2)]);
    assert_eq!(remove(&mut node, 70), Change::Nothing);
    // But not one that replaced another, appended or not, before and after a mount.
    put_numbers(&mut node, &shape, [(4, 2)]);
    assert_eq!(remove(&mut node.clone(), 4), Change::Whole);
    page.put(&mut node, &shape);
    assert_eq!(remove(&mut node.clone(), 4), Change::Whole);
    node = page.area.clone();
    unpack(&mut node, &shape).unwrap();
    assert_eq!(remove(&mut node.clone(), 4), Change::Whole);
    // Nor two at once, nor one beside a new one.
    let mut two = node.clone();
    assert_eq!((remove(&mut two, 5), remove(&mut two, 6)), (Change::Remove, Change::Whole));
    assert_eq!(remove(&mut node, 5), Change::Remove);
    put_numbers(&mut node, &shape, [(5, 2)]);
    assert_eq!(change(&node, &shape), Change::Whole);
    assert_eq!(
        (append_image(&mut node, &shape, &mut [0; 99]), removal(&mut node, &shape)),
        (None, None)
    );
}

#[test]
fn a_page_with_anything_behind_its_last_slot_is_closed() {
    let form = (216, 2, 4);
    let shape = shape(form);
    let (mut node, mut page) = begin(form, &shape);
    put_numbers(&mut node, &shape, [(1, 1), (2, 2)]);
    page.put(&mut node, &shape);
    let slot = |number: usize| shape.head_bytes() + number * shape.record_bytes();
    let closed = |change: &dyn Fn(&mut [u8])| {
        let mut area = page.area.clone();
        change(&mut area);
        unpack(&mut area, &shape).unwrap();
        assert_eq!(records(&area, &shape).len(), 2);
        is_closed(&area, &shape)
    };
    assert!(!closed(&|_| {}));
    assert!(closed(&|area| area[slot(2)] = 0xFE), "torn");
    assert!(closed(&|area| area[slot(3) - 1] = 1), "a tag without a record");
    assert!(closed(&|area| area.copy_within(slot(1)..slot(2), slot(3))), "a hole");
    assert!(closed(&|area| area[6] = 0xFB), "an empty slot that is removed");
    // A closed page still permits removals; other changes write it as a whole.
    node = page.area.clone();
    node[slot(2)] = 0;
    unpack(&mut node, &shape).unwrap();
    let mut other = node.clone();
    act(&mut other, &shape, &mut Model::new(), &Step::Remove(1));
    assert_eq!(change(&other, &shape), Change::Remove);
    put_numbers(&mut node, &shape, [(3, 3)]);
    assert_eq!(change(&node, &shape), Change::Whole);
}

#[test]
fn a_node_that_is_divided_or_whose_page_failed_is_put_as_a_whole() {
    let form = (216, 2, 4);
    let shape = shape(form);
    let room = capacity(form.0, &shape);
    let (mut node, mut page) = begin(form, &shape);
    put_numbers(&mut node, &shape, (0..room as u16).map(|number| (number * 2, 1)));
    page.put(&mut node, &shape);
    assert_eq!(change(&node, &shape), Change::Nothing);
    let mut high = vec![0; form.0];
    let mut low = NodeMut::parse(&mut node, shape).unwrap();
    let mut right = NodeMut::empty(&mut high, shape);
    low.split(&mut right, room / 2, 1, &key(1, &shape), &payload(9, &shape));
    for node in [&mut node, &mut high] {
        assert_eq!(change(node, &shape), Change::Whole);
        let before = records(node, &shape);
        page.put(node, &shape);
        assert_eq!(records(node, &shape), before);
    }
    assert_eq!(records(&node, &shape).len() + records(&high, &shape).len(), room + 1);
    make_whole(&mut node, &shape);
    assert_eq!(change(&node, &shape), Change::Whole);
}
