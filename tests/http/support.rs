//! A server on a free port and a client without conveniences.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use candle_core::{DType, Device};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use postroom::artifact::{
    Calibration, EncoderReference, Figures, HeadTensors, Manifest, Provenance, ROUTER_SCHEMA, Router, RouterFiles,
    RouterTensors, load_router, save_router,
};
use postroom::collate::Pooling;
use postroom::queues::Queue;
use postroom::routing::{RoutingConfig, RoutingService};
use postroom::server::{self, Handle, ServerConfig};
use postroom::tokenizer::WindowConfig;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const ENCODER: &str = "minilm-l6-v2";

/// A router on the real encoder whose head is arbitrary: for tests that do not care which queue wins.
pub(crate) fn router(windows: WindowConfig) -> Router {
    router_of(windows, 0.3, [0.0; 3])
}

/// A router whose logits are beyond any number, as a broken training might leave it.
pub(crate) fn bad_router() -> Router {
    router_of(WindowConfig::default(), f32::MAX, [f32::MAX, f32::MIN, f32::MAX])
}

fn router_of(windows: WindowConfig, scale: f32, bias: [f32; 3]) -> Router {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(models.join(ENCODER), folder.path().join(ENCODER)).unwrap();
    let path = folder.path().join("arbitrary");
    let queues = ["refunds", "late-deliveries", "allergy-questions"].map(|id| Queue::new(id, id));
    let d_model = 384;
    let weight = (0..queues.len() * d_model).map(|index| (index as f32 * 0.7).sin() * scale).collect();
    let head = HeadTensors { d_model, query: Vec::new(), weight, bias: bias.into() };
    let manifest = Manifest {
        schema: ROUTER_SCHEMA.to_owned(),
        name: "arbitrary".to_owned(),
        version: "1".to_owned(),
        encoder: EncoderReference { name: ENCODER.to_owned(), sha256: BTreeMap::new() },
        files: RouterFiles::default(),
        queues: queues.into(),
        members: Vec::new(),
        aliases: BTreeMap::new(),
        languages: Vec::new(),
        windows,
        pooling: Pooling::Mean,
        quantize: None,
        calibration: Calibration::new(1.0, 0.0),
        provenance: Provenance::default(),
        figures: Figures::default(),
    };
    save_router(&path, manifest, RouterTensors { head: &head, lexical: None, change: None, memory: None }, "").unwrap();
    load_router(&path, DType::F32, &Device::Cpu).unwrap()
}

/// A service of the test's own, which it may drain.
pub(crate) fn fresh_service(config: RoutingConfig) -> Arc<RoutingService> {
    RoutingService::start(router(WindowConfig::default()), config).unwrap()
}

/// A service of any router.
pub(crate) fn service_of(router: Router) -> Arc<RoutingService> {
    RoutingService::start(router, RoutingConfig::default()).unwrap()
}

/// The service that tests share; it is never drained.
pub(crate) fn shared_service() -> Arc<RoutingService> {
    static SERVICE: OnceLock<Arc<RoutingService>> = OnceLock::new();
    SERVICE.get_or_init(|| fresh_service(RoutingConfig::default())).clone()
}

/// The router that is shipped.
pub(crate) fn crumb() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/crumb")
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl TestServer {
    /// With the shared service. Dropped, never stopped: stopping would drain it for the others.
    pub(crate) async fn start() -> Self {
        Self::with(ServerConfig::default(), Some(shared_service())).await
    }

    pub(crate) async fn with(config: ServerConfig, service: Option<Arc<RoutingService>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handle = Handle::new(config).unwrap();
        if let Some(service) = service {
            handle.set_ready(service);
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server::serve(listener, handle.clone(), async move {
            // A server that is dropped in mid-test must not drain the service that others share.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        Self { address, handle, stop: Some(stop), serving }
    }

    /// Tells the server to stop, as a signal would.
    pub(crate) fn tell_to_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until it has stopped.
    pub(crate) async fn stopped(self) {
        self.serving.await.unwrap().unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Bytes::new()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, content_type: &str, body: impl Into<Bytes>) -> Reply {
        self.send(Request::post(path).header("content-type", content_type).body(body.into()).unwrap()).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: Value) -> Reply {
        self.post(path, "application/json", body.to_string()).await
    }

    pub(crate) async fn send(&self, request: Request<Bytes>) -> Reply {
        send(self.address, request).await
    }

    /// A mail that every healthy server routes.
    pub(crate) async fn answers_good_mail(&self) {
        let reply = self.post("/v1/route", "text/plain", "Where is my order? It should have come on Friday.").await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
}

/// One request on a connection of its own.
pub(crate) async fn send(address: SocketAddr, request: Request<Bytes>) -> Reply {
    exchange(TcpStream::connect(address).await.unwrap(), request).await
}

/// One request from another address of this machine: another client.
pub(crate) async fn send_from(host: &str, address: SocketAddr, request: Request<Bytes>) -> Reply {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(host.parse().unwrap(), 0)).unwrap();
    exchange(socket.connect(address).await.unwrap(), request).await
}

pub(crate) async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Bytes>,
) -> Reply {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (mut parts, body) = request.into_parts();
    parts.headers.insert("host", "postroom.test".parse().unwrap());
    let response = sender.send_request(Request::from_parts(parts, Full::new(body))).await.unwrap();
    let (parts, body) = response.into_parts();
    Reply { status: parts.status, headers: parts.headers, body: body.collect().await.unwrap().to_bytes() }
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {:?} {}", self.status, self.headers, String::from_utf8_lossy(&self.body))
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The problem of this status and code; checks what all problems have in common.
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{self:?}");
        assert_eq!(problem["status"], status, "{self:?}");
        assert_eq!(problem["type"], format!("urn:postroom:problem:{code}"));
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{self:?}");
        assert_eq!(problem["retry_after_s"].is_u64(), self.headers.contains_key("retry-after"), "{self:?}");
        problem
    }
}
