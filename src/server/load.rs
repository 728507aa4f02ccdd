//! Opens for requests at once and loads the routers beside them.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::Handle;
use super::connections::serve;
use super::hangups::Hangups;
use super::watch::{on_a_thread, watch};
use crate::inference::{Caller, device_name};
use crate::otlp::OtlpError;
use crate::routing::{LoadError, Mail, MailContent, MailFields, Routers, RoutingError, RoutingService};

/// Why the service ended.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Keys or certificate cannot be used.
    #[error("the keys or the certificate of the settings cannot be used")]
    Front(#[source] LoadError),
    /// Traces cannot be exported as the settings ask.
    #[error("traces cannot be exported")]
    Traces(#[source] OtlpError),
    /// The router cannot be used.
    #[error("the router cannot be loaded")]
    Load(#[source] LoadError),
    /// The router was loaded, but its first forward failed.
    #[error("the router's first answer failed")]
    FirstForward(#[source] RoutingError),
    /// Accepting connections failed.
    #[error("the port cannot be served")]
    Serve(#[source] io::Error),
}

/// Serves until `shutdown` resolves and the requests in flight are answered. `load` gives one router or several and runs on a
/// thread of its own; where it fails, the service ends with its error. From then on routers are exchanged as their files
/// change.
///
/// # Errors
/// [`ServerError`].
pub async fn run<L, R, E>(
    listener: TcpListener,
    server: Handle,
    load: L,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServerError>
where
    L: FnOnce() -> Result<R, E> + Send + 'static,
    R: Into<Routers> + Send + 'static,
    E: Into<LoadError>,
{
    // Before anything is loaded: a signal that nobody waits for would end the process.
    let hangups = Hangups::new();
    let serving = serve(listener, server.clone(), shutdown);
    tokio::pin!(serving);
    let loading = make_ready(&server, load);
    let routers = tokio::select! {
        ended = &mut serving => return ended.map_err(ServerError::Serve),
        loaded = loading => loaded?,
    };
    tokio::select! {
        ended = serving => ended.map_err(ServerError::Serve),
        never = watch(routers, hangups) => match never {},
    }
}

async fn make_ready<L, R, E>(server: &Handle, load: L) -> Result<Arc<Routers>, ServerError>
where
    L: FnOnce() -> Result<R, E> + Send + 'static,
    R: Into<Routers> + Send + 'static,
    E: Into<LoadError>,
{
    let loaded = on_a_thread(move || load().map_err(Into::into)).await;
    let loaded = loaded.unwrap_or_else(|| Err("the loading thread ended early".into())).map_err(ServerError::Load)?;
    let routers = Arc::new(loaded.into());
    let service = routers.default_slot().live().ok_or_else(|| ServerError::Load("no router is in force".into()))?;
    first_forward(&service).await?;
    let router = service.router();
    tracing::info!(
        router = router.name,
        version = router.version,
        encoder = router.encoder,
        queues = router.queues.len(),
        routers = ?routers.names(),
        device = device_name(service.device()),
        "ready"
    );
    server.share(Arc::clone(&routers));
    Ok(routers)
}

/// Touches every weight and builds every pattern once, so that the first caller waits for neither.
async fn first_forward(service: &Arc<RoutingService>) -> Result<(), ServerError> {
    let text = "Where is my order?\n\nOn Mon, 5 Jan 2026 at 10:12, Desk <desk@example.org> wrote:\n> It left today.\n";
    let fields = MailFields { text: Some(text.to_owned()), ..MailFields::default() };
    let mail = Mail { id: Some("first".to_owned()), content: MailContent::Fields(fields) };
    service.decide(mail, Caller::default()).await.map(drop).map_err(ServerError::FirstForward)
}
