//! Connections: accepted within a bound, served with time limits, drained at the end.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Handle;
use super::app::app;

/// Serves until `shutdown` resolves. Then readiness goes false, and after `drain_delay_ms` the port closes, requests in
/// flight are answered and the model's queue runs empty, all within `drain_timeout_ms`.
///
/// # Errors
/// Where the listener has no local address. Errors of single connections never end the service.
pub async fn serve(listener: TcpListener, server: Handle, shutdown: impl Future<Output = ()>) -> io::Result<()> {
    tracing::info!(address = %listener.local_addr()?, "listening");
    let app = app(server.clone());
    let places = Arc::new(Semaphore::new(server.config().max_connections));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let stop = async {
        shutdown.await;
        server.stop();
        tokio::time::sleep(server.config().drain_delay()).await;
    };
    tokio::pin!(stop);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            (stream, place) = accept(&listener, &places) => {
                let connection = connection(stream, app.clone(), &server, &graceful);
                connections.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "connection ended early");
                    }
                    drop(place);
                });
            }
        }
    }
    drop(listener);
    drain(&server, graceful, connections).await;
    Ok(())
}

/// The next connection and its place among those served at a time.
async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                // A client that has gone already is no news; otherwise file descriptors are short and come back.
                if error.kind() != io::ErrorKind::ConnectionAborted {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

fn connection(
    stream: TcpStream,
    app: Router,
    server: &Handle,
    graceful: &GracefulShutdown,
) -> impl Future<Output = hyper::Result<()>> + use<> {
    // Answers are small and final: waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.config().idle_timeout())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    graceful.watch(connection)
}

async fn drain(server: &Handle, graceful: GracefulShutdown, mut connections: JoinSet<()>) {
    let deadline = Instant::now() + server.config().drain_timeout();
    tracing::info!(connections = connections.len(), "stopping: no new connections, answering requests in flight");
    if tokio::time::timeout_at(deadline, graceful.shutdown()).await.is_err() {
        while connections.try_join_next().is_some() {}
        tracing::warn!(connections = connections.len(), "the drain timeout ran out, cutting what is left");
        connections.abort_all();
    }
    if let Some(service) = server.loaded().cloned() {
        let (done, drained) = tokio::sync::oneshot::channel();
        // Not tokio's blocking pool: the runtime would wait for it even after the deadline.
        std::thread::spawn(move || {
            service.drain();
            let _ = done.send(());
        });
        if tokio::time::timeout_at(deadline, drained).await.is_err() {
            tracing::warn!("the model was still busy when the drain timeout ran out");
        }
    }
    tracing::info!("stopped");
}
