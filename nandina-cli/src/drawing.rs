//! Draws a figure into a folder, as SVG and as PNG. The font is built in, so that drawings are the
//! same everywhere.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use nandina_lab::LabError;
use nandina_lab::reproduce::figure::{Bar, Content, Figure, Series};
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const FONT: &str = "sans-serif";
const WIDTH: u32 = 1200;
const HEIGHT: u32 = 640;
const MIDDLE: i32 = WIDTH as i32 / 2;
/// The width available to text.
const ROOM: i32 = WIDTH as i32 - 32;
/// The height of a line of labels.
const LINE: i32 = 20;
/// The height of a row of the legend, the width of a coloured box with the gap after it, and the
/// gap between entries.
const LEGEND_LINE: i32 = 24;
const BOX: i32 = 22;
const BETWEEN: i32 = 28;

/// Creates the folder and loads the font.
pub fn prepare(folder: &Path) -> std::result::Result<(), LabError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    prepare_font()
}

fn prepare_font() -> std::result::Result<(), LabError> {
    let regular = plotters::style::register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    regular.map_err(|_| LabError("the font of the drawings cannot be read".into()))
}

fn failed(path: &Path, error: impl Display) -> LabError {
    LabError(format!("{} cannot be written: {error}: choose another --figures", path.display()))
}

/// Writes `folder/ID.svg` and `folder/ID.png`.
pub fn draw(folder: &Path, figure: &Figure) -> std::result::Result<(), LabError> {
    let path = folder.join(format!("{}.svg", figure.id));
    on(SVGBackend::new(&path, (WIDTH, HEIGHT)).into_drawing_area(), figure)
        .map_err(|error| failed(&path, error))?;
    let path = folder.join(format!("{}.png", figure.id));
    on(BitMapBackend::new(&path, (WIDTH, HEIGHT)).into_drawing_area(), figure)
        .map_err(|error| failed(&path, error))?;
    // The library does not report whether the last bytes were written.
    let written = std::fs::read(&path).map_err(|error| failed(&path, error))?;
    if written.ends_with(b"IEND\xAE\x42\x60\x82") {
        Ok(())
    } else {
        Err(failed(&path, "its end is missing"))
    }
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
type Drawn = Result<()>;

fn on<B: DrawingBackend>(area: DrawingArea<B, Shift>, figure: &Figure) -> Drawn
where
    B::ErrorType: 'static,
{
    area.fill(&WHITE)?;
    match &figure.content {
        Content::Lines { logarithmic, series } => {
            let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
            let top = head(&area, &figure.title, &names)?;
            let points = || series.iter().flat_map(|series| &series.points);
            let x = span(points().map(|point| point.0));
            let y = 0.0..1.1 * span(points().map(|point| point.1)).end;
            if *logarithmic {
                lines(&area, figure, series, top, x.log_scale(), y)?;
            } else {
                let beside = 0.02 * (x.end - x.start);
                lines(&area, figure, series, top, x.start - beside..x.end + beside, y)?;
            }
        }
        Content::Bars { parts, bars } => {
            let names: Vec<&str> = parts.iter().map(String::as_str).collect();
            // The vertical axis names a bar of one part.
            let top = head(&area, &figure.title, if names.len() > 1 { &names } else { &[] })?;
            self::bars(&area, figure, top, parts.len(), bars)?;
        }
    }
    area.present()?;
    Ok(())
}

/// Draws the title, and below it, where no data can lie, the legend.
///
/// Returns where the rest begins.
fn head<B: DrawingBackend>(area: &DrawingArea<B, Shift>, title: &str, names: &[&str]) -> Result<i32>
where
    B::ErrorType: 'static,
{
    let (size, _) = fitted(area, title, 22, ROOM)?;
    area.draw(&Text::new(title, (MIDDLE, 16), text(size, HPos::Center)))?;
    let mut entries = Vec::new();
    for name in names {
        entries.push(fitted(area, name, 16, ROOM - BOX)?);
    }
    let widths: Vec<_> = entries.iter().map(|(_, width)| BOX + width).collect();
    let places = in_rows(&widths);
    let mut bottom = 48;
    for (index, ((name, (size, _)), (x, row))) in names.iter().zip(entries).zip(places).enumerate()
    {
        let y = 48 + LEGEND_LINE * row;
        area.draw(&Rectangle::new([(x, y), (x + 14, y + 14)], color(index).filled()))?;
        area.draw(&Text::new(*name, (x + BOX, y + 2), text(size, HPos::Left)))?;
        bottom = y + LEGEND_LINE;
    }
    Ok(bottom + 12)
}

/// The left end and the row of each entry of a legend.
///
/// There are as few rows as can hold entries of these widths, about as many entries in each, and
/// each row is centred.
fn in_rows(widths: &[i32]) -> Vec<(i32, i32)> {
    let mut rows: Vec<&[i32]> = Vec::new();
    let (mut start, mut taken) = (0, 0);
    for (index, &width) in widths.iter().enumerate() {
        if index > start && taken + width > ROOM {
            rows.push(&widths[start..index]);
            (start, taken) = (index, 0);
        }
        taken += width + BETWEEN;
    }
    rows.extend((start < widths.len()).then(|| &widths[start..]));
    let wide = |row: &[i32]| row.iter().map(|width| width + BETWEEN).sum::<i32>() - BETWEEN;
    let even: Vec<&[i32]> =
        widths.chunks(widths.len().div_ceil(rows.len().max(1)).max(1)).collect();
    if even.iter().all(|row| wide(row) <= ROOM) {
        rows = even;
    }
    let mut places = Vec::new();
    for (row, number) in rows.into_iter().zip(0..) {
        let mut x = MIDDLE - wide(row) / 2;
        for width in row {
            places.push((x, number));
            x += width + BETWEEN;
        }
    }
    places
}

/// The largest letter size, at most `size`, in which `words` fit into `room`; and their width.
fn fitted<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    words: &str,
    mut size: u32,
    room: i32,
) -> Result<(u32, i32)>
where
    B::ErrorType: 'static,
{
    loop {
        let width = area.estimate_text_size(words, &text(size, HPos::Left))?.0 as i32;
        if width <= room || size <= 8 {
            return Ok((size, width));
        }
        size -= 1;
    }
}

/// Black text whose upper edge is at its place.
fn text(size: u32, across: HPos) -> TextStyle<'static> {
    (FONT, size).into_font().color(&BLACK).pos(Pos::new(across, VPos::Top))
}

/// The part of the drawing below its head.
fn builder<'a, 'b, B: DrawingBackend>(
    area: &'a DrawingArea<B, Shift>,
    top: i32,
    below: i32,
) -> ChartBuilder<'a, 'b, B> {
    let mut builder = ChartBuilder::on(area);
    // Half of the last number of a horizontal axis lies to the right of it.
    builder
        .margin(16)
        .margin_right(48)
        .margin_top(top)
        .x_label_area_size(below)
        .y_label_area_size(100);
    builder
}

fn span(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    // An axis needs a length.
    if least < most { least..most } else { 0.0..most.max(1.0) }
}

fn color(index: usize) -> RGBColor {
    const COLORS: [RGBColor; 8] = [
        RGBColor(0x1F, 0x77, 0xB4),
        RGBColor(0xE6, 0x7E, 0x22),
        RGBColor(0x2C, 0xA0, 0x2C),
        RGBColor(0x94, 0x4B, 0xBB),
        RGBColor(0xC0, 0x39, 0x2B),
        RGBColor(0x55, 0x55, 0x55),
        RGBColor(0x17, 0xA5, 0xB8),
        RGBColor(0x8C, 0x6D, 0x31),
    ];
    COLORS[index % COLORS.len()]
}

/// Formats a number: commas between thousands, an exponent from a thousand million on.
///
/// Rounding errors of binary fractions are left out.
fn short(value: &f64) -> String {
    if *value >= 1e9 {
        return format!("{value:e}");
    }
    let text = format!("{}", (value * 1e6).round() / 1e6);
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Rounds to three digits, or to a whole number if that has more.
fn rounded(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 2.0).min(1.0);
    if value > 0.0 { (value / unit).round() * unit } else { value }
}

fn lines<B: DrawingBackend, X>(
    area: &DrawingArea<B, Shift>,
    figure: &Figure,
    series: &[Series],
    top: i32,
    x: X,
    y: Range<f64>,
) -> Drawn
where
    B::ErrorType: 'static,
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = builder(area, top, 60).build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .x_label_formatter(&short)
        .y_label_formatter(&short)
        .label_style((FONT, 16))
        .axis_desc_style((FONT, 18))
        .draw()?;
    for (index, line) in series.iter().enumerate() {
        // Where lines overlap, the lower ones are visible at the sides.
        let width = 2 * (series.len() - index).min(3) as u32;
        let style = color(index).stroke_width(width);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        // Draw the points themselves where there are few.
        let dots = line.points.iter().filter(|_| line.points.len() <= 40);
        chart.draw_series(dots.map(|&at| Circle::new(at, width + 2, color(index).filled())))?;
    }
    Ok(())
}

/// The bars of one group: the common part of their names, and where the group begins.
struct Group<'b> {
    name: &'b str,
    start: f64,
    bars: Vec<(&'b str, &'b Bar)>,
}

/// The gap between two groups, in widths of a bar.
const GAP: f64 = 0.5;

/// Groups bars whose labels differ in the last word only.
fn groups(bars: &[Bar]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut start = GAP;
    for bar in bars {
        let (name, last) = bar.label.rsplit_once(' ').unwrap_or(("", &bar.label));
        match groups.last_mut().filter(|group| group.name == name) {
            Some(group) => group.bars.push((last, bar)),
            None => {
                start += if groups.is_empty() { 0.0 } else { GAP };
                groups.push(Group { name, start, bars: vec![(last, bar)] });
            }
        }
        start += 1.0;
    }
    groups
}

/// The words of a name, each in the lines that it takes: a long one is broken at its hyphens.
fn lines_of(name: &str) -> Vec<Vec<&str>> {
    let lines = |word| match word {
        word if str::len(word) > 12 => word.split_inclusive('-').collect(),
        word => vec![word],
    };
    name.split(' ').map(lines).collect()
}

type BarChart<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn bars<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    figure: &Figure,
    top: i32,
    parts: usize,
    bars: &[Bar],
) -> Drawn
where
    B::ErrorType: 'static,
{
    let groups = groups(bars);
    let end = groups.last().map_or(1.0, |group| group.start + group.bars.len() as f64 + GAP);
    let total = |bar: &Bar| bar.parts.iter().sum::<f64>();
    let highest = span(bars.iter().map(total)).end;
    let names: Vec<_> = groups.iter().map(|group| lines_of(group.name)).collect();
    let words = names.iter().map(Vec::len).max().unwrap_or(0);
    // Words of one place are in the same lines in all groups.
    let height = |word: usize| names.iter().filter_map(|name| Some(name.get(word)?.len())).max();
    let heights: Vec<_> = (0..words).map(|word| height(word).unwrap_or(1) as i32).collect();
    let below = 24 + LINE * (heights.iter().sum::<i32>() + 2);
    let mut chart = builder(area, top, below).build_cartesian_2d(0.0..end, 0.0..1.1 * highest)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(0)
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .y_label_formatter(&short)
        .label_style((FONT, 16))
        .axis_desc_style((FONT, 18))
        .draw()?;
    for (group, name) in groups.iter().zip(&names) {
        for (index, (name, bar)) in group.bars.iter().enumerate() {
            let (left, mut bottom) = (group.start + index as f64, 0.0);
            for part in 0..parts {
                let above = bottom + bar.parts[part];
                let corners = [(left + 0.05, bottom), (left + 0.95, above)];
                chart.draw_series([Rectangle::new(corners, color(part).filled())])?;
                bottom = above;
            }
            label(area, &chart, (left + 0.5, 0.0), 6, 1.0, name)?;
            let height = short(&rounded(total(bar)));
            label(area, &chart, (left + 0.5, total(bar)), -LINE, 1.0, &height)?;
        }
        let width = group.bars.len() as f64;
        let mut below = 1;
        for (lines, height) in name.iter().zip(&heights) {
            for (line, part) in (below..).zip(lines) {
                let at = (group.start + width / 2.0, 0.0);
                label(area, &chart, at, 8 + LINE * line, width + GAP, part)?;
            }
            below += height;
        }
    }
    Ok(())
}

/// Writes `words` `down` pixels below a place of the chart.
///
/// The letters are so small that the words are no wider than `width` bars.
fn label<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    chart: &BarChart<'_, B>,
    place: (f64, f64),
    down: i32,
    width: f64,
    words: &str,
) -> Drawn
where
    B::ErrorType: 'static,
{
    let at = |x: f64| chart.plotting_area().map_coordinate(&(x, place.1));
    let room = at(place.0 + width / 2.0).0 - at(place.0 - width / 2.0).0;
    let (size, _) = fitted(area, words, 15, room)?;
    let (x, y) = at(place.0);
    area.draw(&Text::new(words, (x, y + down), text(size, HPos::Center)))?;
    Ok(())
}

#[cfg(test)]
mod tests;
