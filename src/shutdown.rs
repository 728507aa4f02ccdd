//! When to stop.

/// Resolves at the first SIGTERM or SIGINT (Ctrl-C). A second one ends the process at once, for whoever will not wait for
/// the drain.
pub async fn signal() {
    let name = next_signal().await;
    tracing::info!(signal = name, "told to stop");
    tokio::spawn(async {
        next_signal().await;
        crate::telemetry::flush();
        // 128 + SIGINT, as shells report it.
        std::process::exit(130);
    });
}

#[cfg(unix)]
async fn next_signal() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "signals cannot be caught: the process will end without draining");
            return std::future::pending().await;
        }
    };
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

#[cfg(not(unix))]
async fn next_signal() -> &'static str {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(%error, "signals cannot be caught: the process will end without draining");
        return std::future::pending().await;
    }
    "Ctrl-C"
}
