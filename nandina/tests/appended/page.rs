//! A page under a node in RAM, a map beside it, and the steps of a tree.
//!
//! The page checks that none of its bits rises.
//!
//! The test sees every bit of the page that would rise.

use std::collections::BTreeMap;

use nandina::node::appended::{Change, append_image, capacity, change, pack, removal, unpack};
use nandina::node::{Node, NodeMut, Shape};
use proptest::prelude::*;

pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Areas and records that cover both sizes of a tag.
///
/// They also cover whole and broken bytes of valid bits, and few slots.
pub const FORMS: [(usize, usize, usize); 7] =
    [(40, 2, 1), (64, 1, 0), (120, 4, 12), (216, 2, 4), (330, 8, 30), (472, 4, 4), (2200, 1, 2)];

pub fn shape((area, key, payload): (usize, usize, usize)) -> Shape {
    Shape::sorted(key, payload).appended(area).unwrap()
}

pub fn key(number: u16, shape: &Shape) -> Vec<u8> {
    let mut key = vec![0xFF; shape.key_bytes()];
    let number = number.to_be_bytes();
    let bytes = shape.key_bytes().min(2);
    key[..bytes].copy_from_slice(&number[2 - bytes..]);
    key
}

pub fn payload(number: u8, shape: &Shape) -> Vec<u8> {
    (0..shape.payload_bytes()).map(|at| number.wrapping_mul(at as u8 + 1)).collect()
}

pub fn records(node: &[u8], shape: &Shape) -> Model {
    let node = Node::parse(node, *shape).expect("a node in RAM");
    let all: Vec<_> =
        (0..node.count()).map(|at| (node.key(at).to_vec(), node.payload(at).to_vec())).collect();
    assert!(all.is_sorted_by(|low, high| low.0 < high.0), "keys rise");
    all.into_iter().collect()
}

/// A page whose bits only fall until it is replaced, and the operations on it.
pub struct Page {
    pub area: Vec<u8>,
    pub appends: u32,
    pub removals: u32,
    pub pages: u32,
}

impl Page {
    fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        for (old, new) in self.area[at..].iter_mut().zip(bytes) {
            assert_eq!(new & !*old, 0, "a bit rises");
            *old = *new;
        }
    }

    /// Writes the changes of a node in RAM to its page.
    pub fn put(&mut self, node: &mut [u8], shape: &Shape) {
        let mut image = [0; 4096];
        match change(node, shape) {
            Change::Nothing => {}
            Change::Append { records } => {
                let (at, bytes) = append_image(node, shape, &mut image).unwrap();
                assert_eq!(bytes, records * shape.record_bytes());
                self.overwrite(at, &image[..bytes]);
                self.appends += 1;
            }
            Change::Remove => {
                let (at, byte) = removal(node, shape).unwrap();
                self.overwrite(at, &[byte]);
                self.removals += 1;
            }
            Change::Whole => {
                pack(node, shape);
                self.area = node.to_vec();
                self.pages += 1;
                unpack(node, shape).unwrap();
            }
        }
        assert_eq!(change(node, shape), Change::Nothing);
    }
}

/// Begins with an empty node and its page.
pub fn begin(form: (usize, usize, usize), shape: &Shape) -> (Vec<u8>, Page) {
    let mut node = vec![0x5A; form.0];
    NodeMut::empty(&mut node, *shape);
    assert_eq!(change(&node, shape), Change::Whole);
    let mut page = Page { area: Vec::new(), appends: 0, removals: 0, pages: 0 };
    page.put(&mut node, shape);
    (node, page)
}

#[derive(Clone, Debug)]
pub enum Step {
    Insert(u16, u8),
    Remove(u16),
    LowerFirst,
    Put,
    Reload,
    Tear(u64),
}

pub fn step() -> impl Strategy<Value = Step> {
    let number = || prop_oneof![0..12u16, 0..200u16];
    prop_oneof![
        8 => (number(), any::<u8>()).prop_map(|(key, value)| Step::Insert(key, value)),
        4 => number().prop_map(Step::Remove),
        1 => Just(Step::LowerFirst),
        10 => Just(Step::Put),
        4 => Just(Step::Reload),
        2 => any::<u64>().prop_map(Step::Tear),
    ]
}

/// Makes one change as the tree would.
pub fn act(node: &mut [u8], shape: &Shape, model: &mut Model, step: &Step) {
    let room = capacity(node.len(), shape);
    let mut node = NodeMut::parse(node, *shape).unwrap();
    match *step {
        Step::Insert(number, value) => {
            let (key, payload) = (key(number, shape), payload(value, shape));
            match node.as_node().search(&key) {
                Ok(index) => node.set_payload(index, &payload),
                Err(index) if node.count() < room => node.insert(index, &key, &payload),
                Err(_) => return,
            }
            model.insert(key, payload);
        }
        Step::Remove(number) => {
            let key = key(number, shape);
            if let Ok(index) = node.as_node().search(&key) {
                node.remove(index);
                model.remove(&key);
            }
        }
        Step::LowerFirst => {
            if let Some((_, payload)) = model.pop_first() {
                let lowest = vec![0; shape.key_bytes()];
                node.set_key(0, &lowest);
                model.insert(lowest, payload);
            }
        }
        Step::Put | Step::Reload | Step::Tear(_) => {}
    }
}
