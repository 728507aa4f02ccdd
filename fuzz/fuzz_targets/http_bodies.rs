//! Any body at every endpoint that reads one.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use postroom_fuzz::http::{SERVICE, body};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = body(&SERVICE, &mut Unstructured::new(bytes)) {
        SERVICE.ask(request).check();
    }
});
