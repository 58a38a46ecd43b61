//! Section 5: the RAM of VMTree on the paper's two boards, by part, beside ours.
//!
//! Parts of the buffer come from `ram_needed`. The struct is that of the machine this runs on; that
//! of a 32-bit board is in `firmware/golden.txt`, which a run in an emulator wrote.

use nandina::flash::Profile;
use nandina::store::Vm;
use nandina::{Options, ram_needed};

use super::case::{Case, Costs};
use super::series::Kind;
use super::{Claims, board_16, board_32};
use crate::reproduce::{Experiment, Row};

/// The figures of the emulated boards, from `cargo xtask firmware`.
const GOLDEN: &str = include_str!("../../../../firmware/golden.txt");

/// The paper's parts in bytes, and their sum.
///
/// They are page buffers, state variables, bit vector and table.
struct Paper {
    buffers: f64,
    state: f64,
    bits: f64,
    table: f64,
    total: f64,
}

const BOARD_32: Paper =
    Paper { buffers: 1_536.0, state: 330.0, bits: 251.0, table: 1_024.0, total: 3_141.0 };
const BOARD_16: Paper =
    Paper { buffers: 6_144.0, state: 547.0, bits: 127.0, table: 2_048.0, total: 8_866.0 };

fn boards() -> [(Profile, Paper); 2] {
    let ([card, _], [_, nand]) = (board_32(), board_16());
    [(card, BOARD_32), (nand, BOARD_16)]
}

/// The cases of the budget: the runs whose struct is measured.
pub fn cases() -> Vec<Case> {
    boards().map(|(chip, _)| Case::new("vm", chip, Kind::Random)).into()
}

/// A figure of a system on an emulated board.
fn golden(board: &str, system: &str, figure: &str) -> Option<f64> {
    let mut lines = GOLDEN.lines().skip_while(|line| *line != format!("{board} {system}")).skip(1);
    let line = lines
        .by_ref()
        .take_while(|line| line.starts_with(' '))
        .find(|line| line.trim_start().starts_with(&format!("{figure} ")))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The budget.
pub fn experiment(costs: &Costs) -> Experiment {
    let cases = cases();
    let title = "Section 5: RAM of VMTree with three page buffers, part by part";
    let mut claims = Claims::new(costs, "ram", title, &cases);
    for ((chip, paper), case) in boards().into_iter().zip(&cases) {
        let geometry = chip.geometry;
        let options = |page_buffers, mapping_bytes| Options {
            page_buffers: Some(page_buffers),
            mapping_bytes,
            ..Options::new(4, 12)
        };
        let needed = |options: Options| ram_needed::<Vm>(&geometry, &options) as f64;
        let whole = needed(options(3, case.mapping_bytes));
        let buffers = 3.0 * (needed(options(4, 0)) - needed(options(3, 0)));
        let table = whole - needed(options(3, 0));
        let bits = f64::from(geometry.pages().div_ceil(8));
        let blocks = whole - buffers - table - bits;
        let config = format!("{} pages of {} B", geometry.pages(), geometry.page_bytes);
        let rows = &mut claims.experiment.rows;
        let mut beside =
            |metric, paper, ours| rows.push(Row::beside("vm", &config, metric, paper, ours, "B"));
        beside("page buffers", paper.buffers, buffers);
        beside("bit for each page", paper.bits, bits);
        beside("table of mappings", paper.table, table);
        if let Some(cost) = costs.cost(case) {
            let state = cost.ram_bytes as f64 - whole;
            beside("state variables (struct on this machine)", paper.state, state);
            beside("all (struct on this machine)", paper.total, cost.ram_bytes as f64);
        }
        rows.push(Row::alone("vm", &config, "marks of blocks and keys", blocks, "B"));
        // A board's struct does not depend on the chip.
        match golden("lm3s6965evb", "vm", "struct_bytes") {
            Some(state) => {
                let mut beside = |metric, paper, ours| {
                    rows.push(Row::beside("vm", &config, metric, paper, ours, "B"));
                };
                beside("state variables (struct on lm3s6965evb, golden)", paper.state, state);
                beside("all (struct on lm3s6965evb, golden)", paper.total, whole + state);
                if geometry.page_bytes == 512 {
                    let claim = "at most 3,141 bytes in all on the 32-bit board";
                    claims.claim(claim, whole + state <= paper.total);
                }
            }
            None => {
                let what = "struct on a 32-bit board: firmware/golden.txt has no figures of vm yet";
                if !claims.experiment.refusals.iter().any(|refusal| refusal == what) {
                    claims.experiment.refusals.push(what.into());
                }
            }
        }
    }
    claims.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_figures_are_found_by_board_and_system() {
        let bytes = golden("lm3s6965evb", "wandering", "struct_bytes").expect("it is there");
        assert!((100.0..2_000.0).contains(&bytes), "{bytes}");
        assert_eq!(golden("lm3s6965evb", "nobody", "struct_bytes"), None);
        assert_eq!(golden("lm3s6965evb", "wandering", "feathers"), None);
    }

    #[test]
    fn the_document_has_the_figures_of_the_32_bit_board() {
        let document = include_str!("../../../../docs/REPRODUCTION.md");
        let state = golden("lm3s6965evb", "vm", "struct_bytes").expect("it is there");
        let bytes = |number: f64| match number as u32 {
            number @ ..1_000 => number.to_string(),
            number => format!("{},{:03}", number / 1_000, number % 1_000),
        };
        let (mut states, mut totals) = (String::new(), String::new());
        for ((chip, paper), case) in boards().into_iter().zip(cases()) {
            let options = Options {
                page_buffers: Some(3),
                mapping_bytes: case.mapping_bytes,
                ..Options::new(4, 12)
            };
            let all = ram_needed::<Vm>(&chip.geometry, &options) as f64 + state;
            states += &format!(" {} | {} |", bytes(paper.state), bytes(state));
            totals += &format!(" {} | {} |", bytes(paper.total), bytes(all));
        }
        for row in
            [format!("| state, 32-bit board |{states}"), format!("| all, 32-bit board |{totals}")]
        {
            assert!(document.contains(&row), "docs/REPRODUCTION.md lacks {row}");
        }
    }
}
