//! Requests, connections, keys, files.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::{Histograms, durations};

/// What the HTTP side counts.
#[derive(Debug)]
pub(in crate::server) struct Http {
    requests: Family<Answered, Counter>,
    duration: Histograms<Endpoint>,
    pub in_flight: Gauge,
    pub connections: Gauge,
    pub closed_idle: Counter,
    pub accept_errors: Counter,
    pub tls_failures: Counter,
    keys: Family<Refused, Counter>,
    reloads: Family<Reloaded, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    endpoint: String,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Endpoint {
    endpoint: String,
}

/// Why a key did not open the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::server) enum KeyRefusal {
    Missing,
    Unknown,
    Scope,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

/// A file that is read again while the service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::server) enum Reload {
    Keys,
    Tls,
}

impl Reload {
    pub(in crate::server) fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Tls => "tls",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reloaded {
    what: &'static str,
    outcome: &'static str,
}

impl Http {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let this = Self {
            requests: Family::default(),
            duration: Histograms::new_with_constructor(durations),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            closed_idle: Counter::default(),
            accept_errors: Counter::default(),
            tls_failures: Counter::default(),
            keys: Family::default(),
            reloads: Family::default(),
        };
        registry.register("http_requests", "Requests answered, 499 where the client left first", this.requests.clone());
        let name = "http_request_duration";
        registry.register_with_unit(name, "From a request's head to its answer", Unit::Seconds, this.duration.clone());
        registry.register("http_requests_in_flight", "Requests being answered", this.in_flight.clone());
        registry.register("http_connections", "Open connections", this.connections.clone());
        let help = "Idle connections closed to make room for others";
        registry.register("http_connections_closed_idle", help, this.closed_idle.clone());
        let help = "Connections that could not be accepted";
        registry.register("http_accept_errors", help, this.accept_errors.clone());
        registry.register("tls_handshake_failures", "TLS handshakes that failed", this.tls_failures.clone());
        registry.register("key_refusals", "Requests refused for their API key", this.keys.clone());
        registry.register("reloads", "Files read again while running", this.reloads.clone());
        this
    }

    /// One request is over; without a status its client left first.
    pub(in crate::server) fn answered(
        &self,
        endpoint: &str,
        method: &Method,
        status: Option<StatusCode>,
        duration: Duration,
    ) {
        // nginx's number for a client that closed the request.
        let status = status.map_or(499, |status| status.as_u16());
        let answered = Answered { endpoint: endpoint.to_owned(), method: name_of(method), status };
        self.requests.get_or_create(&answered).inc();
        self.duration.get_or_create(&Endpoint { endpoint: answered.endpoint }).observe(duration.as_secs_f64());
    }

    pub(in crate::server) fn key_refused(&self, why: KeyRefusal) {
        let reason = match why {
            KeyRefusal::Missing => "missing",
            KeyRefusal::Unknown => "unknown",
            KeyRefusal::Scope => "scope",
        };
        self.keys.get_or_create(&Refused { reason }).inc();
    }

    pub(in crate::server) fn reloaded(&self, what: Reload, ok: bool) {
        self.reloads.get_or_create(&Reloaded { what: what.name(), outcome: if ok { "ok" } else { "failed" } }).inc();
    }
}

/// A method of the request line may be any word.
pub(in crate::server) fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
