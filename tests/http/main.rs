//! The HTTP interface as clients meet it: real sockets, the real encoder.

#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

mod attention;
mod bad_input;
mod batch;
mod fixtures;
mod load;
mod operations;
mod route;
mod support;
