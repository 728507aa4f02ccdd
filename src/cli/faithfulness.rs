//! `postroom faithfulness`: how far the methods of explanation can be believed, measured on labelled mail.

use std::fmt::Write;
use std::ops::Range;

use clap::Args;

use super::common::{ModelArgs, Progress, at_least_one, load};
use super::data::{DataArgs, tell};
use super::output::print;
use super::route::{block_on, parse_word};
use crate::dataset::Example;
use crate::routing::{Faithfulness, Mail, MailContent, MailFields, Method, Perturb, RoutingError, RoutingService};
use crate::tokenizer::Field;

/// Arguments of `postroom faithfulness`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  postroom faithfulness data/crumb/week.jsonl --mails 100")]
pub(super) struct FaithfulnessArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Mails to measure, from the start of the data.
    #[arg(long, default_value_t = 100, value_parser = at_least_one)]
    mails: usize,
    /// Methods, with commas between.
    #[arg(
        long,
        default_value = "occlusion,ig,relevance,gradxinput,attention,rollout",
        value_delimiter = ',',
        value_parser = parse_word::<Method>
    )]
    method: Vec<Method>,
    /// What becomes of what is taken out: delete or mask.
    #[arg(long, default_value = "delete", value_parser = parse_word::<Perturb>)]
    perturb: Perturb,
    /// Draws the random orders.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// What adds up over the mails for one method.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sums {
    mails: usize,
    comprehensiveness: f64,
    sufficiency: f64,
    /// Correctly routed mails whose deciding words the data names, and those of them whose top sentence overlaps these.
    decisive: usize,
    found: usize,
}

pub(super) fn run(args: &FaithfulnessArgs) -> anyhow::Result<()> {
    let config = args.model.quiet_config()?;
    let data = args.data.read()?;
    tell(&data.notes);
    let service = RoutingService::start(load(&config.model)?, config.routing)?;
    let examples: Vec<&Example> = data.examples.iter().take(args.mails).collect();
    let mut table: Vec<(Option<Method>, Sums)> = Vec::new();
    let (mut right, mut unread) = (0, 0);
    let mut progress = Progress::new("explaining");
    for (done, example) in examples.iter().enumerate() {
        match block_on(service.faithfulness(mail_of(example), &args.method, args.perturb, args.seed))? {
            Ok(measured) => {
                let label = service.router().index_of_label(&example.queue);
                let correct = label.is_some() && label == service.router().queues.index_of(&measured.queue);
                right += usize::from(correct);
                for row in measured.rows {
                    add(&mut table, &row, example, correct);
                }
            }
            Err(RoutingError::NothingToRead) => unread += 1,
            Err(other) => return Err(other.into()),
        }
        progress.tell(done + 1, examples.len());
    }
    print(render(&table, right, unread))
}

fn mail_of(example: &Example) -> Mail {
    let content = match &example.raw {
        Some(raw) => MailContent::Mime(raw.clone()),
        None => MailContent::Fields(MailFields {
            subject: Some(example.subject.clone()),
            text: Some(example.text.clone()),
            html: example.html.clone(),
            ..MailFields::default()
        }),
    };
    Mail { id: None, content }
}

fn add(table: &mut Vec<(Option<Method>, Sums)>, row: &Faithfulness, example: &Example, correct: bool) {
    let place = table.iter().position(|(method, _)| *method == row.method).unwrap_or_else(|| {
        table.push((row.method, Sums::default()));
        table.len() - 1
    });
    let sums = &mut table[place].1;
    sums.mails += 1;
    sums.comprehensiveness += row.comprehensiveness;
    sums.sufficiency += row.sufficiency;
    let Some((field, sentence)) = row.top_sentence.as_ref().filter(|_| correct) else { return };
    let Some(decisive) = &example.decisive else { return };
    let places = [(Field::Subject, &example.subject), (Field::Body, &example.text)];
    let places: Vec<(Field, Range<usize>)> =
        places.into_iter().filter_map(|(field, text)| Some((field, find(text, decisive)?))).collect();
    if places.is_empty() {
        return;
    }
    sums.decisive += 1;
    let overlaps = |(other, range): &(Field, Range<usize>)| {
        other == field && range.start < sentence.end && sentence.start < range.end
    };
    sums.found += usize::from(places.iter().any(overlaps));
}

/// Where `words` stand in `text`, in bytes, from the start of a word on; line breaks and runs of blanks count as one blank.
fn find(text: &str, words: &str) -> Option<Range<usize>> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let first = words.first()?;
    text.match_indices(first).find_map(|(start, _)| {
        let starts_a_word = !text[..start].ends_with(char::is_alphanumeric);
        let mut at = starts_a_word.then_some(start + first.len())?;
        for word in &words[1..] {
            let blank = text[at..].len() - text[at..].trim_start().len();
            at += (blank > 0).then_some(blank)?;
            at += text[at..].strip_prefix(word).map(|_| word.len())?;
        }
        Some(start..at)
    })
}

fn render(table: &[(Option<Method>, Sums)], right: usize, unread: usize) -> String {
    let mut out = String::new();
    let mails = table.first().map_or(0, |(_, sums)| sums.mails);
    let _ = writeln!(out, "{mails} mails, {right} of them routed to their label; {unread} without text");
    let _ = writeln!(out, "AOPC over 1, 5, 10, 20 and 50% of the words; top sentence against the words that decide\n");
    let _ = writeln!(out, "method       comprehensiveness  sufficiency  top sentence decides");
    for (method, sums) in table {
        let name = method.map_or("random", |method| {
            Method::ALL.into_iter().find(|(_, other)| *other == method).map_or("?", |(name, _)| name)
        });
        let mean = |sum: f64| sum / sums.mails.max(1) as f64;
        let decides = match sums.decisive {
            0 => "-".to_owned(),
            all => format!("{} of {all} ({:.0}%)", sums.found, 100.0 * sums.found as f64 / all as f64),
        };
        let (comprehensiveness, sufficiency) = (mean(sums.comprehensiveness), mean(sums.sufficiency));
        let _ = writeln!(out, "{name:<12} {comprehensiveness:>17.3}  {sufficiency:>11.3}  {decides}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_decide_are_found_across_line_breaks() {
        assert_eq!(find("aa bb\n cc dd", "bb cc"), Some(3..9));
        assert_eq!(find("b bb cc", "b cc"), None);
        assert_eq!(find("bbcc", "bb cc"), None);
        assert_eq!(find("\u{fc} x", "x"), Some(3..4));
        assert_eq!(find("aa", " "), None);
    }

    #[test]
    fn the_table_has_means_and_the_share_that_was_found() {
        let sums = Sums { mails: 4, comprehensiveness: 2.0, sufficiency: 0.4, decisive: 3, found: 2 };
        let drawn = render(&[(Some(Method::Ig), sums), (None, Sums { mails: 4, ..Sums::default() })], 3, 0);
        assert!(drawn.contains("ig                       0.500        0.100  2 of 3 (67%)"), "{drawn}");
        assert!(drawn.contains("random                   0.000        0.000  -"), "{drawn}");
    }
}
