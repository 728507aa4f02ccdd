//! mbox files: messages one after another, each below a line that starts with `From `.
//!
//! A message starts at such a line after a blank one, or at the start of the file. `>From ` in a message stands for `From `, as
//! do more marks for one less (mboxrd).

use std::io::BufRead;
use std::path::Path;

use super::collector::{Collector, Record};
use super::lines::{Lines, decode};
use super::{DatasetError, MAX_RECORD_BYTES, Place};
use crate::email::{CleanOptions, Fields, Posted, clean};

/// Reads one mbox file whose messages name their queue in the header of `--label`.
pub(super) fn by_header(
    reader: &mut dyn BufRead,
    path: &Path,
    collector: &mut Collector<'_>,
) -> Result<(), DatasetError> {
    let one_label = collector.options.one_label.clone();
    if collector.options.columns.label.is_none() && one_label.is_none() {
        return Err(DatasetError::NoLabelHeader { path: path.to_owned() });
    }
    messages(reader, path, one_label.as_deref(), collector)
}

/// Reads the messages of a stream; without a queue each names its own.
pub(super) fn messages(
    reader: &mut dyn BufRead,
    path: &Path,
    queue: Option<&str>,
    collector: &mut Collector<'_>,
) -> Result<(), DatasetError> {
    split(reader, path, &mut |message| message.push_to(collector, queue))
}

/// Cuts a stream into its messages. One with a line longer than a record may be is cut there, and the next one follows.
pub(super) fn split<E: From<DatasetError>>(
    reader: &mut dyn BufRead,
    path: &Path,
    take: &mut dyn FnMut(Message) -> Result<(), E>,
) -> Result<(), E> {
    let mut lines = Lines::new(reader, path);
    let mut open: Option<Message> = None;
    let mut after_blank = true;
    loop {
        match lines.next() {
            Ok(None) => break,
            Ok(Some((place, line))) => {
                if after_blank && line.starts_with(b"From ") {
                    if let Some(message) = open.replace(Message::at(place)) {
                        take(message)?;
                    }
                } else if let Some(message) = &mut open {
                    message.add(line);
                } else if !line.is_empty() {
                    let reason = "no mbox file: its first line must start with `From `".to_owned();
                    return Err(DatasetError::Broken { place, reason }.into());
                }
                after_blank = line.is_empty();
            }
            Err(error @ DatasetError::TooLong { .. }) => {
                let Some(message) = &mut open else { return Err(error.into()) };
                message.cut = true;
                lines.skip_rest()?;
                after_blank = false;
            }
            Err(error) => return Err(error.into()),
        }
    }
    open.map_or(Ok(()), take)
}

/// One message.
pub(super) struct Message {
    pub(super) place: Place,
    pub(super) bytes: Vec<u8>,
    /// Longer than a record may be, and read up to there.
    pub(super) cut: bool,
}

impl Message {
    fn at(place: Place) -> Self {
        Self { place, bytes: Vec::new(), cut: false }
    }

    fn add(&mut self, line: &[u8]) {
        let marks = line.iter().take_while(|&&byte| byte == b'>').count();
        let line = if marks > 0 && line[marks..].starts_with(b"From ") { &line[1..] } else { line };
        self.cut |= self.bytes.len() + line.len() >= MAX_RECORD_BYTES;
        if !self.cut {
            self.bytes.extend_from_slice(line);
            self.bytes.push(b'\n');
        }
    }

    fn push_to(self, collector: &mut Collector<'_>, queue: Option<&str>) -> Result<(), DatasetError> {
        if self.cut {
            collector.cut(&self.place);
        }
        collector.push(raw(self.place, self.bytes, queue, collector))
    }
}

/// A record of a raw message; `--label`, `--id` and `--group` name headers.
pub(super) fn raw(place: Place, bytes: Vec<u8>, queue: Option<&str>, collector: &Collector<'_>) -> Record {
    let columns = &collector.options.columns;
    let of = |name: &Option<String>| name.as_ref().and_then(|name| header(&bytes, name));
    let label = queue.map(str::to_owned).or_else(|| of(&columns.label));
    Record { label, id: of(&columns.id), group: of(&columns.group), place, raw: Some(bytes), ..Record::default() }
}

/// The value of a message's first header of a name, its lines joined and its encoded words decoded.
pub(super) fn header(message: &[u8], name: &str) -> Option<String> {
    let mut value: Option<Vec<u8>> = None;
    for line in message.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let folded = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        match &mut value {
            Some(value) if folded => value.extend_from_slice(line),
            Some(_) => break,
            None if line.is_empty() => break,
            None => {
                let colon = line.iter().position(|&byte| byte == b':').unwrap_or(0);
                let (found, rest) = line.split_at(colon);
                if !found.is_empty() && found.trim_ascii().eq_ignore_ascii_case(name.trim().as_bytes()) {
                    value = Some(rest[1..].to_vec());
                }
            }
        }
    }
    // The way of a subject is the way of any header that is text.
    let value = value?;
    let fields = Fields { subject: Some(&decode(&value).0), ..Fields::default() };
    let options = CleanOptions { detect_language: false, ..CleanOptions::default() };
    Some(clean(&Posted::Fields(fields), &options).subject.text().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_in_any_case_unfolded_and_decoded() {
        let mail = b"Subject: x\r\nx-queue: =?utf-8?q?Caf=C3=A9?=\r\n orders\r\n\r\nX-Other: body\r\n";
        assert_eq!(header(mail, "X-Queue").as_deref(), Some("Caf\u{e9} orders"));
        assert_eq!(header(mail, "X-Other"), None);
        assert_eq!(header(b":\n", ""), None);
    }
}
