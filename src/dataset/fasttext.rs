//! fastText's training file: `__label__refunds The cake came cold.`, one mail a line.

use std::io::BufRead;
use std::path::Path;

use super::DatasetError;
use super::collector::{Collector, Record};
use super::lines::Lines;

/// What a label starts with.
pub(super) const PREFIX: &str = "__label__";

/// Reads a mail a line; blank lines are passed over.
pub(super) fn lines(reader: &mut dyn BufRead, path: &Path, collector: &mut Collector<'_>) -> Result<(), DatasetError> {
    let mut lines = Lines::new(reader, path);
    while let Some((place, line)) = lines.next()? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line = collector.decode(line, &place);
        let labels: Vec<&str> = line.split_whitespace().filter_map(|word| word.strip_prefix(PREFIX)).collect();
        if labels.len() > 1 {
            return Err(DatasetError::ManyLabels { labels: labels.join(", "), place });
        }
        let label = labels.first().map(|&label| label.to_owned());
        let marked = label.as_ref().map(|label| format!("{PREFIX}{label}"));
        let text = marked.map_or_else(|| line.clone(), |marked| line.replacen(&marked, "", 1));
        collector.push(Record { label, text: text.trim().to_owned(), place, ..Record::default() })?;
    }
    Ok(())
}
