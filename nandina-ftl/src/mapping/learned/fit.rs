//! Learning: a line near points, with a bounded error.
//!
//! Slopes are from 0 to 1 and the line begins at the first point, as in piecewise linear regression
//! with greedy cones. All arithmetic is that of the prediction, so the bound holds exactly.

use super::segment::{FRACTION, Point, Segment, distance};

/// A segment that predicts every point with an error of at most `error`, if there is one.
///
/// The units of the points rise. The units are those of `owner`.
pub(super) fn line(points: &[Point], error: u32, owner: u8) -> Option<Segment> {
    let (first, last) = (points.first()?, points.last()?);
    // The cone of slopes that lead near every point, in parts of 2^FRACTION.
    let (mut low, mut high) = (0i64, 1i64 << FRACTION);
    for point in &points[1..] {
        let run = i64::from(point.unit - first.unit);
        let rise = i64::from(point.physical.wrapping_sub(first.physical) as i32);
        let slope = |rise: i64| rise * (1 << FRACTION) / run;
        low = low.max(slope(rise - i64::from(error)));
        high = high.min(slope(rise + i64::from(error)));
    }
    if low > high {
        return None;
    }
    let slope = ((low + high) / 2) as u32;
    let segment = Segment::approximate(first.unit, last.unit, slope, first.physical, owner);
    let near = |point: &Point| distance(segment.predict(point.unit), point.physical) <= error;
    points.iter().all(near).then_some(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_further_off_than_allowed() {
        let mut number = 1u32;
        let mut found = 0;
        for _ in 0..20_000 {
            let mut points = [Point::default(); 5];
            let (mut unit, mut physical) = (0, number >> 8);
            for point in &mut points {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                unit += 1 + (number >> 24) as u8 % 40;
                physical = physical.wrapping_add(number >> 12 & 15);
                *point = Point { unit, physical };
            }
            if let Some(segment) = line(&points, 4, 1) {
                found += 1;
                for point in points {
                    assert!(distance(segment.predict(point.unit), point.physical) <= 4);
                }
            }
        }
        assert!(found > 1000, "{found}");
        // No line rises by more than 1 a unit, or falls.
        let steep = [Point { unit: 0, physical: 0 }, Point { unit: 1, physical: 7 }];
        assert_eq!(line(&steep, 4, 1), None);
        let falling = [Point { unit: 0, physical: 9 }, Point { unit: 8, physical: 0 }];
        assert_eq!(line(&falling, 4, 1), None);
    }
}
