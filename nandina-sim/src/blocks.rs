//! The blocks of a chip, which its clones share until one side changes them.
//!
//! Checking whether a block is shared takes an atomic operation, which waits for all bytes on their
//! way to memory: a tenth of a page program's time. So the block that was changed last is held
//! apart and belongs to this chip alone. In exchange a clone copies that one block.

use std::mem::swap;
use std::ops::Index;
use std::sync::Arc;

use crate::block::Block;

/// All blocks of a chip.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The shared blocks; entry `last` is an empty placeholder.
    shared: Vec<Arc<Block>>,
    last: usize,
    own: Block,
}

impl Blocks {
    /// Makes `count` blocks like `block`.
    pub fn new(block: Block, count: usize) -> Self {
        let like = Arc::new(block.clone());
        let mut shared = vec![like; count];
        if let Some(first) = shared.first_mut() {
            *first = Arc::new(Block::new(0, 0));
        }
        Self { shared, last: 0, own: block }
    }

    pub const fn len(&self) -> usize {
        self.shared.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Block> {
        (0..self.len()).map(|block| &self[block])
    }

    /// The block for changing it; unshares it first.
    pub fn change(&mut self, block: usize) -> &mut Block {
        if block != self.last {
            self.hold_apart(block);
        }
        &mut self.own
    }

    /// Makes every block as new. Those that no other chip shares keep their memory.
    pub fn renew(&mut self) {
        self.own.renew();
        for block in self.shared.iter_mut().filter(|block| !block.is_new()) {
            Arc::make_mut(block).renew();
        }
    }

    #[cold]
    fn hold_apart(&mut self, block: usize) {
        swap(&mut self.own, Arc::make_mut(&mut self.shared[self.last]));
        swap(&mut self.own, Arc::make_mut(&mut self.shared[block]));
        self.last = block;
    }
}

impl Index<usize> for Blocks {
    type Output = Block;

    fn index(&self, block: usize) -> &Block {
        if block == self.last { &self.own } else { &self.shared[block] }
    }
}
