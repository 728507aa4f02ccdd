//! Any path and query at every endpoint.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use postroom_fuzz::http::{SERVICE, query};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = query(&SERVICE, &mut Unstructured::new(bytes)) {
        SERVICE.ask(request).check();
    }
});
