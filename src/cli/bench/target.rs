//! What answers: the service in this process, or a server. Each client has a connection of its own.

use std::sync::Arc;

use super::http;
use crate::inference::InferenceError;
use crate::routing::{Mail, RoutingError, RoutingService};

/// Who is asked, with the mails in the form that it takes.
pub(super) enum Target {
    /// In this process.
    Service { service: Arc<RoutingService>, mails: Vec<Mail> },
    /// Over HTTP.
    Http { server: http::Server, requests: Vec<http::MailRequest> },
}

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// With a decision.
    Decided,
    /// The target was too busy to take the mail (429 or 503 over HTTP).
    Refused,
}

/// One client's way to the target.
pub(super) enum Client {
    Service(Arc<RoutingService>, Vec<Mail>),
    Http(http::Connection, Vec<http::MailRequest>),
}

impl Target {
    pub(super) fn n_mails(&self) -> usize {
        match self {
            Self::Service { mails, .. } => mails.len(),
            Self::Http { requests, .. } => requests.len(),
        }
    }

    /// A client; bodies are shared, mails in this process are copied once a client and once a request.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        Ok(match self {
            Self::Service { service, mails } => Client::Service(Arc::clone(service), mails.clone()),
            Self::Http { server, requests } => Client::Http(server.connect().await?, requests.clone()),
        })
    }
}

impl Client {
    /// Sends a mail and waits for its answer.
    pub(super) async fn send(&mut self, mail: usize) -> anyhow::Result<Answer> {
        match self {
            Self::Service(service, mails) => match service.route(mails[mail].clone()).await {
                Ok(_) => Ok(Answer::Decided),
                Err(RoutingError::Inference(InferenceError::Full { .. })) => Ok(Answer::Refused),
                Err(error) => Err(error.into()),
            },
            Self::Http(connection, requests) => connection.send(&requests[mail]).await,
        }
    }
}
