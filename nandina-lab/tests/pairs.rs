//! Pairs of values and records: values of different lengths are never mixed where the length was
//! fixed.

use nandina::flash::profile::DATAFLASH;
use nandina::store::{Mu, VmOw};
use nandina::{Index, Options, PairError, Removed, System, ram_needed};
use nandina_sim::Chip;

fn with_index<S: System>(options: Options, test: fn(&mut Index<'_, &mut Chip, S>)) {
    let mut chip = Chip::new(DATAFLASH);
    let mut ram = vec![0; ram_needed::<S>(&DATAFLASH.geometry, &options)];
    test(&mut Index::<_, S>::format(&mut chip, &options, &mut ram).unwrap());
}

#[test]
fn find_all_of_pairs_never_returns_records_of_a_longer_value() {
    fn lengths<S: System>(index: &mut Index<'_, &mut Chip, S>) {
        // Without a fixed length, a prefix finds the records of longer values.
        index.insert_pair(b"ab", b"recrd1").unwrap();
        index.insert_pair(b"abc", b"recd2").unwrap();
        let mut mixed = index.find_all(b"ab").unwrap();
        assert_eq!(mixed.next().unwrap(), Some(&b"crecd2"[..]));
        assert_eq!(mixed.next().unwrap(), Some(&b"recrd1"[..]));
        assert_eq!(mixed.next().unwrap(), None);
        index.remove_pair(b"abc", b"recd2").unwrap();

        let mut pairs = index.pairs(2).unwrap();
        let longer = || PairError::ValueSize { expected: 2, given: 3 };
        assert_eq!(pairs.insert(b"abc", b"recd2"), Err(longer()));
        assert_eq!(pairs.remove(b"abc", b"recd2"), Err(longer()));
        assert_eq!(pairs.move_pair(b"abc", b"ab", b"recd2"), Err(longer()));
        assert_eq!(pairs.move_pair(b"ab", b"abc", b"recrd1"), Err(longer()));
        assert_eq!(
            longer().to_string(),
            "a value of 3 bytes was given, these pairs have values of 2"
        );
        let longer = PairError::ValueSize { expected: 2, given: 3 };
        assert_eq!(pairs.find_all(b"abc").map(drop), Err(longer));
        let record = PairError::RecordSize { expected: 6, given: 5 };
        assert_eq!(pairs.insert(b"ab", b"recd2"), Err(record));

        pairs.insert(b"ac", b"recrd2").unwrap();
        pairs.move_pair(b"ac", b"ab", b"recrd2").unwrap();
        pairs.insert(b"ad", b"recrd3").unwrap();
        assert_eq!(pairs.remove(b"ad", b"recrd3"), Ok(Removed::Found));
        let mut found = pairs.find_all(b"ab").unwrap();
        assert_eq!(found.next().unwrap(), Some(&b"recrd1"[..]));
        assert_eq!(found.next().unwrap(), Some(&b"recrd2"[..]));
        assert_eq!(found.next().unwrap(), None);
        assert_eq!(index.len(), 2);
    }
    with_index::<Mu>(Options::new(8, 0), lengths);
    with_index::<VmOw>(Options::new(8, 0), lengths);
}

#[test]
fn pairs_are_refused_by_an_index_that_cannot_hold_them() {
    with_index::<Mu>(Options::new(8, 0), |index| {
        for pair_value_bytes in [0, 8, 9] {
            let unsuited = PairError::Unsuited { pair_value_bytes, key_bytes: 8, value_bytes: 0 };
            assert_eq!(index.pairs(pair_value_bytes).map(drop), Err(unsuited));
        }
    });
    with_index::<Mu>(Options::new(8, 4), |index| {
        let unsuited = PairError::Unsuited { pair_value_bytes: 2, key_bytes: 8, value_bytes: 4 };
        assert_eq!(index.pairs(2).map(drop), Err(unsuited));
    });
}
