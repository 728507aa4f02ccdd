//! Where in a mail its deciding sentence stands, for data that names it.

use super::JudgedMail;
use crate::dataset::Example;

/// Fills in [`JudgedMail::decisive_position`] where the data names the sentence. `mails` are those of `examples`, in their order.
pub fn place_decisive(examples: &[Example], mails: &mut [JudgedMail]) {
    for (mail, example) in mails.iter_mut().zip(examples) {
        let whole = format!("{}\n{}", example.subject, example.text);
        mail.decisive_position = example.decisive.as_deref().and_then(|sentence| position(&whole, sentence));
    }
}

/// The middle of `sentence` in `mail` as a share of its characters; line breaks and runs of blanks count as one blank.
fn position(mail: &str, sentence: &str) -> Option<f64> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mail, sentence) = (plain(mail), plain(sentence));
    if sentence.is_empty() {
        return None;
    }
    let start = mail[..mail.find(&sentence)?].chars().count();
    let middle = start as f64 + sentence.chars().count() as f64 / 2.0;
    Some(middle / mail.chars().count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_placed_by_its_middle_whatever_its_line_breaks() {
        assert_eq!(position("aa bb cc dd", "cc  dd"), Some(8.5 / 11.0));
        assert_eq!(position("aa\nbb\ncc", "bb cc"), Some(5.5 / 8.0));
        assert_eq!(position("\u{fc}\u{fc} b", "b"), Some(3.5 / 4.0));
    }

    #[test]
    fn what_is_not_in_the_mail_has_no_place() {
        assert_eq!(position("aa bb", "cc"), None);
        assert_eq!(position("aa", " "), None);
        assert_eq!(position("", "a"), None);
    }
}
