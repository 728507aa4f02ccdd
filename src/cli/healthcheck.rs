//! `postroom healthcheck`: the exit status says whether a service is ready; for containers without curl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;

use super::output::print_line;
use crate::config::{Config, Overrides, environment};

/// The time between two questions of one check.
const AGAIN: Duration = Duration::from_millis(100);

/// Arguments of `postroom healthcheck`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  postroom healthcheck && echo ready\n  \
    systemctl start postroom && postroom healthcheck --wait 30")]
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
    /// Ask again until the service is ready, for so many seconds; for one that has just been started.
    #[arg(long, value_name = "S", default_value_t = 0)]
    wait: u64,
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
    until_ready(&agent, &url, Duration::from_secs(args.wait))?;
    // The status says it, whether or not anybody can read the word.
    let _ = print_line("ready");
    Ok(())
}

/// Asks until the answer is yes; what the last one was where `wait` is over.
fn until_ready(agent: &ureq::Agent, url: &str, wait: Duration) -> anyhow::Result<()> {
    let started = Instant::now();
    while let Err(error) = ask(agent, url) {
        if started.elapsed() >= wait {
            return Err(error);
        }
        std::thread::sleep(AGAIN);
    }
    Ok(())
}

fn ask(agent: &ureq::Agent, url: &str) -> anyhow::Result<()> {
    let status = agent.get(url).call().with_context(|| format!("no answer from {url}"))?.status();
    if !status.is_success() {
        bail!("{url} answered {status}");
    }
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_service_that_still_loads_is_waited_for_only_where_that_is_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/readyz", listener.local_addr().unwrap());
        let service = std::thread::spawn(move || {
            for status in ["503 Service Unavailable", "503 Service Unavailable", "200 OK"] {
                let (mut stream, _) = listener.accept().unwrap();
                let head = BufReader::new(&stream).lines().map_while(Result::ok);
                assert!(head.take_while(|line| !line.is_empty()).count() > 0);
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let at_once = until_ready(&agent, &url, Duration::ZERO).unwrap_err();
        assert!(at_once.to_string().contains("503"), "{at_once}");
        until_ready(&agent, &url, Duration::from_secs(60)).unwrap();
        service.join().unwrap();
    }
}
