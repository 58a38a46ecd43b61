//! Draws a figure into a folder, as SVG and as PNG. The font is built in, so that drawings are the same everywhere.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use nandina_lab::LabError;
use nandina_lab::reproduce::figure::{Bar, Content, Figure, Series};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

const FONT: &str = "sans-serif";
const WIDTH: u32 = 960;
const HEIGHT: u32 = 600;

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
            let points = || series.iter().flat_map(|series| &series.points);
            let x = span(points().map(|point| point.0));
            let y = 0.0..1.1 * span(points().map(|point| point.1)).end;
            if *logarithmic {
                lines(&area, figure, series, x.log_scale(), y)?;
            } else {
                lines(&area, figure, series, 0.0..x.end, y)?;
            }
        }
        Content::Bars { parts, bars } => self::bars(&area, figure, parts, bars)?,
    }
    area.present()?;
    Ok(())
}

fn span(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    // An axis needs a length.
    if least < most { least..most } else { 0.0..most.max(1.0) }
}

fn color(index: usize) -> RGBColor {
    [RGBColor(0x1F, 0x77, 0xB4), RGBColor(0xE6, 0x7E, 0x22), RGBColor(0x2C, 0xA0, 0x2C)]
        .get(index)
        .copied()
        .unwrap_or(BLACK)
}

/// Thousands and millions as powers of ten.
fn short(value: &f64) -> String {
    if *value >= 1e4 { format!("{value:e}") } else { format!("{value}") }
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
    let mut chart = ChartBuilder::on(area)
        .caption(&figure.title, (FONT, 22))
        .margin(16)
        .x_label_area_size(50)
        .y_label_area_size(70)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(&figure.x)
        .y_desc(&figure.y)
        .x_label_formatter(&short)
        .y_label_formatter(&short)
        .label_style((FONT, 15))
        .axis_desc_style((FONT, 17))
        .draw()?;
    for (index, line) in series.iter().enumerate() {
        let style = color(index).stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .label_font((FONT, 16))
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

fn bars<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    figure: &Figure,
    parts: &[String],
    bars: &[Bar],
) -> Drawn
where
    B::ErrorType: 'static,
{
    let highest = span(bars.iter().map(|bar| bar.parts.iter().sum())).end;
    let count = bars.len();
    let mut chart = ChartBuilder::on(area)
        .caption(&figure.title, (FONT, 22))
        .margin(16)
        .x_label_area_size(190)
        .y_label_area_size(70)
        .build_cartesian_2d((0..count).into_segmented(), 0.0..1.1 * highest)?;
    let label = |place: &SegmentValue<usize>| match place {
        SegmentValue::CenterOf(index) => {
            bars.get(*index).map_or_else(String::new, |bar| bar.label.clone())
        }
        _ => String::new(),
    };
    let upright = FontTransform::Rotate90;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(count)
        .x_label_formatter(&label)
        .x_label_style((FONT, 13).into_font().transform(upright))
        .y_desc(&figure.y)
        .y_label_formatter(&short)
        .label_style((FONT, 15))
        .axis_desc_style((FONT, 17))
        .draw()?;
    for (part, name) in parts.iter().enumerate() {
        let style = color(part).filled();
        let boxes = bars.iter().enumerate().map(|(index, bar)| {
            let below: f64 = bar.parts[..part].iter().sum();
            let (left, right) = (SegmentValue::Exact(index), SegmentValue::Exact(index + 1));
            let corners = [(left, below), (right, below + bar.parts[part])];
            let mut rectangle = Rectangle::new(corners, style);
            rectangle.set_margin(0, 0, 8, 8);
            rectangle
        });
        chart
            .draw_series(boxes)?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 6), (x + 14, y + 6)], style));
    }
    if parts.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font((FONT, 16))
            .background_style(WHITE)
            .draw()?;
    }
    Ok(())
}
