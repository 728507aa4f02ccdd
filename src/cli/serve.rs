//! `postroom serve`: the HTTP service.

use std::net::IpAddr;

use anyhow::Context;
use clap::Args;

use super::common::{ModelArgs, load_to_serve};
use crate::config::Overrides;
use crate::routing::RoutingService;
use crate::server;
use crate::shutdown;

/// Arguments of `postroom serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  postroom serve --port 8080\n  curl --data-binary @mail.eml -H 'content-type: message/rfc822' 127.0.0.1:8080/v1/route"
)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Address to listen on [default: 127.0.0.1].
    #[arg(long)]
    host: Option<IpAddr>,
    /// Port to listen on; 0 lets the system choose [default: 8080].
    #[arg(long)]
    port: Option<u16>,
}

pub(super) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let config = args.model.config(&Overrides { host: args.host, port: args.port, ..Overrides::default() })?;
    // Requests wait for the model most of the time: two threads carry thousands of them.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let address = (config.server.host, config.server.port);
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {}:{}", address.0, address.1))?;
        let (model, routing) = (config.model, config.routing);
        let load = move || -> anyhow::Result<_> { Ok(RoutingService::start(load_to_serve(&model)?, routing)?) };
        server::run(listener, config.server, load, shutdown::signal()).await?;
        anyhow::Ok(())
    })
}
