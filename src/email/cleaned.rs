//! What comes out: the clean mail and everything the cleaner noticed on the way.
//!
//! ```
//! use postroom::email::{CleanOptions, MailKind, Posted, clean};
//!
//! let mail = b"Auto-Submitted: auto-replied\nSubject: Away\n\nI am back on Monday.\n";
//! let mail = clean(&Posted::Mime(mail), &CleanOptions::default());
//! assert_eq!(mail.kind, MailKind::AutoReply);
//! assert_eq!(mail.kind_evidence.as_deref(), Some("auto-submitted: auto-replied"));
//! ```

use serde::Serialize;

use super::AlignedText;

/// A mail as the router reads it.
#[derive(Debug, Clone)]
pub struct CleanEmail {
    /// The decoded subject: NFC, one line.
    pub subject: AlignedText,
    /// What the sender wrote; for a forward with the forwarded mail's own text.
    pub body: AlignedText,
    /// What sort of mail this is.
    pub kind: MailKind,
    /// The header or structure that decided the kind; never an address or text of the mail.
    pub kind_evidence: Option<String>,
    /// Whether a mail of somebody else is passed on.
    pub forwarded: bool,
    /// The address of the one who wrote the forwarded mail.
    pub original_from: Option<String>,
    /// The subject of the forwarded mail.
    pub original_subject: Option<String>,
    /// The language of the text; `None` when there is too little to say.
    pub language: Option<Language>,
    /// What was taken out of the body, in bytes of `body.posted()`.
    pub cut: Vec<Cut>,
    /// The whole body by zones, in bytes of `body.posted()`.
    pub zones: Vec<Zone>,
    /// How many attachments the mail carries; they are never read as text.
    pub attachments: usize,
    /// What else the reader should know.
    pub notes: Vec<Note>,
    /// The sender's address.
    pub from: Option<String>,
    /// The Message-ID without its angle brackets.
    pub message_id: Option<String>,
}

/// What sort of mail this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MailKind {
    /// A person wrote to us.
    Person,
    /// A machine answered in a person's place: an absence notice, a read receipt.
    AutoReply,
    /// A delivery report about a mail of ours.
    Bounce,
    /// A mailing list or bulk mail.
    List,
    /// A person passes on somebody else's mail.
    Forwarded,
}

/// Why a stretch of the mail is not part of the clean body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CutReason {
    /// An earlier mail, with the line that introduces it.
    Quote,
    /// The header block of a forwarded mail.
    ForwardHeader,
    /// The sender's signature or the footer of a mail program.
    Signature,
    /// A legal notice.
    Disclaimer,
    /// A warning that a gateway wrote into the mail.
    Banner,
    /// A line of dashes or a marker such as "reply above this line".
    Delimiter,
    /// Text past the size limit.
    Limit,
}

/// A stretch that was taken out, in bytes of the posted body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Why it was taken out.
    pub why: CutReason,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// What a stretch of the mail is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneKind {
    /// The sender's own words.
    Text,
    /// An earlier mail.
    Quote,
    /// The line or block that introduces an earlier mail.
    QuoteHeader,
    /// The line or block that introduces a forwarded mail.
    ForwardHeader,
    /// A signature or the footer of a mail program.
    Signature,
    /// A legal notice.
    Disclaimer,
    /// A warning that a gateway wrote into the mail.
    Banner,
    /// A line of dashes or a marker such as "reply above this line".
    Delimiter,
}

/// A stretch of the mail and what it is, in bytes of the posted body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Zone {
    /// What it is.
    pub kind: ZoneKind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Something the reader of the answer should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MailNote")]
pub enum Note {
    /// The mail has no text of its own; only the subject can be routed.
    EmptyBody,
    /// Part of the mail could not be read: broken structure or a limit of depth or parts.
    Unreadable,
    /// The mail is encrypted.
    Encrypted,
    /// A size limit cut text off.
    Truncated,
    /// Cutting would have left nothing, so the whole text was kept.
    KeptWhole,
    /// The charset was missing, unknown or wrong, and was guessed.
    CharsetGuessed,
    /// The text was taken from a meeting request.
    Calendar,
}

/// A detected language.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Language {
    /// The ISO 639-1 code.
    pub code: &'static str,
    /// How sure the detection is, from 0 to 1.
    pub confidence: f32,
}
