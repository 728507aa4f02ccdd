//! Settings of the HTTP service.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where the service listens and what it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port to listen on; 0 lets the system choose.
    pub port: u16,
    /// Connections served at a time; further ones wait in the system's backlog.
    pub max_connections: usize,
    /// Longest request body, in bytes.
    pub max_body_bytes: usize,
    /// Most mails in one batch.
    pub max_batch_emails: usize,
    /// How long a connection may take to send a request's head, idle time before it included, in milliseconds.
    pub idle_timeout_ms: u64,
    /// How long a request's body may take to arrive, in milliseconds.
    pub body_timeout_ms: u64,
    /// How long a request may take in all, in milliseconds.
    pub request_timeout_ms: u64,
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
            max_connections: 1024,
            max_body_bytes: 2 * 1024 * 1024,
            max_batch_emails: 64,
            idle_timeout_ms: 75_000,
            body_timeout_ms: 10_000,
            request_timeout_ms: 30_000,
            drain_delay_ms: 0,
            drain_timeout_ms: 30_000,
        }
    }
}

impl ServerConfig {
    pub(super) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms)
    }

    pub(super) fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    pub(super) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms)
    }

    pub(super) fn drain_delay(&self) -> Duration {
        Duration::from_millis(self.drain_delay_ms)
    }

    pub(super) fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.drain_timeout_ms)
    }
}
