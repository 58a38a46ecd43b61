//! Ends of sessions of `btree` that a cut tears, and that later mounts read differently.
//!
//! The end of a session is a page that says that the checkpoint before it counts. Whether a mount
//! sees it or not, every change must be found.

use nandina::store::BTree;
use nandina::{OpenError, Options, ram_needed};
use nandina_sim::ChipError;

use crate::sessions::{Card, Shown, Torn, put, value};

const OPTIONS: Options = Options::new(4, 60).checkpoints(1);

/// Records of a full card, of value 0.
const RECORDS: u32 = 40;

fn ram(card: &Torn) -> Vec<u8> {
    vec![0; ram_needed::<BTree>(&card.chip.profile().geometry, &OPTIONS)]
}

/// A card whose index was closed.
fn closed() -> Torn {
    let mut card = Torn::new();
    let mut ram = ram(&card);
    let mut index = Card::format(&mut card, &OPTIONS, &mut ram).unwrap();
    for number in 0..RECORDS {
        put(&mut index, number, 0).unwrap();
    }
    index.close();
    card
}

/// What became of the change of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Made,
    /// Power failed while it was made.
    Cut,
    /// Power failed before.
    NotBegun,
}

/// Opens the index, gives record `number` the value `to`, and closes the index.
///
/// Power fails at the rewrite after `left` others, if that is reached.
fn session(card: &mut Torn, shown: Shown, left: Option<u32>, number: u32, to: u8) -> Change {
    card.shown = shown;
    card.left.set(left);
    let mut ram = ram(card);
    let change = match Card::open(card, &OPTIONS, &mut ram) {
        Ok(mut index) => {
            let made = put(&mut index, number, to).is_ok();
            if made {
                index.close();
            }
            if made { Change::Made } else { Change::Cut }
        }
        Err(OpenError::Device(ChipError::PowerLost)) => Change::NotBegun,
        Err(error) => panic!("{error:?}"),
    };
    card.left.set(None);
    change
}

/// Opens the index and returns the value of each record, and whether it came from a checkpoint.
fn found(card: &mut Torn, shown: Shown) -> (Vec<u8>, bool) {
    card.shown = shown;
    let mut ram = ram(card);
    let mut index = Card::open(card, &OPTIONS, &mut ram).unwrap();
    let values = (0..RECORDS).map(|number| value(&mut index, number).unwrap()).collect();
    let mut violations = Vec::new();
    index.check(|violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
    assert_eq!(index.len(), RECORDS);
    (values, index.statistics().from_checkpoint)
}

/// Mounts with its torn pages `shown` this way: it finds the records of `model`.
///
/// Of a record whose change was cut, it may find the old value or the new one. From then on that
/// is its value. Returns whether it was a mount from a checkpoint.
fn agree(card: &mut Torn, shown: Shown, model: &mut [u8], cut: Option<(u32, u8)>) -> bool {
    let (values, from_checkpoint) = found(card, shown);
    if let Some((number, to)) = cut
        && values[number as usize] == to
    {
        model[number as usize] = to;
    }
    assert_eq!(values, model);
    from_checkpoint
}

#[test]
fn a_torn_end_of_a_session_that_comes_and_goes_hides_no_change() {
    let closed = closed();
    let (mut torn, mut from_checkpoints, mut mounts) = (0, 0, 0);
    let all = [Shown::Old, Shown::New, Shown::Both];
    // A session writes its first page, a leaf, a page of the checkpoint, and its end.
    for (first, second) in (0..5).flat_map(|first| (0..8).map(move |second| (first, second))) {
        for shown in (0..27).map(|case| [all[case % 3], all[case / 3 % 3], all[case / 9]]) {
            let mut card = Torn { chip: closed.chip.clone(), ..Torn::new() };
            let mut model = vec![0; RECORDS as usize];
            let mut before = Shown::Old;
            for (turn, left) in [Some(first), Some(second), None].into_iter().enumerate() {
                let (number, to) = (7 + turn as u32 * 13, turn as u8 + 1);
                let change = session(&mut card, before, left, number, to);
                if change == Change::Made {
                    model[number as usize] = to;
                }
                torn += u32::from(!card.torn.is_empty());
                let cut = (change == Change::Cut).then_some((number, to));
                before = shown[turn];
                from_checkpoints += u32::from(agree(&mut card, before, &mut model, cut));
                mounts += 1;
            }
        }
    }
    assert!(torn > 1_000, "{torn} torn");
    assert!(from_checkpoints > mounts / 4, "{from_checkpoints} of {mounts} from checkpoints");
    assert!(from_checkpoints < mounts * 3 / 4, "{from_checkpoints} of {mounts} from checkpoints");
}
