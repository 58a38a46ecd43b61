//! A figure as data: enough to draw it, and readable by a program.

use serde::Serialize;

/// A drawing's name, axes and content.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// Its name, such as `figure7`; also the file name.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What the horizontal axis is, with its unit.
    pub x: String,
    /// What the vertical axis is, with its unit.
    pub y: String,
    /// The content between the axes.
    pub content: Content,
}

/// The content of a figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A line for each series of points.
    Lines {
        /// The horizontal axis is logarithmic.
        logarithmic: bool,
        /// The lines.
        series: Vec<Series>,
    },
    /// Bars side by side, each of stacked parts.
    Bars {
        /// The name of each part.
        parts: Vec<String>,
        /// The bars from left to right.
        bars: Vec<Bar>,
    },
}

/// A line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A bar.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// Its parts from the bottom up, as many as the figure has.
    pub parts: Vec<f64>,
}
