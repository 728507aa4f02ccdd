//! Whose request it is, where proxies of ours stand between: `X-Forwarded-For`, or `Forwarded` (RFC 7239).
//!
//! Each proxy adds the address that it was asked from at the right. Anybody can send these headers, so they count only where the
//! peer is one of `server.trusted_proxies`, and only up to the first address from the right that is none of them: what stands
//! left of it was written by a stranger. What is no address ends the reading too. Nothing of it is logged.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName, header};
use serde::{Deserialize, Serialize};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A network, or a single address: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    /// Zero behind the prefix.
    address: IpAddr,
    /// Bits of the prefix.
    bits: u8,
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// What stands before the slash is no address.
    #[error("`{given}` is no address and no network such as 10.0.0.0/8 or 2001:db8::/32")]
    Address {
        /// The text.
        given: String,
    },
    /// What stands behind the slash is no number of bits.
    #[error("the prefix of `{given}` must be a number from 0 to {most}")]
    Prefix {
        /// The text.
        given: String,
        /// Bits of such an address.
        most: u8,
    },
    /// An address within a network, where one of both is meant.
    #[error("`{given}` has bits behind its prefix: write {network}, or the address alone")]
    Host {
        /// The text.
        given: String,
        /// The network around it.
        network: Network,
    },
}

impl Network {
    fn contains(self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.bits) == self.address
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let given = || text.to_owned();
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Address { given: given() })?;
        // An IPv4 address in the clothes of IPv6 would match nothing.
        if address.to_canonical() != address {
            return Err(NetworkError::Address { given: given() });
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => {
                let bits = bits.parse().ok().filter(|bits| *bits <= most);
                bits.ok_or_else(|| NetworkError::Prefix { given: given(), most })?
            }
        };
        let network = Self { address: masked(address, bits), bits };
        if network.address == address { Ok(network) } else { Err(NetworkError::Host { given: given(), network }) }
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

/// The address of whoever asks: of the peer, or where the peer is a trusted proxy the nearest one that is not.
pub(super) fn client(trusted: &[Network], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let ours = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    if !ours(peer) {
        return peer;
    }
    let told = |name: &HeaderName, read: fn(&str) -> Option<IpAddr>| {
        headers.contains_key(name).then(|| nearest_stranger(headers, name, read, ours).unwrap_or(peer))
    };
    match (told(&X_FORWARDED_FOR, address), told(&header::FORWARDED, forwarded_for)) {
        (Some(one), Some(other)) if one != other => {
            // A proxy writes one of the two and may pass on the other as a client wrote it: neither is believed.
            peer
        }
        (one, other) => one.or(other).unwrap_or(peer),
    }
}

/// The first address from the right that is none of ours; where all are, the last of them.
fn nearest_stranger(
    headers: &HeaderMap,
    name: &HeaderName,
    read: fn(&str) -> Option<IpAddr>,
    ours: impl Fn(IpAddr) -> bool,
) -> Option<IpAddr> {
    let mut nearest = None;
    // A header that stands several times is one list. No address holds a comma, so commas are enough, from the right: quotes
    // that a stranger left open reach nothing that a proxy has added.
    let lists = headers.get_all(name).iter().rev().map(|value| value.to_str().unwrap_or("?"));
    for element in lists.flat_map(|list| list.rsplit(',')).map(str::trim).filter(|element| !element.is_empty()) {
        let Some(address) = read(element) else { break };
        nearest = Some(address);
        if !ours(address) {
            break;
        }
    }
    nearest
}

/// `192.0.2.7`, `192.0.2.7:4711`, `2001:db8::7`, `[2001:db8::7]` or `[2001:db8::7]:4711`.
fn address(text: &str) -> Option<IpAddr> {
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let address = text.parse().ok().or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()));
    address.or_else(bracketed).map(|address: IpAddr| address.to_canonical())
}

/// The `for` of `for="[2001:db8::7]:4711";proto=https`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    let node = node.trim();
    address(node.strip_prefix('"').and_then(|node| node.strip_suffix('"')).unwrap_or(node))
}

#[cfg(test)]
mod tests;
