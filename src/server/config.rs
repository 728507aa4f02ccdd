//! Settings of the HTTP service.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::idempotency::Bounds;
use super::proxies::Network;

/// Where the service listens and what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 lets the system choose.
    pub port: u16,
    /// Port for `/metrics` and `/admin/...` alone; unset: they are on `port`.
    pub admin_port: Option<u16>,
    /// Address of `admin_port`.
    pub admin_host: IpAddr,
    /// File with the API keys; unset: nobody is asked for one.
    pub keys_file: Option<PathBuf>,
    /// Certificate chain in PEM; unset: plain HTTP.
    pub tls_cert: Option<PathBuf>,
    /// Private key of `tls_cert` in PEM.
    pub tls_key: Option<PathBuf>,
    /// Origins of pages that may ask from a browser.
    pub cors_origins: Vec<String>,
    /// Proxies that are believed about whose request they pass on; empty: the peer of a connection is the client.
    pub trusted_proxies: Vec<Network>,
    /// Connections served at a time; further ones wait in the system's backlog.
    pub max_connections: usize,
    /// Longest request body, in bytes.
    pub max_body_bytes: usize,
    /// Most mails in one batch.
    pub max_batch_emails: usize,
    /// How long an answer is kept for its `Idempotency-Key`, in milliseconds.
    pub idempotency_keep_ms: u64,
    /// Most answers kept.
    pub idempotency_max_answers: usize,
    /// Most bytes of answers kept.
    pub idempotency_max_bytes: usize,
    /// How long a connection may take to send a request's head, idle time before it included, in milliseconds.
    pub idle_timeout_ms: u64,
    /// How long a new connection may take to send its first request's head, in milliseconds.
    pub head_timeout_ms: u64,
    /// How long a request's body may take to arrive, in milliseconds.
    pub body_timeout_ms: u64,
    /// How long a client may leave an answer unread, in milliseconds.
    pub write_timeout_ms: u64,
    /// How long a request may take in all, in milliseconds, where it does not say so itself.
    pub request_timeout_ms: u64,
    /// The longest time that a request may ask for, in milliseconds.
    pub max_request_timeout_ms: u64,
    /// How long new requests are still taken after a signal to stop, while readiness is false already, in milliseconds.
    pub drain_delay_ms: u64,
    /// How long requests in flight may take to end once the port is closed, in milliseconds.
    pub drain_timeout_ms: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8080,
            admin_port: None,
            admin_host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            keys_file: None,
            tls_cert: None,
            tls_key: None,
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            max_connections: 1024,
            max_body_bytes: 2 * 1024 * 1024,
            max_batch_emails: 64,
            idempotency_keep_ms: 600_000,
            idempotency_max_answers: 10_000,
            idempotency_max_bytes: 16 * 1024 * 1024,
            idle_timeout_ms: 75_000,
            head_timeout_ms: 10_000,
            body_timeout_ms: 10_000,
            write_timeout_ms: 10_000,
            request_timeout_ms: 30_000,
            max_request_timeout_ms: 120_000,
            drain_delay_ms: 0,
            drain_timeout_ms: 30_000,
        }
    }
}

impl ServerConfig {
    /// The largest `max_batch_emails` that the settings allow: more of one request is never kept.
    pub const MOST_BATCH_EMAILS: usize = 10_000;

    pub(super) fn idempotency(&self) -> Bounds {
        Bounds {
            time: Duration::from_millis(self.idempotency_keep_ms),
            answers: self.idempotency_max_answers,
            bytes: self.idempotency_max_bytes,
        }
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms)
    }

    pub(super) fn head_timeout(&self) -> Duration {
        Duration::from_millis(self.head_timeout_ms)
    }

    pub(super) fn write_timeout(&self) -> Duration {
        Duration::from_millis(self.write_timeout_ms)
    }

    pub(super) fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    pub(super) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms)
    }

    /// Never less than the usual one.
    pub(super) fn max_request_timeout(&self) -> Duration {
        Duration::from_millis(self.max_request_timeout_ms.max(self.request_timeout_ms))
    }

    pub(super) fn drain_delay(&self) -> Duration {
        Duration::from_millis(self.drain_delay_ms)
    }

    pub(super) fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_timeout_ms)
    }
}
