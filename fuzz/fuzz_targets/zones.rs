//! Any text as the plain text of a new mail, a reply and a forward.
#![no_main]

use postroom_fuzz::email::{Fields, Posted};

libfuzzer_sys::fuzz_target!(|text: &str| {
    for subject in [None, Some("New"), Some("Re: New"), Some("Fwd: New")] {
        postroom_fuzz::check(&Posted::Fields(Fields { subject, text: Some(text), ..Fields::default() }));
    }
});
