//! The HTTP service: requests in, decisions and attention maps out.
//!
//! The port opens at once; until the router is loaded every question about mail is answered with 503. Every error is an
//! RFC 9457 problem with a stable `code`. No mail text and no address is logged.
//!
//! ```no_run
//! use postroom::artifact::load_router;
//! use postroom::routing::{RoutingConfig, RoutingService};
//! use postroom::server::{self, ServerConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ServerConfig::default();
//! let listener = tokio::net::TcpListener::bind((config.host, config.port)).await?;
//! let load = || -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
//!     let router = load_router("models/crumb".as_ref(), candle_core::DType::F32, &candle_core::Device::Cpu)?;
//!     Ok(RoutingService::start(router, RoutingConfig::default())?)
//! };
//! server::run(listener, config, load, postroom::shutdown::signal()).await?;
//! # Ok(())
//! # }
//! ```

mod app;
mod attention;
mod batch;
mod config;
mod connections;
mod extract;
mod health;
mod load;
mod models;
mod observe;
mod problem;
mod refusals;
mod route;
mod state;

pub use config::ServerConfig;
pub use connections::serve;
pub use load::{LoadError, ServerError, run};
pub use state::Handle;
