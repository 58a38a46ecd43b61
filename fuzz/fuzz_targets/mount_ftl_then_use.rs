//! Mounts an FTL on a damaged medium and uses it. The body is in the lab, where the tests run it on
//! the corpus too.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    nandina_lab::hostile::mount_ftl_then_use(data);
    Corpus::Keep
});
