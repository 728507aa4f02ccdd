//! Connections: accepted within a bound, served with time limits, drained at the end.

mod seats;
mod served;
mod stall;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::seats::{SURELY_IDLE, Seat, Seats};
use self::served::Connection;
use super::Handle;
use super::app::{admin_app, app};
use super::asker::Peer;
use super::listen::listen;

/// How long the last spans may take to be sent, where the drain leaves as much.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// Most connections to `admin_port`: monitoring and a person or two.
const MAX_ADMIN_CONNECTIONS: usize = 64;

/// One port and what it answers.
struct Entrance {
    listener: TcpListener,
    app: Router,
    seats: Arc<Seats>,
    /// Whether it speaks TLS where a certificate is set.
    tls: bool,
}

/// Serves until `shutdown` resolves. Then readiness goes false, and after `drain_delay_ms` the port closes, requests in
/// flight are answered and the model's queue runs empty, all within `drain_timeout_ms`.
///
/// # Errors
/// Where the listener has no local address or `admin_port` cannot be opened. Errors of single connections never end the
/// service.
pub async fn serve(listener: TcpListener, server: Handle, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    let config = server.config();
    let admin = match config.admin_port {
        Some(port) => Some(listen((config.admin_host, port).into())?),
        None => None,
    };
    tracing::info!(address = %listener.local_addr()?, tls = server.front().tls().is_some(), "listening");
    let seats = Seats::new(config.max_connections, SURELY_IDLE);
    let entrance = Entrance { listener, app: app(server.clone()), seats, tls: true };
    let served = async {
        let stop = async {
            shutdown.await;
            server.stop();
            tokio::time::sleep(config.drain_delay()).await;
        };
        let graceful = GracefulShutdown::new();
        let connections = accept_until(entrance, &server, &graceful, stop).await;
        drain(&server, graceful, connections).await;
    };
    // Monitoring may look until the very end.
    tokio::select! {
        () = served => Ok(()),
        ended = serve_admin(admin, &server) => ended,
        () = server.front().keep_looking(server.metrics()) => Ok(()),
    }
}

/// Serves `admin_port`, where it is open, until dropped.
async fn serve_admin(listener: Option<TcpListener>, server: &Handle) -> io::Result<()> {
    let Some(listener) = listener else { return std::future::pending().await };
    tracing::info!(address = %listener.local_addr()?, "listening for monitoring");
    let seats = Seats::new(MAX_ADMIN_CONNECTIONS, SURELY_IDLE);
    let entrance = Entrance { listener, app: admin_app(server.clone()), seats, tls: false };
    accept_until(entrance, server, &GracefulShutdown::new(), std::future::pending()).await;
    Ok(())
}

/// Accepts connections and serves each on a task of its own; returns those that are open when `stop` resolves.
async fn accept_until(
    entrance: Entrance,
    server: &Handle,
    graceful: &GracefulShutdown,
    stop: impl Future<Output = ()>,
) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        // A connection that was accepted and waits for its seat must not be lost while others end.
        let next = next_connection(&entrance, server);
        tokio::pin!(next);
        let (stream, peer, seat) = loop {
            tokio::select! {
                biased;
                () = &mut stop => return connections,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                next = &mut next => break next,
            }
        };
        let tls = server.front().tls().filter(|_| entrance.tls);
        let connection = Connection { peer, seat, tls, app: entrance.app.clone(), server: server.clone() };
        connections.spawn(connection.serve(stream, graceful.watcher()));
    }
}

/// The next connection and its seat among those served at a time.
async fn next_connection(entrance: &Entrance, server: &Handle) -> (TcpStream, Peer, Seat) {
    let (stream, peer) = accept(&entrance.listener, server).await;
    let closed = || {
        server.metrics().http.closed_idle.inc();
    };
    (stream, peer, entrance.seats.take(closed).await)
}

async fn accept(listener: &TcpListener, server: &Handle) -> (TcpStream, Peer) {
    let mut failed = 0u32;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, Peer(peer)),
            Err(error) => {
                // A client that has gone already is no news; otherwise file descriptors are short and come back.
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    // Once in five seconds is enough to know.
                    if failed.is_multiple_of(50) {
                        tracing::warn!(%error, "cannot accept connections");
                    }
                    failed += 1;
                    server.metrics().http.accept_errors.inc();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn drain(server: &Handle, graceful: GracefulShutdown, mut connections: JoinSet<()>) {
    let deadline = Instant::now() + server.config().drain_timeout();
    tracing::info!(connections = connections.len(), "stopping: no new connections, answering requests in flight");
    if tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_err() {
        while connections.try_join_next().is_some() {}
        tracing::warn!(connections = connections.len(), "the drain timeout ran out, cutting what is left");
        connections.abort_all();
    }
    if let Some(routers) = server.loaded().cloned() {
        let (done, drained) = tokio::sync::oneshot::channel();
        // Not tokio's blocking pool: the runtime would wait for it even after the deadline.
        std::thread::spawn(move || {
            routers.drain();
            let _ = done.send(());
        });
        if tokio::time::timeout_at(deadline, drained).await.is_err() {
            tracing::warn!("the model was still busy when the drain timeout ran out");
        }
    }
    finish_traces(server, deadline).await;
    tracing::info!("stopped");
}

/// Sends the spans that wait, so that the last requests can be found.
async fn finish_traces(server: &Handle, deadline: Instant) {
    if server.traces().is_none() {
        return;
    }
    let within = deadline.saturating_duration_since(Instant::now()).min(LAST_SPANS);
    let (done, finished) = tokio::sync::oneshot::channel();
    let server = server.clone();
    std::thread::spawn(move || {
        let _ = done.send(server.traces().is_some_and(|traces| traces.finish(within)));
    });
    // The thread keeps to the time by itself; this is for one that cannot.
    if !matches!(tokio::time::timeout(within + Duration::from_secs(1), finished).await, Ok(Ok(true))) {
        tracing::warn!("the last spans did not reach the collector in time");
    }
}
