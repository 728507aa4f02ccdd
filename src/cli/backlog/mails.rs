//! The mails of a backlog, and what tells one backlog from another.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::row::OutFormat;
use crate::dataset::{DatasetError, Place, ReadOptions, Unlabelled, UnlabelledContent, each_unlabelled};
use crate::routing::{Mail, MailContent, MailFields, RoutingConfig, RoutingService};

/// A backlog that was looked through once.
pub(super) struct Backlog {
    path: PathBuf,
    options: ReadOptions,
    /// Mails, those that cannot be read included.
    pub(super) mails: usize,
    /// Those that cannot be read.
    pub(super) unreadable: usize,
    /// SHA-256 of all mails with their places.
    content: [u8; 32],
}

/// One mail or why there is none, and where.
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) mail: Result<Mail, DatasetError>,
    /// Whether the mail was longer than what is read of one.
    pub(super) cut: bool,
}

impl Item {
    /// Bytes that it keeps in memory.
    pub(super) fn bytes(&self) -> usize {
        match self.mail.as_ref().map(|mail| &mail.content) {
            Ok(MailContent::Mime(raw)) => raw.len(),
            Ok(MailContent::Fields(fields)) => {
                [&fields.subject, &fields.text, &fields.html].into_iter().flatten().map(String::len).sum()
            }
            Err(_) => 0,
        }
    }

    fn hash(&self, hash: &mut Sha256) {
        let mut put = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        put(self.place.to_string().as_bytes());
        match &self.mail {
            Err(error) => put(error.to_string().as_bytes()),
            Ok(mail) => {
                put(mail.id.as_deref().unwrap_or_default().as_bytes());
                match &mail.content {
                    MailContent::Mime(raw) => put(raw),
                    MailContent::Fields(fields) => {
                        for part in [&fields.subject, &fields.text, &fields.html] {
                            put(part.as_deref().unwrap_or_default().as_bytes());
                        }
                    }
                }
            }
        }
    }
}

impl Backlog {
    /// Looks all mail through: how many there are, and what they are.
    pub(super) fn survey(path: &Path, options: ReadOptions) -> Result<Self, DatasetError> {
        let mut backlog = Self { path: path.to_owned(), options, mails: 0, unreadable: 0, content: [0; 32] };
        let (mut mails, mut unreadable, mut hash) = (0, 0, Sha256::new());
        backlog.each(&mut |item| {
            mails += 1;
            unreadable += usize::from(item.mail.is_err());
            item.hash(&mut hash);
            ControlFlow::Continue(())
        })?;
        (backlog.mails, backlog.unreadable, backlog.content) = (mails, unreadable, hash.finalize().into());
        Ok(backlog)
    }

    /// Hands over every mail, always in the same order.
    pub(super) fn each(&self, take: &mut dyn FnMut(Item) -> ControlFlow<()>) -> Result<(), DatasetError> {
        each_unlabelled(&self.path, &self.options, &mut |place, mail| {
            let cut = mail.as_ref().is_ok_and(|mail| mail.cut);
            take(Item { place: place.below(&self.path), mail: mail.map(to_mail), cut })
        })
    }

    /// What must be the same for a run to go on: mail, router, settings, format of the results.
    pub(super) fn mark(
        &self,
        service: &RoutingService,
        config: &RoutingConfig,
        format: OutFormat,
    ) -> serde_json::Result<String> {
        let router = service.router();
        let mut hash = Sha256::new();
        hash.update(self.content);
        let run = (&router.name, &router.version, format.name(), config);
        hash.update(serde_json::to_vec(&run)?);
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn to_mail(Unlabelled { id, content, .. }: Unlabelled) -> Mail {
    let content = match content {
        UnlabelledContent::Raw(raw) => MailContent::Mime(raw),
        UnlabelledContent::Fields { subject, text, html } => {
            MailContent::Fields(MailFields { subject: Some(subject), text: Some(text), html, ..MailFields::default() })
        }
    };
    Mail { id: id.filter(|id| !id.trim().is_empty()), content }
}
