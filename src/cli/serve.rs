//! `postroom serve`: the HTTP service.

use std::net::IpAddr;

use anyhow::Context;
use clap::Args;

use super::common::{ModelArgs, load_routers};
use crate::config::Overrides;
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
        let listener =
            server::listen(address.into()).with_context(|| format!("cannot listen on {}:{}", address.0, address.1))?;
        let server = server::Handle::new(config.server.clone())?;
        server.export_traces(&config.telemetry.otlp)?;
        let load = move || load_routers(&config);
        server::run(listener, server, load, shutdown::signal()).await?;
        anyhow::Ok(())
    })
}
