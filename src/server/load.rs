//! Opens for requests at once and loads the router beside them.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::connections::serve;
use super::{Handle, ServerConfig};
use crate::inference::device_name;
use crate::routing::{Mail, MailContent, MailFields, RoutingError, RoutingService};

/// What loading a router may fail with.
pub type LoadError = Box<dyn std::error::Error + Send + Sync>;

/// Why the service ended.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
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

/// Serves until `shutdown` resolves and the requests in flight are answered. `load` runs on a thread of its own; where it
/// fails, the service ends with its error.
///
/// # Errors
/// [`ServerError`].
pub async fn run<L, E>(
    listener: TcpListener,
    config: ServerConfig,
    load: L,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServerError>
where
    L: FnOnce() -> Result<Arc<RoutingService>, E> + Send + 'static,
    E: Into<LoadError>,
{
    let server = Handle::new(config);
    let serving = serve(listener, server.clone(), shutdown);
    tokio::pin!(serving);
    let loading = make_ready(&server, load);
    tokio::select! {
        ended = &mut serving => return ended.map_err(ServerError::Serve),
        loaded = loading => loaded?,
    }
    serving.await.map_err(ServerError::Serve)
}

async fn make_ready<L, E>(server: &Handle, load: L) -> Result<(), ServerError>
where
    L: FnOnce() -> Result<Arc<RoutingService>, E> + Send + 'static,
    E: Into<LoadError>,
{
    let (done, loaded) = oneshot::channel();
    // Not tokio's blocking pool: a process that is told to stop while it loads must not wait for it.
    std::thread::Builder::new()
        .name("load".to_owned())
        .spawn(move || {
            // An error here means that the service has ended meanwhile.
            let _ = done.send(load().map_err(Into::into));
        })
        .map_err(|source| ServerError::Load(source.into()))?;
    let service =
        loaded.await.unwrap_or_else(|_| Err("the loading thread panicked".into())).map_err(ServerError::Load)?;
    first_forward(&service).await?;
    let router = service.router();
    tracing::info!(
        router = router.name,
        version = router.version,
        encoder = router.encoder,
        queues = router.queues.len(),
        device = device_name(service.device()),
        "ready"
    );
    server.set_ready(service);
    Ok(())
}

/// Touches every weight and builds every pattern once, so that the first caller waits for neither.
async fn first_forward(service: &Arc<RoutingService>) -> Result<(), ServerError> {
    let text = "Where is my order?\n\nOn Mon, 5 Jan 2026 at 10:12, Desk <desk@example.org> wrote:\n> It left today.\n";
    let fields = MailFields { text: Some(text.to_owned()), ..MailFields::default() };
    let mail = Mail { id: Some("first".to_owned()), content: MailContent::Fields(fields) };
    service.route(mail).await.map(drop).map_err(ServerError::FirstForward)
}
