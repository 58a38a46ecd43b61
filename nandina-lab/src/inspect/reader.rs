//! How the nodes of a system are read, for each system that says so.
//!
//! No page is read here.

use nandina::System;
use nandina::engine::{Nodes, Packed};
use nandina::store::{Description, Visitor};

use crate::systems::{key_of, visit};

/// What reading the nodes of a system requires.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub nodes: Nodes,
    pub packed: Option<Packed>,
    pub system: Description,
}

struct ReaderOf;

impl Visitor for ReaderOf {
    type Output = Option<Reader>;

    fn visit<S: System + 'static>(self) -> Option<Reader> {
        S::NODES.map(|nodes| Reader { nodes, packed: S::PACKED, system: S::DESCRIPTION })
    }
}

/// The reader for nodes of the system with this number.
pub(super) fn reader_of(code: u8) -> Option<Reader> {
    key_of(code).and_then(|system| visit(system, ReaderOf)).flatten()
}
