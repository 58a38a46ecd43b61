//! A figure as data: what a drawing of it needs, and a program can read.

use serde::Serialize;

/// A drawing's name, axes and content.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// Its name, such as `figure7`; of a file too.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What the horizontal axis is, with its unit.
    pub x: String,
    /// What the vertical axis is, with its unit.
    pub y: String,
    /// What stands between the axes.
    pub content: Content,
}

/// What a figure shows.
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
    /// Bars side by side, each of parts that stand on each other.
    Bars {
        /// What each part is.
        parts: Vec<String>,
        /// The bars from left to right.
        bars: Vec<Bar>,
    },
}

/// A line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A bar.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bar {
    /// What it is.
    pub label: String,
    /// Its parts from the bottom up, as many as the figure has.
    pub parts: Vec<f64>,
}
