//! Draws a figure into a folder, as SVG and as PNG. The font is built in, so that drawings are the same everywhere.

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
/// The height of a line of labels.
const LINE: i32 = 20;

/// Makes the folder and the font ready.
pub fn prepare(folder: &Path) -> Result<(), LabError> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let regular = plotters::style::register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    regular.map_err(|_| LabError("the font of the drawings cannot be read".into()))
}

fn failed(path: &Path, error: impl Display) -> LabError {
    LabError(format!("{} cannot be written: {error}: choose another --figures", path.display()))
}

/// Writes `folder/ID.svg` and `folder/ID.png`.
pub fn draw(folder: &Path, figure: &Figure) -> Result<(), LabError> {
    let path = folder.join(format!("{}.svg", figure.id));
    on(SVGBackend::new(&path, (WIDTH, HEIGHT)).into_drawing_area(), figure)
        .map_err(|error| failed(&path, error))?;
    let path = folder.join(format!("{}.png", figure.id));
    on(BitMapBackend::new(&path, (WIDTH, HEIGHT)).into_drawing_area(), figure)
        .map_err(|error| failed(&path, error))
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn on<B: DrawingBackend>(area: DrawingArea<B, Shift>, figure: &Figure) -> Drawn
where
    B::ErrorType: 'static,
{
    area.fill(&WHITE)?;
    match &figure.content {
        Content::Lines { logarithmic, series } => {
            let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
            head(&area, &figure.title, &names)?;
            let points = || series.iter().flat_map(|series| &series.points);
            let x = span(points().map(|point| point.0));
            let y = 0.0..1.1 * span(points().map(|point| point.1)).end;
            if *logarithmic {
                lines(&area, figure, series, x.log_scale(), y)?;
            } else {
                lines(&area, figure, series, 0.0..1.02 * x.end, y)?;
            }
        }
        Content::Bars { parts, bars } => {
            let names: Vec<&str> = parts.iter().map(String::as_str).collect();
            // The vertical axis says what a bar of one part is.
            head(&area, &figure.title, if names.len() > 1 { &names } else { &[] })?;
            self::bars(&area, figure, parts.len(), bars)?;
        }
    }
    area.present()?;
    Ok(())
}

/// The title, and below it, where no data can lie, what each colour is.
fn head<B: DrawingBackend>(area: &DrawingArea<B, Shift>, title: &str, names: &[&str]) -> Drawn
where
    B::ErrorType: 'static,
{
    let middle = WIDTH as i32 / 2;
    area.draw(&Text::new(title, (middle, 16), text(22, HPos::Center)))?;
    let style = text(16, HPos::Left);
    let (box_width, gap) = (22, 28);
    let mut widths = Vec::new();
    for name in names {
        widths.push(box_width + area.estimate_text_size(name, &style)?.0 as i32 + gap);
    }
    let mut x = middle - (widths.iter().sum::<i32>() - gap) / 2;
    for (index, (name, width)) in names.iter().zip(widths).enumerate() {
        area.draw(&Rectangle::new([(x, 48), (x + 14, 62)], color(index).filled()))?;
        area.draw(&Text::new(*name, (x + box_width, 50), style.clone()))?;
        x += width;
    }
    Ok(())
}

/// Black text whose upper edge is at its place.
fn text(size: u32, across: HPos) -> TextStyle<'static> {
    (FONT, size).into_font().color(&BLACK).pos(Pos::new(across, VPos::Top))
}

/// The part of the drawing below its head.
fn builder<'a, 'b, B: DrawingBackend>(
    area: &'a DrawingArea<B, Shift>,
    below: i32,
) -> ChartBuilder<'a, 'b, B> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(16).margin_top(84).x_label_area_size(below).y_label_area_size(90);
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

/// Large numbers as powers of ten, others without the crumbs of binary fractions.
fn short(value: &f64) -> String {
    if *value >= 1e5 { format!("{value:e}") } else { format!("{}", (value * 1e6).round() / 1e6) }
}

/// With three digits, or as a whole number if that has more.
fn rounded(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 2.0).min(1.0);
    if value > 0.0 { (value / unit).round() * unit } else { value }
}

fn lines<B: DrawingBackend, X>(
    area: &DrawingArea<B, Shift>,
    figure: &Figure,
    series: &[Series],
    x: X,
    y: Range<f64>,
) -> Drawn
where
    B::ErrorType: 'static,
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = builder(area, 60).build_cartesian_2d(x, y)?;
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
        // Where lines lie on each other, the ones below are seen at the sides.
        let width = 2 * (series.len() - index).min(3) as u32;
        let style = color(index).stroke_width(width);
        chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        // The points themselves, where there are few.
        let dots = line.points.iter().filter(|_| line.points.len() <= 40);
        chart.draw_series(dots.map(|&at| Circle::new(at, width + 2, color(index).filled())))?;
    }
    Ok(())
}

/// The bars of one group: what they share of their names, and where the group begins.
struct Group<'b> {
    name: &'b str,
    start: f64,
    bars: Vec<(&'b str, &'b Bar)>,
}

/// Between two groups, in widths of a bar.
const GAP: f64 = 0.5;

/// Bars belong together if their labels differ in the last word only.
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

type BarChart<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn bars<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    figure: &Figure,
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
    let words = groups.iter().map(|group| group.name.split(' ').count()).max().unwrap_or(0) as i32;
    let below = 24 + LINE * (words + 2);
    let mut chart = builder(area, below).build_cartesian_2d(0.0..end, 0.0..1.1 * highest)?;
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
    for group in &groups {
        for (index, (name, bar)) in group.bars.iter().enumerate() {
            let (left, mut bottom) = (group.start + index as f64, 0.0);
            for part in 0..parts {
                let top = bottom + bar.parts[part];
                let corners = [(left + 0.05, bottom), (left + 0.95, top)];
                chart.draw_series([Rectangle::new(corners, color(part).filled())])?;
                bottom = top;
            }
            label(area, &chart, (left + 0.5, 0.0), 6, 1.0, name)?;
            let height = short(&rounded(total(bar)));
            label(area, &chart, (left + 0.5, total(bar)), -LINE, 1.0, &height)?;
        }
        let width = group.bars.len() as f64;
        for (line, word) in group.name.split(' ').enumerate() {
            let down = 8 + LINE * (line as i32 + 1);
            label(area, &chart, (group.start + width / 2.0, 0.0), down, width, word)?;
        }
    }
    Ok(())
}

/// Writes `words` `down` pixels below a place of the chart, in letters so small that they are no wider
/// than `width` bars.
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
    let mut size = 15;
    while size > 8 && area.estimate_text_size(words, &text(size, HPos::Center))?.0 as i32 > room {
        size -= 1;
    }
    let (x, y) = at(place.0);
    area.draw(&Text::new(words, (x, y + down), text(size, HPos::Center)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_in_groups_with_a_gap_between_them() {
        let labels = ["mp3 0KB wandering", "mp3 0KB mu", "postmark 0KB mu", "alone"];
        let bars = labels.map(|label| Bar { label: label.into(), parts: vec![1.0] });
        let groups = groups(&bars);
        let names: Vec<_> = groups.iter().map(|group| (group.name, group.start)).collect();
        assert_eq!(
            names,
            [("mp3 0KB", GAP), ("postmark 0KB", 2.0 + 2.0 * GAP), ("", 3.0 + 3.0 * GAP)]
        );
        let first: Vec<_> = groups[0].bars.iter().map(|(name, _)| *name).collect();
        assert_eq!(first, ["wandering", "mu"]);
    }

    #[test]
    fn numbers_are_written_short_and_never_as_nothing() {
        let written =
            [0.0, 0.0412, 0.7349, 45.0, 86.96, 1234.4].map(|value| short(&rounded(value)));
        assert_eq!(written, ["0", "0.0412", "0.735", "45", "87", "1234"]);
        assert_eq!((short(&(0.1 + 0.2)), short(&1e6)), ("0.3".into(), "1e6".into()));
    }
}
