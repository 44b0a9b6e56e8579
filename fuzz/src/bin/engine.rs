//! One target under libFuzzer: the variable GOODPUT_FUZZ_TARGET names it, libFuzzer's own arguments follow.
#![no_main]
#![expect(clippy::expect_used, reason = "libFuzzer calls the set-up and takes no error")]

use std::sync::OnceLock;

use fuzz::{Target, find};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name =
            std::env::var("GOODPUT_FUZZ_TARGET").expect("GOODPUT_FUZZ_TARGET names a target");
        find(&name).expect("GOODPUT_FUZZ_TARGET names one of the targets")
    });
    (target.run)(bytes);
});
