//! `postroom healthcheck`: the exit status says whether a service is ready; for containers without curl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::output::print_line;
use crate::config::{Config, Overrides, environment};

/// Arguments of `postroom healthcheck`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  postroom healthcheck && echo ready")]
pub(super) struct HealthcheckArgs {
    /// File with the settings of the service.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Port of the service [default: that of the settings].
    #[arg(long)]
    port: Option<u16>,
    /// Longest wait for the answer, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    timeout_ms: u64,
}

pub(super) fn run(args: &HealthcheckArgs) -> anyhow::Result<()> {
    let overrides = Overrides { port: args.port, ..Overrides::default() };
    let server = Config::load(args.config.as_deref(), environment(), &overrides)?.server;
    // The port for monitoring speaks plain HTTP and answers probes too.
    let (host, port) = match (server.admin_port, args.port) {
        (Some(port), None) => (server.admin_host, port),
        _ if server.tls_cert.is_some() => {
            bail!("the service speaks TLS, this check does not; set server.admin_port, where it asks then")
        }
        _ => (server.host, server.port),
    };
    let url = format!("http://{}/readyz", SocketAddr::new(reachable(host), port));
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_millis(args.timeout_ms)))
        .http_status_as_error(false)
        .build()
        .into();
    let status = agent.get(&url).call().with_context(|| format!("no answer from {url}"))?.status();
    if !status.is_success() {
        bail!("{url} answered {status}");
    }
    // The status says it, whether or not anybody can read the word.
    let _ = print_line("ready");
    Ok(())
}

/// A service on all addresses is asked on loopback.
fn reachable(host: IpAddr) -> IpAddr {
    match host {
        IpAddr::V4(host) if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(host) if host.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        host => host,
    }
}
