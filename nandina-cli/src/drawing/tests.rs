//! Where the parts of a drawing are, and how numbers are written.

use super::*;

#[test]
fn bars_stand_in_groups_with_a_gap_between_them() {
    let labels = ["mp3 0KB wandering", "mp3 0KB mu", "postmark 0KB mu", "alone"];
    let bars = labels.map(|label| Bar { label: label.into(), parts: vec![1.0] });
    let groups = groups(&bars);
    let names: Vec<_> = groups.iter().map(|group| (group.name, group.start)).collect();
    assert_eq!(names, [("mp3 0KB", GAP), ("postmark 0KB", 2.0 + 2.0 * GAP), ("", 3.0 + 3.0 * GAP)]);
    let first: Vec<_> = groups[0].bars.iter().map(|(name, _)| *name).collect();
    assert_eq!(first, ["wandering", "mu"]);
}

#[test]
fn a_legend_of_many_names_is_not_cut_off_at_the_edges() {
    for (count, width) in [(8, 210), (3, 300), (40, 333), (1, ROOM), (0, 0)] {
        let places = in_rows(&vec![width; count]);
        assert_eq!(places.len(), count);
        for (index, &(x, row)) in places.iter().enumerate() {
            assert!(x >= 16 && x + width <= WIDTH as i32 - 16, "{index}: {x}");
            let before = index.checked_sub(1).map(|before| places[before]);
            if let Some((left, above)) = before {
                assert!(row == above + 1 || left + width + BETWEEN <= x, "{index}: {x}");
            }
        }
    }
    let rows: Vec<_> = in_rows(&[210; 8]).into_iter().map(|place| place.1).collect();
    assert_eq!(rows, [0, 0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn numbers_are_written_short_and_never_as_nothing() {
    let written = [0.0, 0.0412, 0.7349, 45.0, 86.96, 1234.4].map(|value| short(&rounded(value)));
    assert_eq!(written, ["0", "0.0412", "0.735", "45", "87", "1,234"]);
    let written = [0.1 + 0.2, 1e6, 151_668.0, -1234.5].map(|value| short(&value));
    assert_eq!(written, ["0.3", "1,000,000", "151,668", "-1,234.5"]);
}

#[test]
fn no_text_of_a_drawing_is_cut_off() {
    let series = |name: &str| Series { name: name.into(), points: vec![(3.0, 1e6), (10.0, 2e6)] };
    // Those of Figure 10 of the VMTree paper.
    let names = ["random", "random log1", "temperature", "temperature log1"];
    let names = ["btree", "vm"].map(|system| names.map(|name| format!("{system} {name}")));
    let lines = Content::Lines {
        logarithmic: false,
        series: names.as_flattened().iter().map(|name| series(name)).collect(),
    };
    let label = |turn: usize| format!("sd-2k minute-temperature L{} vm{turn}", turn / 2);
    let bars = (0..16).map(|turn| Bar { label: label(turn), parts: vec![151_668.0] }).collect();
    let bars = Content::Bars { parts: vec!["pages".into()], bars };
    let heights = vec![Series { name: "height".into(), points: vec![(1.0, 1.0), (1e9, 5.0)] }];
    let heights = Content::Lines { logarithmic: true, series: heights };
    let records = vec![Series { name: "height".into(), points: vec![(1.0, 1.0), (1e8, 5.0)] }];
    let records = Content::Lines { logarithmic: true, series: records };
    for content in [lines, bars, heights, records] {
        let figure = Figure {
            id: "figure".into(),
            title: "A title that says all that a drawing shows ".repeat(3),
            x: "pages of RAM".into(),
            y: "inserts a second".into(),
            content,
        };
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        prepare_font().unwrap();
        on(area, &figure).unwrap();
        texts_lie_within(&svg);
    }
}

/// Checks that no text is cut off at the left or right edge.
///
/// A letter is about half as wide as it is high.
fn texts_lie_within(svg: &str) {
    let mut texts = 0;
    for (tag, rest) in svg.split("<text ").skip(1).filter_map(|text| text.split_once('>')) {
        // Rotated text runs along the side.
        if tag.contains("rotate") {
            continue;
        }
        let attribute = |name: &str| {
            let after = tag.split(&format!("{name}=\"")).nth(1).unwrap_or_default();
            after.split('"').next().unwrap_or_default()
        };
        let number = |name: &str| attribute(name).parse::<f64>().unwrap();
        let words = rest.split("</text").next().unwrap_or_default().trim();
        let (x, width) = (number("x"), words.chars().count() as f64 * number("font-size") / 2.0);
        let left = match attribute("text-anchor") {
            "start" => x,
            "middle" => x - width / 2.0,
            "end" => x - width,
            other => panic!("an anchor '{other}'"),
        };
        assert!(left >= 0.0 && left + width <= f64::from(WIDTH), "'{words}' is cut off: {tag}");
        texts += 1;
    }
    assert!(texts > 10, "{texts} texts");
}
