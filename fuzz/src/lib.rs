//! The email floor without the rest of the crate, and what each fuzz target checks; behind the feature `http` the whole service.

#[path = "../../src/email/mod.rs"]
pub mod email;
#[cfg(feature = "http")]
pub mod http;

use email::{AlignedText, CleanEmail, CleanOptions, Posted, clean};

/// Cleans a mail and panics where an answer breaks what holds for every answer.
pub fn check(posted: &Posted<'_>) -> CleanEmail {
    let mail = clean(posted, &CleanOptions::default());
    check_alignment(&mail.subject);
    check_alignment(&mail.body);
    for cut in &mail.cut {
        assert!(mail.body.posted().get(cut.start..cut.end).is_some());
    }
    mail
}

fn check_alignment(text: &AlignedText) {
    let mut last = 0..0;
    for (at, c) in text.text().char_indices() {
        let range = text.posted_range(at..at + c.len_utf8());
        assert!(text.posted().get(range.clone()).is_some());
        assert!(range.start >= last.start && range.end >= last.end);
        last = range;
    }
}
