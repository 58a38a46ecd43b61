//! In-page logging: a block holds nodes, and the log records of their changes behind them.
//!
//! A change programs one sector, a quarter of a page, in the block of its node, and is durable with
//! it. If a block has no sector left, its nodes and their records are written together into a new
//! block. A node is read with the log pages that hold records of it, which RAM knows.
//!
//! - `ipl`: a sixteenth of a block is its log, 4 pages of 64. A node that is made by a division goes
//!   into its block, or, if that is full, into the newest one.
//! - `dipl`: log pages take the block's pages in order, and so do *ghosts*, the nodes that a
//!   division makes. Writing a block anew makes them ordinary nodes.
//! - `dipl-ftl`: the same in logical blocks of an FTL, which programs a whole page for each sector,
//!   and writes a block anew at other logical pages. The paper ran all trees over FAST.
//!
//! Chosen here for `dipl`: a block with nodes in more than three quarters of its pages is divided
//! in two when it is written anew.

use nandina_sim::Counters;

use super::super::device::{Event, Events};
use super::store::{State, Store};
use super::tree::{Touch, Tree};

/// Sectors of a page: a page takes so many programs.
const SECTORS: u32 = 4;

#[derive(Default)]
struct Block {
    nodes: Vec<u32>,
    /// Programmed pages, log pages included.
    pages: u32,
    log_pages: u32,
    /// The place of the last log page.
    log_at: u32,
    /// Free sectors of the last log page.
    sectors: u32,
    /// For each record its node and its log page.
    records: Vec<(u32, u32)>,
    /// The logical block, on an FTL.
    number: u32,
}

/// The blocks of an index.
pub struct Logged {
    block_pages: u32,
    /// Pages of a block that nodes may take, if others are kept for the log.
    node_pages: Option<u32>,
    blocks: Vec<Block>,
    block_of: Vec<u32>,
    counts: Counters,
    /// Blocks that were written anew.
    merges: u64,
    logical: Option<Logical>,
}

/// The logical blocks of an FTL, and what was done to their pages.
#[derive(Default)]
struct Logical {
    end: u32,
    free: Vec<u32>,
    events: Vec<Event>,
}

impl Logical {
    fn open(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }

    /// Trims the first `pages` pages of a block that is no longer needed.
    fn let_go(&mut self, number: u32, block_pages: u32, pages: u32) {
        let first = number * block_pages;
        self.events.extend((first..first + pages).map(Event::Trim));
        self.free.push(number);
    }
}

impl Logged {
    /// Blocks whose log area has a fixed size.
    pub fn fixed(block_pages: u32) -> Self {
        let node_pages = Some(block_pages - (block_pages / 16).max(1));
        Self { node_pages, ..Self::dynamic(block_pages) }
    }

    /// Blocks whose log takes what the nodes leave.
    pub fn dynamic(block_pages: u32) -> Self {
        Self {
            block_pages,
            node_pages: None,
            blocks: Vec::new(),
            block_of: Vec::new(),
            counts: Counters::default(),
            merges: 0,
            logical: None,
        }
    }

    /// The same in logical blocks of an FTL.
    pub fn over_ftl(block_pages: u32) -> Self {
        Self { logical: Some(Logical::default()), ..Self::dynamic(block_pages) }
    }

    /// Programs in the page at `place` of a block.
    fn program(&mut self, block: usize, place: u32) {
        self.counts.programs += 1;
        if let Some(logical) = &mut self.logical {
            let number = self.blocks[block].number;
            logical.events.push(Event::Write(number * self.block_pages + place));
        }
    }

    /// Gives a block another logical block, or its first one, and lets the one before go.
    fn renumber(&mut self, block: usize, before: Option<(u32, u32)>) {
        let Some(logical) = &mut self.logical else { return };
        self.blocks[block].number = logical.open();
        if let Some((number, pages)) = before {
            logical.let_go(number, self.block_pages, pages);
        }
    }

    fn move_to(&mut self, node: u32, block: usize) {
        if self.block_of.len() <= node as usize {
            self.block_of.resize(node as usize + 1, 0);
        }
        self.block_of[node as usize] = block as u32;
        self.blocks[block].nodes.push(node);
    }

    fn open(&mut self) -> usize {
        let free = self.blocks.iter().position(|block| block.nodes.is_empty());
        let block = free.unwrap_or_else(|| {
            self.blocks.push(Block::default());
            self.blocks.len() - 1
        });
        self.renumber(block, None);
        block
    }

    /// Programs a record of `node`, or writes its block anew.
    fn append(&mut self, node: u32) {
        let (block_pages, log_pages) = match self.node_pages {
            Some(nodes) => (u32::MAX, self.block_pages - nodes),
            None => (self.block_pages, u32::MAX),
        };
        let at = self.block_of[node as usize] as usize;
        let block = &mut self.blocks[at];
        if block.sectors == 0 {
            if block.pages >= block_pages || block.log_pages >= log_pages {
                return self.write_anew(node);
            }
            block.pages += 1;
            block.log_pages += 1;
            block.sectors = SECTORS;
            block.log_at = block.pages - 1;
        }
        block.sectors -= 1;
        block.records.push((node, block.log_pages));
        let log_at = block.log_at;
        self.program(at, log_at);
    }

    /// Programs a new node, or writes the block anew in which it would be.
    fn place(&mut self, node: u32, beside: u32) {
        if self.blocks.is_empty() {
            let first = self.open();
            self.move_to(node, first);
            self.program_node(first);
            return;
        }
        let home = self.block_of[beside as usize] as usize;
        match self.node_pages {
            Some(most) => {
                // Pages of the log are apart. A page of a node that is gone stays taken.
                let nodes = |block: &Block| block.pages - block.log_pages;
                let last = self.blocks.len() - 1;
                let fits = [home, last].into_iter().find(|&at| nodes(&self.blocks[at]) < most);
                let block = fits.unwrap_or_else(|| self.open());
                self.move_to(node, block);
                self.program_node(block);
            }
            None => {
                self.move_to(node, home);
                if self.blocks[home].pages < self.block_pages {
                    self.program_node(home);
                } else {
                    self.write_anew(node);
                }
            }
        }
    }

    fn program_node(&mut self, block: usize) {
        self.blocks[block].pages += 1;
        self.program(block, self.blocks[block].pages - 1);
    }

    /// Writes the block of `node` anew, with all of its records applied.
    fn write_anew(&mut self, node: u32) {
        let at = self.block_of[node as usize] as usize;
        let block = &mut self.blocks[at];
        let nodes = block.nodes.len() as u32;
        self.counts.reads += u64::from(nodes + block.log_pages);
        self.counts.erases += 1;
        self.merges += 1;
        let moved = match self.node_pages {
            None if nodes * 4 > self.block_pages * 3 => {
                block.nodes.split_off(block.nodes.len() / 2)
            }
            _ => Vec::new(),
        };
        let nodes = std::mem::take(&mut block.nodes);
        let before = (block.number, block.pages);
        *block = Block { nodes, ..Block::default() };
        self.renumber(at, Some(before));
        for _ in 0..self.blocks[at].nodes.len() {
            self.program_node(at);
        }
        if !moved.is_empty() {
            let other = self.open();
            for node in moved {
                self.move_to(node, other);
                self.program_node(other);
            }
        }
    }

    fn discard(&mut self, node: u32) {
        let at = self.block_of[node as usize] as usize;
        let block = &mut self.blocks[at];
        block.nodes.retain(|&of| of != node);
        block.records.retain(|&(of, _)| of != node);
        if block.nodes.is_empty() {
            self.counts.erases += 1;
            let before = std::mem::take(block);
            if let Some(logical) = &mut self.logical {
                logical.let_go(before.number, self.block_pages, before.pages);
            }
        }
    }
}

impl Store for Logged {
    fn read(&mut self, nodes: &[u32]) -> u32 {
        // The root is in a page buffer, with its records.
        nodes[1..]
            .iter()
            .map(|&node| {
                let block = &self.blocks[self.block_of[node as usize] as usize];
                let (mut pages, mut last) = (1, 0);
                for &(of, page) in &block.records {
                    if of == node && page != last {
                        (pages, last) = (pages + 1, page);
                    }
                }
                pages
            })
            .sum()
    }

    fn write(&mut self, tree: &Tree, events: &mut Events) -> u32 {
        for &(node, touch) in tree.touched() {
            match touch {
                Touch::Entry | Touch::Moved => self.append(node),
                Touch::New { beside } => self.place(node, beside),
                Touch::Gone => self.discard(node),
            }
        }
        let Some(logical) = &mut self.logical else { return 0 };
        for event in logical.events.drain(..) {
            events.push(event);
        }
        std::mem::take(&mut self.counts).reads as u32
    }

    fn raw(&mut self) -> Counters {
        std::mem::take(&mut self.counts)
    }

    fn pages(&self) -> u32 {
        if let Some(logical) = &self.logical {
            return logical.end * self.block_pages;
        }
        self.blocks.iter().map(|block| block.pages).sum()
    }

    fn blocks(&self, _: u32) -> u32 {
        if let Some(logical) = &self.logical {
            return logical.end;
        }
        self.blocks.iter().filter(|block| !block.nodes.is_empty()).count() as u32
    }

    fn state(&self) -> State {
        let records = self.blocks.iter().map(|block| block.records.len() as u32).sum();
        // A block is taken as a whole: its log area is there before it is programmed.
        let held = self.blocks(self.block_pages) * self.block_pages;
        let logs_merged = self.merges;
        State { in_flash: records, held, node_pages: 1, nodes: 1, logs_merged, in_ram: 0 }
    }
}
