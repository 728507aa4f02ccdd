//! Any bytes as a raw mail.
#![no_main]

use postroom_fuzz::email::Posted;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    postroom_fuzz::check(&Posted::Mime(bytes));
});
