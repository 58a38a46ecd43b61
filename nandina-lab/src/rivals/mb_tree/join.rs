//! A leaf of MB-tree shrinks: two of its pages become one.
//!
//! Nothing here reads or writes.

use crate::rivals::pages::Head;
use crate::rivals::tree::{Edit, Most, Node};

/// The page beside one that lost records and is less than half full, if its leaf has another one.
///
/// A page that was divided, or is gone, has edits beside its own.
pub fn neighbour(edits: &[Edit], header: &Node, most: Most) -> Option<u32> {
    let [Edit { before: Some(before), after: Some(page), .. }] = edits else { return None };
    let records = page.entries.len();
    if page.level > 1 || records >= most.leaf / 2 || records >= before.entries.len() {
        return None;
    }
    let children: Vec<u32> = header.children().map(|(_, child)| child).collect();
    let at = children.iter().position(|&child| child == page.number)?;
    children.get(at + 1).or(children[..at].last()).copied()
}

/// Joins the page that changed with its neighbour, if one page has room for both.
///
/// A root whose leaf has one page left is that page.
pub fn join(edits: &mut Vec<Edit>, header: &Node, neighbour: Node, most: Most, head: &mut Head) {
    let Some(Edit { before: Some(before), after: Some(page), .. }) = edits.pop() else { return };
    if page.entries.len() + neighbour.entries.len() > most.leaf {
        edits.push(Edit { before: Some(before), after: Some(page), divided: None });
        return;
    }
    let is_lower = header
        .children()
        .map(|(_, child)| child)
        .find(|child| [page.number, neighbour.number].contains(child))
        == Some(page.number);
    let (lower, upper) = if is_lower { (page, neighbour) } else { (neighbour, page) };
    let (gone, mut joined) = (upper.number, lower.clone());
    joined.entries.extend(upper.entries.clone());
    let mut after = header.clone();
    after.entries.retain(|_, child| *child.as_slice() != gone.to_le_bytes());
    let mut after = Some(after);
    if head.root == header.number && after.as_ref().is_some_and(|after| after.entries.len() == 1) {
        (head.root, head.height, after) = (joined.number, 1, None);
    }
    edits.push(Edit { before: Some(lower), after: Some(joined), divided: None });
    edits.push(Edit { before: Some(upper), after: None, divided: None });
    edits.push(Edit { before: Some(header.clone()), after, divided: None });
}
