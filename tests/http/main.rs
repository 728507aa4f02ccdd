//! The HTTP interface as clients meet it: real sockets, the real encoder.

mod attention;
mod bad_input;
mod batch;
mod fixtures;
mod load;
mod operations;
mod route;
mod support;
