//! postroom routes support email to the queue that must act.
//!
//! A raw mail is cleaned ([`email`]), cut into tokens ([`tokenizer`]), read by a small self-attention encoder
//! ([`model`]) and answered with a queue, a calibrated confidence and, on request, what every attention head looked at.
//! Modules import only from floors below them; `ARCHITECTURE.md` draws the floors, `tests/architecture.rs` checks them.

pub mod artifact;
pub mod cli;
pub mod collate;
pub mod config;
pub mod dataset;
pub mod email;
pub mod evaluation;
pub mod explain;
pub mod inference;
pub mod lexical;
pub mod metrics;
pub mod model;
pub mod otlp;
pub mod queues;
pub mod random;
pub mod routing;
pub mod server;
pub mod shutdown;
pub mod telemetry;
pub mod tokenizer;
pub mod training;

/// The code in docs/attention.md runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../docs/attention.md")]
pub struct AttentionPage;
