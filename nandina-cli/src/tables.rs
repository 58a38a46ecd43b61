//! Tables for people. This file formats figures and computes none.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use nandina::flash::Capabilities;
use nandina::flash::profile::PROFILES;
use nandina_lab::compare::Comparison;
use nandina_lab::replay::{MAPPINGS, PAPER};
use nandina_lab::run::SystemCost;
use nandina_lab::systems::{Listed, listed};

/// An empty table whose first columns are text and whose others are figures.
pub fn table(header: &[&str], text_columns: usize) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    for column in text_columns..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// So many things of this name.
pub fn counted(count: u64, name: &str) -> String {
    if count == 1 { format!("1 {name}") } else { format!("{count} {name}s") }
}

/// A part of a whole, in per cent.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

/// A count, or a dash where there is no such thing.
fn or_dash(count: Option<impl ToString>) -> String {
    count.map_or("-".into(), |count| count.to_string())
}

pub fn systems() -> String {
    let header = ["system", "name", "runs on", "how a changed node reaches flash", "source"];
    let mut table = table(&header, 5);
    for Listed { key, system, runs_on, .. } in listed() {
        table.add_row([key, system.name, &runs_on, system.summary, system.source]);
    }
    table.to_string()
}

pub fn mappings() -> String {
    let mut table = table(&["mapping", "what it is", "memory", "section"], 4);
    for mapping in MAPPINGS {
        let memory = if mapping.needs_heap { "heap" } else { "the caller's" };
        table.add_row([mapping.name, mapping.line, memory, mapping.section]);
    }
    format!("{table}\nSections are those of {PAPER}.")
}

/// The operations that a programmed page permits, in a word or two.
const fn in_place(capabilities: &Capabilities) -> &'static str {
    match (capabilities.overwrite, capabilities.rewrite) {
        (true, true) => "overwrite, rewrite",
        (true, false) => "overwrite",
        (false, true) => "rewrite",
        (false, false) => "-",
    }
}

pub fn devices() -> String {
    let header = [
        "device",
        "what it is",
        "read us",
        "program us",
        "erase us",
        "programs/page",
        "in place",
        "safe pages/block",
        "ECC bits",
        "erases promised",
    ];
    let mut table = table(&header, 2);
    for profile in PROFILES {
        table.add_row([
            profile.key.to_string(),
            profile.summary.to_string(),
            format!("{:.1}", profile.page_read_ns() as f64 / 1e3),
            format!("{:.1}", profile.page_program_ns() as f64 / 1e3),
            format!("{:.0}", profile.timing.erase_ns as f64 / 1e3),
            profile.capabilities.programs_per_page.map_or("any".into(), |count| count.to_string()),
            in_place(&profile.capabilities).to_string(),
            profile.capabilities.pairing.safe_pages(profile.geometry.pages_per_block).to_string(),
            profile.ecc.bits.to_string(),
            if profile.endurance == u32::MAX { "-".into() } else { profile.endurance.to_string() },
        ]);
    }
    let mut text = table.to_string();
    for profile in PROFILES {
        text += &format!("\n{}: {}", profile.key, profile.source);
    }
    text
}

pub fn comparison(comparison: &Comparison) -> String {
    let header = [
        "phase",
        "system",
        "ops",
        "reads/op",
        "programs/op",
        "erases/op",
        "ms mean",
        "ms p99",
        "ms max",
        "write amp.",
    ];
    let mut phases = table(&header, 2);
    let count = comparison.systems.first().map_or(0, |system| system.phases.len());
    for index in 0..count {
        for system in &comparison.systems {
            let cost = &system.phases[index];
            phases.add_row([
                cost.phase.to_string(),
                system.name(),
                cost.ops.to_string(),
                format!("{:.2}", cost.reads_per_op),
                format!("{:.2}", cost.programs_per_op),
                format!("{:.4}", cost.erases_per_op),
                format!("{:.3}", cost.ms_mean),
                format!("{:.3}", cost.ms_p99),
                format!("{:.3}", cost.ms_max),
                cost.write_amplification.map_or("-".into(), |factor| format!("{factor:.0}")),
            ]);
        }
    }
    let header = [
        "system",
        "RAM bytes",
        "height",
        "records",
        "valid pages",
        "blocks collected",
        "pages moved",
        "wear max/mean",
    ];
    let mut systems = table(&header, 1);
    for system in &comparison.systems {
        systems.add_row([
            system.name(),
            system.ram_bytes.to_string(),
            or_dash(system.height),
            or_dash(system.records),
            or_dash(system.valid_pages),
            or_dash(system.collected_blocks),
            or_dash(system.moved_pages),
            format!("{:.2}", system.wear_max_by_mean),
        ]);
    }
    let seed = comparison.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    let settings = match &comparison.settings[..] {
        "" => String::new(),
        settings => format!(", with {settings}"),
    };
    let refused: String = comparison
        .refused
        .iter()
        .map(|refusal| format!("\nCannot run: {}: {}", refusal.name(), refusal.reason))
        .collect();
    let nodes = nodes(&comparison.systems);
    let ftls = ftls(&comparison.systems);
    format!(
        "On {}{seed}{settings}: {}\n{phases}\n\nAt the end\n{systems}{refused}\n\n{nodes}{ftls}\
         Times are modelled from the chip's latencies; `nandina devices` gives them.",
        comparison.device, comparison.work
    )
}

/// What systems with changed nodes in RAM wrote; nothing where there is none.
fn nodes(systems: &[SystemCost]) -> String {
    let header = [
        "nodes of",
        "of all paths",
        "written",
        "saved",
        "loaded",
        "most in RAM",
        "most dirty",
        "commits",
        "shrinks",
        "changes replayed",
    ];
    let mut rows = table(&header, 1);
    for system in systems {
        let Some(nodes) = &system.nodes else { continue };
        rows.add_row([
            system.name(),
            nodes.wandering.to_string(),
            nodes.written.to_string(),
            share(nodes.wandering.saturating_sub(nodes.written), nodes.wandering),
            nodes.loaded.to_string(),
            nodes.most.to_string(),
            nodes.most_dirty.to_string(),
            nodes.commits.to_string(),
            nodes.shrinks.to_string(),
            nodes.replayed.to_string(),
        ]);
    }
    if rows.is_empty() { String::new() } else { format!("{rows}\n\n") }
}

/// What the FTLs below the systems did; nothing where there is none.
fn ftls(systems: &[SystemCost]) -> String {
    if systems.iter().all(|system| system.ftl.is_none()) {
        return String::new();
    }
    let header = ["write amplification", "phase", "of the system", "of the FTL", "of both"];
    let mut amplification = table(&header, 2);
    let header = [
        "FTL",
        "log blocks",
        "logical pages",
        "spare %",
        "RAM bytes",
        "map bytes",
        "pages written",
        "trimmed",
        "moved",
        "own",
        "erases",
        "merges: switch",
        "partial",
        "full",
    ];
    let mut work = table(&header, 1);
    let mut map_pages = String::new();
    for system in systems {
        let Some(ftl) = &system.ftl else { continue };
        let factor = |factor: Option<f64>| factor.map_or("-".into(), |it| format!("{it:.2}"));
        for cost in system.phases.iter().filter(|cost| cost.write_amplification_ftl.is_some()) {
            amplification.add_row([
                system.name(),
                cost.phase.to_string(),
                factor(cost.write_amplification_system),
                factor(cost.write_amplification_ftl),
                factor(cost.write_amplification),
            ]);
        }
        work.add_row([
            system.name(),
            or_dash(ftl.log_blocks),
            ftl.logical_pages.to_string(),
            format!("{:.1}", ftl.over_provisioning),
            ftl.ram_bytes.to_string(),
            ftl.map_bytes.to_string(),
            ftl.host_writes.to_string(),
            ftl.host_trims.to_string(),
            ftl.moved.to_string(),
            ftl.own.to_string(),
            ftl.erases.to_string(),
            or_dash(ftl.switch_merges),
            or_dash(ftl.partial_merges),
            or_dash(ftl.full_merges),
        ]);
        if ftl.map_reads + ftl.map_writes > 0 {
            map_pages += &format!(
                "{}: the mapping read {} and wrote {} pages of flash of its own, which are not among the costs.\n",
                system.name(),
                ftl.map_reads,
                ftl.map_writes
            );
        }
    }
    format!(
        "{amplification}\n\n{work}\n\nCosts are those of the chip below the FTL; RAM of the systems is without that \
         of the FTL.\n{map_pages}"
    )
}
