//! Bytes in, clean text with offsets out.
//!
//! [`clean`] reads a mail as people send it and answers what its sender wrote: decoded, without quotes,
//! signatures and legal notices, each byte aligned with the text as posted. It never panics, does no I/O, and
//! its time and memory are bounded by [`CleanOptions`].
//!
//! ```
//! use postroom::email::{CleanOptions, CutReason, Fields, Posted, clean};
//!
//! let text = "It still does not print.\n\nOn Mon, 3 Mar 2025 at 10:12, Desk <desk@acme.example> wrote:\n> Is it on?\n";
//! let fields = Fields { subject: Some("Re: Printer"), text: Some(text), ..Fields::default() };
//! let mail = clean(&Posted::Fields(fields), &CleanOptions::default());
//! assert_eq!(mail.body.text(), "It still does not print.");
//! assert_eq!(mail.cut[0].why, CutReason::Quote);
//! ```

mod address;
mod aligned;
mod attached;
mod body;
mod calendar;
mod charset;
mod clean;
mod cleaned;
mod cuts;
mod flowed;
mod header;
mod html;
mod kind;
mod language;
mod mime;
mod normalise;
mod pattern;
mod posted;
mod transfer;
mod zones;

pub use aligned::AlignedText;
pub use clean::clean;
pub use cleaned::{CleanEmail, Cut, CutReason, Language, MailKind, Note, Zone, ZoneKind};
pub use posted::{CleanOptions, Fields, Posted};
