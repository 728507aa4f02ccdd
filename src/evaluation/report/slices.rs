//! Whether long mail, or mail that comes to the point late, fares worse.

use serde::Serialize;

use super::{Answer, Rate};

/// Mails that have something in common.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slice {
    /// What they have in common.
    pub name: String,
    /// Right ones among them when every mail is routed.
    pub accuracy: Rate,
}

/// Most tokens of each bucket but the last.
const LENGTHS: [usize; 4] = [128, 256, 512, 1024];

/// By tokens of the whole mail.
pub(super) fn by_length(answers: &[Answer<'_>]) -> Vec<Slice> {
    let bucket = |tokens: usize| LENGTHS.iter().position(|&most| tokens <= most).unwrap_or(LENGTHS.len());
    let mut least = 0;
    let mut names: Vec<String> = Vec::new();
    for most in LENGTHS {
        names.push(format!("{least} to {most} tokens"));
        least = most + 1;
    }
    names.push(format!("{least} tokens or more"));
    sliced(answers, names, |answer| Some(bucket(answer.mail.tokens)))
}

/// By the tenth of the mail in which the deciding sentence stands; empty where no mail names one.
pub(super) fn by_position(answers: &[Answer<'_>]) -> Vec<Slice> {
    if answers.iter().all(|answer| answer.mail.decisive_position.is_none()) {
        return Vec::new();
    }
    let names = (0..10).map(|tenth| format!("{}% to {}%", 10 * tenth, 10 * (tenth + 1))).collect();
    sliced(answers, names, |answer| {
        answer.mail.decisive_position.filter(|place| !place.is_nan()).map(|place| ((place * 10.0) as usize).min(9))
    })
}

fn sliced(answers: &[Answer<'_>], names: Vec<String>, slice_of: impl Fn(&Answer<'_>) -> Option<usize>) -> Vec<Slice> {
    let of_slice = |(slice, name): (usize, String)| {
        let members = || answers.iter().filter(|answer| slice_of(answer) == Some(slice));
        Slice { name, accuracy: Rate::new(members().filter(|answer| answer.right()).count(), members().count()) }
    };
    names.into_iter().enumerate().map(of_slice).collect()
}
