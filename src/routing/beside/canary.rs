//! The canary: a share of the mail is answered by another router.
//!
//! A mail's place is made of its id, so that the same mail always gets the same router, on every instance and after every
//! restart, and mail that was in a small share stays in a larger one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::super::routers::Slot;
use super::super::{Decision, Mail, MailContent, RoutingService};
use crate::inference::Caller;

pub(super) struct Canary {
    slot: Arc<Slot>,
    share: f64,
    answered: AtomicU64,
    failed: AtomicU64,
}

/// What a canary did since the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CanaryFigures {
    /// Its name.
    pub name: String,
    /// The share of mail that it is to answer.
    pub share: f64,
    /// Mails that it answered.
    pub answered: u64,
    /// Mails of its share that the default router answered, because the canary failed or was not loaded.
    pub failed: u64,
}

impl Canary {
    pub(super) fn new(slot: Arc<Slot>, share: f64) -> Self {
        Self { slot, share, answered: AtomicU64::new(0), failed: AtomicU64::new(0) }
    }

    /// The canary's decision; `None` where the mail is not among its share, or the canary cannot answer, which must not cost
    /// the mail.
    pub(super) async fn decide(&self, mail: &Mail, caller: Caller) -> Option<Decision> {
        if place(mail) >= self.share {
            return None;
        }
        let decided = match self.slot.live() {
            Some(service) => service.decide(mail.clone(), caller).await.ok(),
            None => None,
        };
        let count = if decided.is_some() { &self.answered } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        decided
    }

    pub(super) fn live(&self) -> Option<Arc<RoutingService>> {
        self.slot.live()
    }

    pub(super) fn figures(&self) -> CanaryFigures {
        CanaryFigures {
            name: self.slot.name().to_owned(),
            share: self.share,
            answered: self.answered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

/// Where a mail lies between 0 and 1: by the caller's id, else by the message's own, else by its text.
fn place(mail: &Mail) -> f64 {
    let mut hash = Hash::new();
    match (&mail.id, &mail.content) {
        (Some(id), _) => hash.add(id.as_bytes()),
        (None, MailContent::Mime(raw)) => hash.add(message_id(raw).unwrap_or(raw)),
        (None, MailContent::Fields(fields)) => {
            match fields.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(MESSAGE_ID)) {
                Some((_, id)) => hash.add(id.trim().as_bytes()),
                None => {
                    for part in [&fields.subject, &fields.text, &fields.html].into_iter().flatten() {
                        hash.add(part.as_bytes());
                    }
                }
            }
        }
    }
    hash.between_0_and_1()
}

const MESSAGE_ID: &str = "Message-ID";

/// The id in the head of a raw message; a folded one counts as absent.
fn message_id(raw: &[u8]) -> Option<&[u8]> {
    let head = raw.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).take_while(|line| !line.is_empty());
    head.filter_map(|line| {
        let (name, rest) = line.split_at_checked(MESSAGE_ID.len())?;
        let id = rest.strip_prefix(b":")?.trim_ascii();
        (name.eq_ignore_ascii_case(MESSAGE_ID.as_bytes()) && !id.is_empty()).then_some(id)
    })
    .next()
}

/// FNV-1a, whose bits are mixed at the end: the same in every version of the program, which the standard hash does not promise.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn between_0_and_1(&self) -> f64 {
        let mut bits = self.0;
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        bits ^= bits >> 33;
        // 53 bits are what an f64 holds, so 1 is never reached.
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::MailFields;

    fn mime(raw: &str) -> Mail {
        Mail { id: None, content: MailContent::Mime(raw.as_bytes().to_vec()) }
    }

    fn with_id(id: &str) -> Mail {
        Mail { id: Some(id.to_owned()), content: MailContent::Mime(Vec::new()) }
    }

    #[test]
    fn ids_that_differ_little_spread_evenly() {
        let n = 20_000;
        let taken = (0..n).filter(|id| place(&with_id(&format!("ticket-{id}"))) < 0.05).count();
        // Four standard deviations of a fair draw.
        let spread = 4.0 * (f64::from(n) * 0.05 * 0.95).sqrt();
        assert!((taken as f64 - 0.05 * f64::from(n)).abs() < spread, "{taken} of {n}");
    }

    #[test]
    fn a_message_that_came_by_another_way_has_the_same_place() {
        let one = mime("Received: a\r\nMessage-Id: <7@mail.example>\r\nSubject: Order\r\n\r\nWhere?\r\n");
        let other = mime("Received: b\nReceived: c\nMESSAGE-ID:   <7@mail.example>\nSubject: Order\n\nWhere?\n");
        let fields = MailFields {
            text: Some("Where?".to_owned()),
            headers: vec![("message-id".to_owned(), "<7@mail.example>".to_owned())],
            ..MailFields::default()
        };
        let fields = Mail { id: None, content: MailContent::Fields(fields) };
        assert!((place(&one) - place(&other)).abs() < f64::EPSILON);
        assert!((place(&one) - place(&fields)).abs() < f64::EPSILON);
    }

    #[test]
    fn an_id_in_the_body_is_not_the_messages() {
        let quoting = mime("Subject: Order\n\nMessage-ID: <7@mail.example>\n");
        let plain = mime("Message-ID: <7@mail.example>\n\nOrder\n");
        assert!((place(&quoting) - place(&plain)).abs() > f64::EPSILON);
    }
}
