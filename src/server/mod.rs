//! The HTTP service: requests in, decisions and attention maps out.
//!
//! The port opens at once; until the router is loaded every question about mail is answered with 503. Every error is an
//! RFC 9457 problem with a stable `code`, but where a client of another server asks: it gets that server's words. No mail text
//! and no address is logged.
//!
//! ```no_run
//! use postroom::artifact::load_router;
//! use postroom::routing::{RoutingConfig, RoutingService};
//! use postroom::server::{self, Handle, ServerConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ServerConfig::default();
//! let listener = server::listen((config.host, config.port).into())?;
//! let server = Handle::new(config)?;
//! let load = || -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
//!     let router = load_router("models/crumb".as_ref(), candle_core::DType::F32, &candle_core::Device::Cpu)?;
//!     Ok(RoutingService::start(router, RoutingConfig::default())?)
//! };
//! server::run(listener, server, load, postroom::shutdown::signal()).await?;
//! # Ok(())
//! # }
//! ```

mod admin;
mod app;
mod asker;
mod attention;
mod batch;
mod compare;
mod config;
mod connections;
mod cors;
mod deadline;
mod explain;
mod extract;
mod front;
mod hangups;
mod headers;
mod heads;
mod health;
mod idempotency;
pub mod keys;
mod listen;
mod load;
mod metrics;
mod models;
mod observe;
mod openapi;
mod page;
mod peers;
mod problem;
mod proxies;
mod refusals;
mod reload;
mod route;
mod spans;
mod state;
mod tls;
mod trace;
mod watch;

pub use app::app;
pub use config::ServerConfig;
pub use connections::serve;
pub use listen::listen;
pub use load::{ServerError, run};
pub use metrics::count_lost_log_line;
pub use openapi::openapi_document;
pub use proxies::{Network, NetworkError};
pub use state::Handle;
