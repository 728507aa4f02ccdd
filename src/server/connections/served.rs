//! One connection, from its first byte to its end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::seats::{Busy, Seat};
use super::stall::StallGuard;
use crate::server::Handle;
use crate::server::asker::Peer;
use crate::server::spans::Local;

/// A head of more bytes is not waited for: 431. Up to twice as many may have come by then. Browsers send a sixteenth.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Most headers of a request. More get 431.
const MAX_HEADERS: usize = 100;

/// One connection and what it may reach.
pub(super) struct Connection {
    pub peer: Peer,
    pub seat: Seat,
    /// Where it is encrypted.
    pub tls: Option<Arc<TlsAcceptor>>,
    pub app: Router,
    pub server: Handle,
}

impl Connection {
    /// Serves it until it ends, breaks, or has to make room.
    pub(super) async fn serve(self, stream: TcpStream, watcher: Watcher) {
        // Answers are small and final: waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let local = Local { address: stream.local_addr().ok(), tls: self.tls.is_some() };
        let open = &self.server.metrics().http.connections;
        open.inc();
        let answered = async {
            match &self.tls {
                None => self.answer(stream, local, watcher).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => self.answer(stream, local, watcher).await,
                    Err(error) => {
                        self.server.metrics().http.tls_failures.inc();
                        tracing::debug!(%error, "no TLS connection");
                    }
                },
            }
        };
        let patience = self.server.config().head_timeout();
        tokio::select! {
            () = answered => {}
            reason = self.seat.must_leave(patience) => tracing::debug!(reason, "connection closed"),
        }
        open.dec();
    }

    /// Answers the requests of a stream, whatever carries it.
    async fn answer(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        local: Local,
        watcher: Watcher,
    ) {
        let app = TowerToHyperService::new(self.app.clone());
        let service = service_fn(|mut request: Request<Incoming>| {
            let busy = self.seat.busy();
            request.extensions_mut().insert(self.peer);
            if self.server.traces().is_some() {
                request.extensions_mut().insert(local);
            }
            let answer = app.call(request);
            async move { answer.await.map(|response| while_sent(response, busy)) }
        });
        let config = self.server.config();
        let stream = StallGuard::new(stream, config.write_timeout());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(config.idle_timeout())
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "connection ended early");
        }
    }
}

/// The connection counts as busy until its answer has been handed over whole.
fn while_sent(response: Response<Body>, busy: Busy) -> Response<Sent> {
    response.map(|body| Sent { body, _busy: busy })
}

struct Sent {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
