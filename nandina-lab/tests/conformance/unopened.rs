//! An index that is opened where it stays, again and again.

use nandina::store::Description;
use nandina::{OpenError, System, Unopened};
use nandina_lab::torn::{Shown, Torn};
use nandina_sim::{Chip, ChipError};

use crate::formats::filled;
use crate::harness::*;

const RECORDS: u32 = 40;

/// Puts `records` records into the index and compares it with a model.
fn put<S: System>(index: &mut OnBus<'_, S>, model: &mut Model, version: u32) -> Outcome {
    for number in 0..RECORDS {
        let (key, value) = (key(number * version), value(number, version));
        index.insert(&key, &value).map_err(text)?;
        model.insert(key.to_vec(), value.to_vec());
    }
    index.flush().map_err(text)?;
    compare(index, model)
}

/// With a write buffer of so many pages, and a write cache.
struct InPlace {
    write_buffer: usize,
    write_cache: usize,
}

impl Check for InPlace {
    fn concerns(&self, system: &Description) -> bool {
        (self.write_buffer == 0 || system.has_write_buffer())
            && (self.write_cache == 0 || system.has_write_cache())
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let mut case = Case::new(LONG);
        (case.options.write_buffer, case.options.write_cache) =
            (self.write_buffer, self.write_cache);
        let case = case.suited::<S>();
        let mut ram = case.ram::<S>();
        let mut chip = Torn::new(Chip::new(case.profile));
        let mut model = Model::new();
        let device: &mut dyn Bus = &mut chip;
        let mut place = Unopened::<_, S>::new(device, &case.options, &mut ram).map_err(text)?;
        match place.open().map(drop) {
            Err(OpenError::Blank) => {}
            other => return Err(format!("a blank chip: {other:?}")),
        }
        put::<S>(place.format().map_err(text)?, &mut model, 1)?;
        // An index in use is mounted again.
        for version in [2, 3] {
            let index = place.open().map_err(text)?;
            compare(index, &model)?;
            put::<S>(index, &mut model, version)?;
        }
        // So it is after a format over it, which leaves nothing that was pending.
        let index = place.open().map_err(text)?;
        for number in 0..5 {
            index.insert(&key(number), &value(number, 9)).map_err(text)?;
        }
        let index = place.format().map_err(text)?;
        model.clear();
        compare(index, &model)?;
        index.flush().map_err(text)?;
        compare(index, &model)?;
        put::<S>(index, &mut model, 4)?;
        place.close();
        compare(&mut open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?, &model)
    }
}

#[test]
fn an_index_is_formatted_and_opened_again_where_it_stays() {
    for (write_buffer, write_cache) in [(0, 0), (1, 0), (0, 4), (1, 4)] {
        for_every_system(&InPlace { write_buffer, write_cache });
    }
}

struct AfterAnError;

impl Check for AfterAnError {
    fn concerns(&self, system: &Description) -> bool {
        is_log(system)
    }

    fn run<S: System + 'static>(&self) -> Outcome {
        let case = Case::new(LONG).suited::<S>();
        let mut ram = case.ram::<S>();
        let mut failed = [0, 0];
        for (formats, programs, shown) in (0..2)
            .flat_map(|formats| (0..6).map(move |programs| (formats, programs)))
            .flat_map(|(formats, programs)| {
                [Shown::Erased, Shown::Written, Shown::Both].map(|shown| (formats, programs, shown))
            })
        {
            let mut chip = filled::<S>(&case, RECORDS, &mut ram)?;
            let mut model = Model::new();
            chip.left.set(Some(programs));
            chip.shown = shown;
            let device: &mut dyn Bus = &mut chip;
            let mut place = Unopened::<_, S>::new(device, &case.options, &mut ram).map_err(text)?;
            let start = |place: &mut Unopened<'_, &mut dyn Bus, S>| {
                if formats == 1 { place.format().map(drop) } else { place.open().map(drop) }
            };
            match start(&mut place) {
                // It wrote fewer pages.
                Ok(()) => continue,
                Err(OpenError::Device(ChipError::PowerLost)) => {
                    failed[formats] += 1;
                    start(&mut place).map_err(text)?;
                }
                other => return Err(format!("{programs} programs: {other:?}")),
            }
            if formats == 0 {
                model.extend(
                    (0..RECORDS).map(|number| (key(number).to_vec(), value(number, 0).to_vec())),
                );
            }
            let index = place.open().map_err(text)?;
            compare(index, &model)?;
            put::<S>(index, &mut model, 1)?;
            place.close();
            compare(&mut open_on::<S>(&mut chip, &case.options, &mut ram).map_err(text)?, &model)?;
        }
        if failed.contains(&0) {
            return Err(format!("mounts and formats that failed: {failed:?}"));
        }
        Ok(())
    }
}

#[test]
fn an_open_or_format_that_failed_is_done_again_in_place() {
    for_every_system(&AfterAnError);
}
