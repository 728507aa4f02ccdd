//! Who asks: what every handler hands on to the model's queue.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::deadline::Deadline;
use super::keys::KeyName;
use super::proxies;
use super::state::Handle;
use crate::inference::{Caller, Client};

/// The address of the other end of a connection; a request carries it as an extension.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// One request's client and deadline.
#[derive(Debug, Clone, Default)]
pub(super) struct Asker {
    client: Client,
    /// When the request is given up.
    pub(super) deadline: Deadline,
}

impl Asker {
    /// Whose request it is.
    pub(super) fn client(&self) -> Client {
        self.client
    }

    /// As the model's queue wants it.
    pub(super) fn caller(&self) -> Caller {
        Caller { client: self.client, deadline: Some(self.deadline.at().into()) }
    }
}

impl FromRequestParts<Handle> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, server: &Handle) -> Result<Self, Infallible> {
        let deadline = parts.extensions.get::<Deadline>().cloned().unwrap_or_default();
        let client = match (parts.extensions.get::<KeyName>(), parts.extensions.get::<Peer>()) {
            (Some(key), _) => Client::of(key),
            (None, Some(Peer(peer))) => {
                Client::of(&network(proxies::client(&server.config().trusted_proxies, peer.ip(), &parts.headers)))
            }
            (None, None) => Client::default(),
        };
        Ok(Self { client, deadline })
    }
}

/// One host's share of the address: of IPv6 the network, since a host has 2^64 addresses in it to choose from.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mut segments = address.segments();
            segments[4..].fill(0);
            IpAddr::V6(segments.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_many_addresses_is_one_client() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
