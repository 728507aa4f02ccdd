//! Regular expressions whose working memory is handed on from search to search.
//!
//! `regex::Regex` keeps such memory for every thread that ever searched; mail is read by threads that come and go, and the larger
//! patterns here take megabytes each. One list for all threads holds as many as ever searched at the same time, no more.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use regex_automata::Input;
use regex_automata::meta::{Cache, Regex};

/// A compiled regular expression, in the syntax of the crate `regex`.
pub(super) struct Pattern {
    regex: Regex,
    idle: Mutex<Vec<Cache>>,
}

impl Pattern {
    /// Compiles a pattern that stands in the code.
    ///
    /// # Panics
    /// Where the pattern is malformed: patterns are constants, and tests compile each.
    pub(super) fn new(pattern: &str) -> Self {
        let regex = Regex::new(pattern).expect("the pattern is constant");
        Self { regex, idle: Mutex::new(Vec::new()) }
    }

    /// Whether the pattern stands anywhere in the text.
    pub(super) fn is_match(&self, text: &str) -> bool {
        // Anything that matches will do: the search stops at once.
        let input = Input::new(text).earliest(true);
        self.with(|regex, cache| regex.search_half_with(cache, &input).is_some())
    }

    /// Where the pattern stands first, in bytes.
    pub(super) fn find(&self, text: &str) -> Option<Range<usize>> {
        self.find_from(text, 0)
    }

    /// Where the pattern stands first at or after a place; what stands before it still counts for `\b`.
    pub(super) fn find_from(&self, text: &str, place: usize) -> Option<Range<usize>> {
        let input = Input::new(text).range(place..);
        self.with(|regex, cache| regex.search_with(cache, &input).map(|found| found.range()))
    }

    fn with<T>(&self, search: impl FnOnce(&Regex, &mut Cache) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut cache = kept.unwrap_or_else(|| self.regex.create_cache());
        let found = search(&self.regex, &mut cache);
        idle().push(cache);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_the_crate_regex_finds() {
        let (pattern, text) = (r"(?i)\bcrème\b|\d{2,}", "A CRÈME of 123, then 4567");
        let (ours, theirs) = (Pattern::new(pattern), regex::Regex::new(pattern).unwrap());
        for text in [text, "", "crèmes", "x1", "12"] {
            assert_eq!(ours.find(text), theirs.find(text).map(|found| found.range()), "{text}");
            assert_eq!(ours.is_match(text), theirs.is_match(text), "{text}");
            let second = theirs.find_iter(text).nth(1).map(|found| found.range());
            assert_eq!(ours.find(text).and_then(|first| ours.find_from(text, first.end)), second, "{text}");
        }
    }

    #[test]
    fn threads_that_come_and_go_leave_one_memory() {
        let pattern = Pattern::new("a+b");
        for _ in 0..20 {
            std::thread::scope(|scope| scope.spawn(|| assert!(pattern.is_match("xaab"))).join().unwrap());
        }
        assert_eq!(pattern.idle.lock().unwrap().len(), 1);
    }
}
