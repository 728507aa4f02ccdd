//! Any text as the HTML of a mail.
#![no_main]

use postroom_fuzz::email::{Fields, Posted};

libfuzzer_sys::fuzz_target!(|html: &str| {
    postroom_fuzz::check(&Posted::Fields(Fields { html: Some(html), ..Fields::default() }));
});
