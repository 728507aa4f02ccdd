//! Opening a port.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted. The standard library asks for 128: of thousands that come at once the others would
/// have to try again after a second, and after two more. The system has the last word (`net.core.somaxconn`).
const BACKLOG: u32 = 4096;

/// Listens on an address; port 0 lets the system choose. To be called within a tokio runtime.
///
/// # Errors
/// Where the address is taken or not this machine's.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A service that starts again must not wait until the system has forgotten its last connections. Elsewhere the option
    // means that two may listen at once.
    if cfg!(unix) {
        socket.set_reuseaddr(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::net::TcpStream;

    use super::*;

    /// Nobody accepts here, so whoever finds no place would wait for ever.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn many_connections_may_wait_to_be_accepted() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let most: usize = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().parse().unwrap();
        let mut connecting = tokio::task::JoinSet::new();
        // One file descriptor each, of 1,024 that every process may have.
        for _ in 0..most.min(400) {
            connecting.spawn(TcpStream::connect(address));
        }
        let open = tokio::time::timeout(Duration::from_secs(60), connecting.join_all()).await;
        assert!(open.is_ok_and(|open| open.iter().all(Result::is_ok)), "some wait outside");
    }
}
