//! The HTTP interface as clients meet it: real sockets, the real encoder.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod admission;
mod attention;
mod bad_input;
mod batch;
mod collector;
mod connections;
mod damage;
mod explain;
mod fixtures;
mod idempotency;
mod inside;
mod load;
mod metrics;
mod openapi;
mod operations;
mod page;
mod peers;
mod proxies;
mod route;
mod routers;
mod security;
mod support;
mod tiny;
mod traces;
