//! What stands before every request: the keys and the certificate in force, read again while the service runs.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;

use super::ServerConfig;
use super::hangups::Hangups;
use super::keys::KeyRing;
use super::metrics::{Metrics, Reload};
use super::reload::{LOOK_EVERY, ReadError, Reloaded};
use super::tls;

/// Keys and certificate, where the settings name their files.
#[derive(Default)]
pub(super) struct Front {
    keys: Option<Reloaded<KeyRing>>,
    tls: Option<Reloaded<TlsAcceptor>>,
}

impl Front {
    /// Reads the files of the settings.
    ///
    /// # Errors
    /// Where one of them cannot be used.
    pub(super) fn open(config: &ServerConfig) -> Result<Self, ReadError> {
        let keys = match config.keys_file.clone() {
            Some(path) => Some(Reloaded::new(Reload::Keys, vec![path.clone()], move || KeyRing::read(&path))?),
            None => None,
        };
        let tls = match (config.tls_cert.clone(), config.tls_key.clone()) {
            (Some(cert), Some(key)) => {
                let paths = vec![cert.clone(), key.clone()];
                Some(Reloaded::new(Reload::Tls, paths, move || tls::acceptor(&cert, &key))?)
            }
            (None, None) => None,
            _ => return Err("server.tls_cert and server.tls_key belong together: set both or neither".into()),
        };
        Ok(Self { keys, tls })
    }

    pub(super) fn keys(&self) -> Option<Arc<KeyRing>> {
        self.keys.as_ref().map(Reloaded::get)
    }

    pub(super) fn tls(&self) -> Option<Arc<TlsAcceptor>> {
        self.tls.as_ref().map(Reloaded::get)
    }

    /// Looks at the files now and then, and reads them again at SIGHUP, until dropped.
    pub(super) async fn keep_looking(&self, metrics: &Metrics) {
        let mut hangups = Hangups::new();
        loop {
            let forced = tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => false,
                () = hangups.next() => true,
            };
            self.look(forced, metrics);
        }
    }

    /// Whether everything could be read. Small files: reading them takes less than a request does.
    pub(super) fn look(&self, forced: bool, metrics: &Metrics) -> bool {
        let keys = self.keys.as_ref().is_none_or(|keys| keys.look(forced, metrics));
        let tls = self.tls.as_ref().is_none_or(|tls| tls.look(forced, metrics));
        keys && tls
    }
}
