//! Looks after the routers while they answer: every few seconds, and at once on SIGHUP.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::hangups::Hangups;
use crate::routing::Routers;

/// Looks at the routers' files for as long as it is polled.
pub(super) async fn watch(routers: Arc<Routers>, mut hangups: Hangups) -> Infallible {
    loop {
        let routers = Arc::clone(&routers);
        // What a look leads to is in the log; where the system gives no thread, the next look is soon.
        tokio::select! {
            () = pause(routers.poll()) => {
                let _ = on_a_thread(move || routers.look()).await;
            }
            () = hangups.next() => {
                tracing::info!("SIGHUP: looking at the routers");
                let _ = on_a_thread(move || routers.reload_all()).await;
            }
        }
    }
}

async fn pause(poll: Option<Duration>) {
    match poll {
        Some(poll) => tokio::time::sleep(poll).await,
        None => std::future::pending().await,
    }
}

/// Runs what takes long on a thread of its own; `None` where it panicked or the system gave none. Not tokio's blocking pool: a
/// process that is told to stop while it loads must not wait for it.
pub(super) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, result) = oneshot::channel();
    let thread = std::thread::Builder::new().name("load".to_owned()).spawn(move || {
        // An error here means that the service has ended meanwhile.
        let _ = done.send(work());
    });
    match thread {
        Ok(_) => result.await.ok(),
        Err(error) => {
            tracing::error!(%error, "the system gives no thread");
            None
        }
    }
}
