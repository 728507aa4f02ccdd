//! What comes in: a raw mail or the fields of a form, and the limits under which it is read.
//!
//! ```
//! use postroom::email::{CleanOptions, Posted, clean};
//!
//! let mail = b"Subject: Refund\r\n\r\nPlease refund order 12.\r\n\r\n-- \r\nAnn Example\r\n";
//! let mail = clean(&Posted::Mime(mail), &CleanOptions::default());
//! assert_eq!(mail.subject.text(), "Refund");
//! assert_eq!(mail.body.text(), "Please refund order 12.");
//! ```

use serde::{Deserialize, Serialize};

/// An email as posted.
#[derive(Debug, Clone, Copy)]
pub enum Posted<'a> {
    /// A raw RFC 5322 message.
    Mime(&'a [u8]),
    /// Fields that another system has already taken out of a message.
    Fields(Fields<'a>),
}

/// The fields of a message as another system hands them over.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// The subject; encoded words (RFC 2047) are decoded where they occur.
    pub subject: Option<&'a str>,
    /// The plain text; wins over `html` when it is not blank.
    pub text: Option<&'a str>,
    /// The HTML source.
    pub html: Option<&'a str>,
    /// The sender, as an address or `Name <address>`.
    pub from: Option<&'a str>,
    /// Further headers as name and value, for the kind of mail.
    pub headers: &'a [(String, String)],
}

/// Limits and switches of cleaning. All sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CleanOptions {
    /// Decoded text kept of one mail; the rest is dropped with the note `truncated`.
    pub max_body_bytes: usize,
    /// HTML source read of one part; the rest is dropped with the note `truncated`.
    pub max_html_bytes: usize,
    /// Header block read of one part.
    pub max_header_bytes: usize,
    /// How deep multiparts and attached mails may nest.
    pub max_depth: usize,
    /// How many MIME parts are looked at.
    pub max_parts: usize,
    /// Keep quoted mail in the body.
    pub keep_quotes: bool,
    /// Keep signatures, disclaimers and gateway banners in the body.
    pub keep_signatures: bool,
    /// Detect the language.
    pub detect_language: bool,
}

impl Default for CleanOptions {
    fn default() -> Self {
        Self {
            max_body_bytes: 1 << 20,
            max_html_bytes: 4 << 20,
            max_header_bytes: 256 << 10,
            max_depth: 32,
            max_parts: 500,
            keep_quotes: false,
            keep_signatures: false,
            detect_language: true,
        }
    }
}
