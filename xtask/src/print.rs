//! Shows figures: a table for people, JSON for programs.
//!
//! It makes no decision, but marks what exceeds a bound.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde_json::{Map, Value, json};

use crate::figures::Row;
use crate::tools::{BOARDS, MAPPING_BOARD};

/// Columns: heading, figure.
const COLUMNS: [(&str, &str); 12] = [
    ("buffers B", "buffer_bytes"),
    ("bitmap B", "bitmap_bytes"),
    ("tables B", "table_bytes"),
    ("struct B", "struct_bytes"),
    ("RAM B", "ram_bytes"),
    ("stack B", "stack_bytes"),
    ("code B", "code_bytes"),
    ("records", "records"),
    ("height", "height"),
    ("instr./insert", "insert_instructions"),
    ("instr./lookup", "get_instructions"),
    ("instr./mount", "mount_instructions"),
];

/// Columns for address mappings.
const MAPPING_COLUMNS: [(&str, &str); 9] = [
    ("entries", "entries"),
    ("bytes", "used_bytes"),
    ("peak B", "peak_bytes"),
    ("stack B, update", "stack_update_bytes"),
    ("look-up", "stack_look_up_bytes"),
    ("removal", "stack_remove_bytes"),
    ("instr./update", "update_instructions"),
    ("instr./look-up", "look_up_instructions"),
    ("instr./removal", "remove_instructions"),
];

/// Tables for people: one for systems, one for mappings.
pub fn table(rows: &[Row]) -> String {
    let (mappings, systems): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.get("update_instructions").is_some());
    let tables = [(systems, &COLUMNS[..]), (mappings, &MAPPING_COLUMNS[..])];
    let tables = tables.iter().filter(|(rows, _)| !rows.is_empty());
    tables.map(|(rows, columns)| table_of(rows, columns)).collect::<Vec<_>>().join("\n\n")
}

fn table_of(rows: &[&Row], columns: &[(&str, &str)]) -> String {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    let headings = columns.iter().map(|(heading, _)| *heading);
    table.set_header(["board", "system"].into_iter().chain(headings));
    for row in rows {
        let over = row.over();
        let cell = |figure: &str| {
            let is_over = over.iter().any(|(bound, _)| bound.figure == figure);
            let value = row.get(figure).map_or(String::new(), |value| value.to_string());
            if is_over { format!("{value} over") } else { value }
        };
        let mut boards = BOARDS.iter().chain([&MAPPING_BOARD]);
        let processor = boards.find(|board| board.name == row.board);
        let board = processor
            .map_or(row.board.clone(), |board| format!("{} {}", board.processor, row.board));
        let cells = columns.iter().map(|(_, figure)| cell(figure));
        table.add_row([board, row.system.clone()].into_iter().chain(cells));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// JSON for programs, with every figure.
pub fn as_json(compiler: &str, counted_by: &str, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        let mut object = Map::new();
        object.insert("board".to_owned(), json!(row.board));
        object.insert("system".to_owned(), json!(row.system));
        for (name, value) in &row.figures {
            object.insert(name.clone(), json!(value));
        }
        let over: Vec<_> = row.over().iter().map(|(bound, _)| bound.figure).collect();
        object.insert("over".to_owned(), json!(over));
        Value::Object(object)
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    json!({ "compiler": compiler, "instructions_by": counted_by, "rows": rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{row, tests::said};

    #[test]
    fn what_is_over_is_marked_in_both() {
        let rows = [row(&said(), 40_000, None).unwrap()];
        let text = table(&rows);
        assert!(text.contains("40000 over") && text.contains("1026 over"), "{text}");
        assert!(text.contains("Cortex-M0 microbit"), "{text}");
        let value = as_json("rustc 1", "plugin", &rows);
        assert_eq!(value["rows"][0]["over"], json!(["code_bytes", "stack_bytes"]));
        assert_eq!(value["rows"][0]["struct_bytes"], json!(100));
    }
}
