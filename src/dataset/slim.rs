//! Raw messages without the weight of their attachments.
//!
//! A training holds all its mail in memory, and most bytes of real mail are attachments in base64 that nobody reads. Long runs
//! of such lines are left out where the message is read the same without them, which is checked and not assumed.

use crate::email::{CleanEmail, CleanOptions, Posted, clean};

/// Messages below this size stay as they are.
const SMALL: usize = 64 << 10;
/// Lines of a run; fewer are kept.
const RUN: usize = 100;

/// A message and what is read of it.
pub(super) struct Slim {
    pub(super) raw: Vec<u8>,
    pub(super) read: CleanEmail,
}

/// Takes long attachments out of a message.
pub(super) fn slim(raw: Vec<u8>) -> Slim {
    let read = read(&raw);
    if raw.len() < SMALL {
        return Slim { raw, read };
    }
    let shorter = without_runs(&raw);
    let same = shorter.len() < raw.len() && {
        let other = self::read(&shorter);
        (read.subject.text(), read.body.text(), read.kind) == (other.subject.text(), other.body.text(), other.kind)
    };
    Slim { raw: if same { shorter } else { raw }, read }
}

fn read(raw: &[u8]) -> CleanEmail {
    clean(&Posted::Mime(raw), &CleanOptions { detect_language: false, ..CleanOptions::default() })
}

/// The message without long runs of lines of base64; of each run the first line stays.
fn without_runs(raw: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = raw.split_inclusive(|&byte| byte == b'\n').collect();
    let runs = lines.chunk_by(|a, b| is_base64(a) && is_base64(b));
    let kept = runs.flat_map(|run| if run.len() >= RUN { &run[..1] } else { run });
    kept.copied().collect::<Vec<_>>().concat()
}

/// Whether a line is as long as those of attachments are and holds nothing but base64.
fn is_base64(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line.len() >= 60 && line.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(kind: &str) -> Vec<u8> {
        let line = "QWxsIHRoZSBjYWtlcyBhcmUgc29sZCBvdXQgdG9kYXksIHNvcnJ5IGFib3V0IHRoYXQu\r\n";
        format!(
            "Subject: Cake\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nIt came cold.\r\n--b\r\n\
             Content-Type: {kind}\r\nContent-Transfer-Encoding: base64\r\n\r\n{}\r\n--b--\r\n",
            line.repeat(2000)
        )
        .into_bytes()
    }

    #[test]
    fn a_long_attachment_is_left_out_and_the_mail_reads_the_same() {
        let raw = mail("image/jpeg; name=cake.jpg");
        let slim = slim(raw.clone());
        assert!(slim.raw.len() < 1000, "{}", slim.raw.len());
        assert_eq!(read(&slim.raw).body.text(), read(&raw).body.text());
        assert_eq!(slim.read.body.text(), "It came cold.");
    }

    #[test]
    fn text_in_base64_is_kept() {
        let raw = mail("text/plain");
        assert_eq!(slim(raw.clone()).raw, raw);
    }
}
