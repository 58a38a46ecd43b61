//! A B+-tree as a change sees it: the nodes of a path, before and after.
//!
//! A full node is divided in the middle, an empty one goes, and others are not merged. Of an inner
//! node the first key is no bound: its first child has all lower keys. Nothing here reads or writes.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};

use nandina::flash::PageNumber;
use nandina::{Damage, Fault};
use smallvec::SmallVec;

use super::pages::{Head, number_at};

/// A key, a value or the number of a child, of which small ones take no memory of their own.
pub type Bytes = SmallVec<[u8; 16]>;

/// A key, and its value if there is to be a record.
pub type Change = (Bytes, Option<Bytes>);

/// A node: a leaf has values, an inner node the numbers of its children.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub number: u32,
    /// 1 of a leaf.
    pub level: u8,
    pub entries: BTreeMap<Bytes, Bytes>,
}

impl Node {
    pub const fn new(number: u32, level: u8) -> Self {
        Self { number, level, entries: BTreeMap::new() }
    }

    /// The children, with their keys.
    pub fn children(&self) -> impl DoubleEndedIterator<Item = (&[u8], u32)> {
        self.entries.iter().map(|(key, child)| (&key[..], number_at(child, 0)))
    }

    /// The child that a search for a key goes to.
    pub fn child_of(&self, key: &[u8]) -> Option<u32> {
        let mut from_low = self.entries.range::<[u8], _>((Unbounded, Included(key)));
        let found = from_low.next_back().or_else(|| self.entries.first_key_value());
        found.map(|(_, child)| number_at(child, 0))
    }

    /// The child that a search goes to, and the keys that belong to it, of those of this node.
    ///
    /// `is_before` says which keys begin no child behind the one that is sought.
    fn child(&self, keys: &Keys, is_before: impl Fn(&[u8]) -> bool) -> Option<(u32, Keys)> {
        let behind = self.children().skip(1).take_while(|(key, _)| is_before(key)).count();
        self.children_with(keys).nth(behind)
    }

    /// The children, each with the keys that belong to it.
    fn children_with(&self, keys: &Keys) -> impl Iterator<Item = (u32, Keys)> {
        let lows = self.entries.keys().skip(1).cloned().map(Some);
        let lows = std::iter::once(keys.low.clone()).chain(lows);
        let highs = self.entries.keys().skip(1).cloned().map(Some);
        let highs = highs.chain(std::iter::once(keys.high.clone()));
        let children = self.children().map(|(_, child)| child);
        children.zip(lows.zip(highs)).map(|(child, (low, high))| (child, Keys { low, high }))
    }

    /// What is wrong with a node to which these keys belong, if anything is.
    pub fn fault(&self, keys: &Keys, most: Most, head: &Head) -> Option<&'static str> {
        // The first key of an inner node is no bound.
        let mut own = self.entries.keys().skip(usize::from(self.level > 1));
        if !own.all(|key| keys.have(key)) {
            Some("a key is outside of the range of its node")
        } else if self.entries.len() > most.of(self.level) {
            Some("a node has too many entries")
        } else if self.entries.is_empty() && self.level > 1 {
            Some("an inner node is empty")
        } else if self.number >= head.next {
            Some("the number of a node is not given yet")
        } else {
            None
        }
    }
}

/// The keys that belong to a node.
#[derive(Clone, Default)]
pub struct Keys {
    /// The first of them, unless nothing is before it.
    pub low: Option<Bytes>,
    /// The first one that does not belong to it.
    pub high: Option<Bytes>,
}

impl Keys {
    pub fn have(&self, key: &[u8]) -> bool {
        self.low.as_ref().is_none_or(|low| &low[..] <= key)
            && self.high.as_ref().is_none_or(|high| key < &high[..])
    }
}

/// The nodes from the root to some node, and the keys that belong to the last of them.
pub struct Path {
    pub nodes: Vec<Node>,
    pub keys: Keys,
}

impl Path {
    pub fn last(&self) -> &Node {
        &self.nodes[self.nodes.len() - 1]
    }
}

/// Goes from the root down to a level.
pub fn descend<E>(
    head: &Head,
    level: u8,
    is_before: impl Fn(&[u8]) -> bool,
    mut read: impl FnMut(u32, u8) -> Result<Node, Fault<E>>,
) -> Result<Path, Fault<E>> {
    let (mut number, mut at) = (head.root, head.height);
    let mut path = Path { nodes: Vec::new(), keys: Keys::default() };
    loop {
        let node = read(number, at)?;
        let child = if at > level { node.child(&path.keys, &is_before) } else { None };
        path.nodes.push(node);
        if at <= level {
            return Ok(path);
        }
        let Some((child, keys)) = child else {
            return Err(Fault::Corrupt { page: PageNumber(0), reason: Damage::LacksNode });
        };
        (number, at, path.keys) = (child, at - 1, keys);
    }
}

/// Reads all nodes, or those above the leaves, each with the keys that belong to it.
pub fn visit<E>(
    head: &Head,
    lowest: u8,
    mut read: impl FnMut(u32, u8) -> Result<Node, E>,
    mut each: impl FnMut(&Node, &Keys),
) -> Result<(), E> {
    let mut ways = vec![(head.root, head.height, Keys::default())];
    while let Some((number, level, keys)) = ways.pop() {
        let node = if level < lowest { Node::new(number, level) } else { read(number, level)? };
        each(&node, &keys);
        if level > 1 {
            ways.extend(node.children_with(&keys).map(|(child, keys)| (child, level - 1, keys)));
        }
    }
    Ok(())
}

/// The most entries of a node.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    pub leaf: usize,
    /// Of the nodes above leaves.
    pub parent: usize,
    /// Of the nodes above those.
    pub inner: usize,
}

impl Most {
    pub const fn of(self, level: u8) -> usize {
        match level {
            1 => self.leaf,
            2 => self.parent,
            _ => self.inner,
        }
    }
}

/// What a change does to one node.
#[derive(Debug)]
pub struct Edit {
    /// `None` of a node that is new.
    pub before: Option<Node>,
    /// `None` of a node that goes.
    pub after: Option<Node>,
    /// Of a new node: the one whose upper part it is.
    pub divided: Option<u32>,
}

/// Makes changes of the leaf at the end of a path, and whatever they cause above it.
///
/// A node that `stays` is not taken away, even if it leads to nothing but an empty leaf.
pub fn apply(
    nodes: Vec<Node>,
    changes: &[Change],
    most: Most,
    head: &mut Head,
    stays: impl Fn(u32) -> bool,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    // An empty leaf takes those nodes with it that lead to nothing else.
    let above = nodes.iter().rev().skip(1).take_while(|node| node.entries.len() <= 1).count();
    let may_go = !nodes.iter().rev().take(above + 1).any(|node| stays(node.number));
    let mut new: Vec<(Bytes, u32)> = Vec::new();
    let mut gone = None;
    for before in nodes.into_iter().rev() {
        let mut after = before.clone();
        if let Some(gone) = gone.take() {
            after.entries.retain(|_, child| number_at(child, 0) != gone);
        }
        let uppers = if before.level == 1 {
            let uppers = change(&mut after, changes.iter().cloned(), most, head);
            let now = uppers.iter().chain([&after]).map(|part| part.entries.len() as u32);
            head.records = head.records + now.sum::<u32>() - before.entries.len() as u32;
            uppers
        } else {
            adopt(&mut after, std::mem::take(&mut new), most, head)
        };
        let is_root = before.number == head.root;
        if after.entries.is_empty() && !is_root && may_go {
            gone = Some(before.number);
            edits.push(Edit { before: Some(before), after: None, divided: None });
            continue;
        }
        if is_root && uppers.is_empty() && after.level > 1 && after.entries.len() <= 1 {
            if !stays(before.number) {
                shrink(before, &after, head, &mut edits);
                break;
            }
        } else if is_root && !uppers.is_empty() {
            grow(after.number, &uppers, most, head, &mut edits);
        } else {
            new = uppers.iter().filter_map(entry).collect();
        }
        let ends = new.is_empty();
        push(before, after, uppers, &mut edits);
        if ends {
            break;
        }
    }
    edits
}

/// Makes changes of entries one after another. Returns the upper parts of the node, in order.
fn change(
    node: &mut Node,
    changes: impl Iterator<Item = Change>,
    most: Most,
    head: &mut Head,
) -> Vec<Node> {
    let mut uppers: Vec<Node> = Vec::new();
    for (key, has) in changes {
        let behind = uppers.partition_point(|upper| {
            upper.entries.first_key_value().is_none_or(|(first, _)| *first <= key)
        });
        let part = if behind == 0 { &mut *node } else { &mut uppers[behind - 1] };
        match has {
            Some(has) => part.entries.insert(key, has),
            None => part.entries.remove(&key),
        };
        if let Some(upper) = divide(part, most, head) {
            uppers.insert(behind, upper);
        }
    }
    uppers.retain(|upper| !upper.entries.is_empty());
    if node.entries.is_empty() && !uppers.is_empty() {
        node.entries = uppers.remove(0).entries;
    }
    uppers
}

/// Adds children, each behind the one that it was a part of.
fn adopt(node: &mut Node, new: Vec<(Bytes, u32)>, most: Most, head: &mut Head) -> Vec<Node> {
    // The first child had keys below its own; of all keys zeros are the lowest.
    if let Some((lowest, _)) = new.first()
        && let Some(first) = node.entries.first_entry().filter(|first| first.key() >= lowest)
    {
        let zeros = Bytes::from_elem(0, lowest.len());
        let child = first.remove();
        node.entries.insert(zeros, child);
    }
    let new =
        new.into_iter().map(|(key, child)| (key, Some(Bytes::from_slice(&child.to_le_bytes()))));
    change(node, new, most, head)
}

/// The entry of a parent for a node that begins with its own first key.
fn entry(node: &Node) -> Option<(Bytes, u32)> {
    node.entries.first_key_value().map(|(key, _)| (key.clone(), node.number))
}

/// Takes the upper half of a node that has too many entries.
fn divide(node: &mut Node, most: Most, head: &mut Head) -> Option<Node> {
    if node.entries.len() <= most.of(node.level) {
        return None;
    }
    let key = node.entries.keys().nth(node.entries.len() / 2).cloned()?;
    let mut upper = Node::new(head.next, node.level);
    head.next += 1;
    upper.entries = node.entries.split_off(&key);
    Some(upper)
}

fn push(before: Node, after: Node, uppers: Vec<Node>, edits: &mut Vec<Edit>) {
    let divided = Some(before.number);
    if after != before {
        edits.push(Edit { before: Some(before), after: Some(after), divided: None });
    }
    edits.extend(uppers.into_iter().map(|node| Edit { before: None, after: Some(node), divided }));
}

/// Puts roots above the parts of the root.
fn grow(lower: u32, uppers: &[Node], most: Most, head: &mut Head, edits: &mut Vec<Edit>) {
    let mut lower = lower;
    let mut above: Vec<_> = uppers.iter().filter_map(entry).collect();
    while let Some((lowest, _)) = above.first() {
        let mut root = Node::new(head.next, head.height + 1);
        head.next += 1;
        root.entries
            .insert(Bytes::from_elem(0, lowest.len()), Bytes::from_slice(&lower.to_le_bytes()));
        (head.root, head.height, lower) = (root.number, root.level, root.number);
        let parts = adopt(&mut root, above, most, head);
        above = parts.iter().filter_map(entry).collect();
        edits.push(Edit { before: None, after: Some(root), divided: None });
        edits.extend(parts.into_iter().map(|node| Edit {
            before: None,
            after: Some(node),
            divided: None,
        }));
    }
}

/// Puts the only child of the root in its place, or an empty leaf.
fn shrink(before: Node, after: &Node, head: &mut Head, edits: &mut Vec<Edit>) {
    if let Some((_, child)) = after.children().next() {
        (head.root, head.height) = (child, after.level - 1);
    } else {
        let leaf = Node::new(head.next, 1);
        (head.root, head.height) = (head.next, 1);
        head.next += 1;
        edits.push(Edit { before: None, after: Some(leaf), divided: None });
    }
    edits.push(Edit { before: Some(before), after: None, divided: None });
}
