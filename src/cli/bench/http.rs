//! The same mails over HTTP/1.1 with kept connections: to postroom, or to a server with `/predict`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;

use super::mails::BenchMail;
use super::target::Answer;
use crate::email::CleanOptions;
use crate::routing::MailContent;

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server that takes mail.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// `host:port`.
    authority: String,
    path: String,
    speaks: Speaks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    /// `POST /v1/route`, fields or the raw message.
    Postroom,
    /// `POST /predict` with `inputs`, as in text-embeddings-inference.
    Predict,
}

/// A mail in the form that the server takes.
#[derive(Debug, Clone)]
pub(super) struct MailRequest {
    content_type: &'static str,
    body: Bytes,
}

impl Server {
    /// Reads `http://host:port`, which is taken as postroom, or a whole endpoint.
    pub(super) fn parse(url: &str) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("`{url}` is no URL; write http://127.0.0.1:8080"))?;
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            bail!("`{url}` does not start with http:// and a host; only plain HTTP is spoken here");
        };
        let (path, speaks) = match uri.path() {
            "" | "/" => ("/v1/route", Speaks::Postroom),
            path if path.ends_with("/predict") => (path, Speaks::Predict),
            path if path.ends_with("/v1/route") => (path, Speaks::Postroom),
            path => bail!("`{path}` is neither /v1/route nor /predict; give http://host:port for a postroom"),
        };
        let port = uri.port_u16().unwrap_or(80);
        Ok(Self { authority: format!("{}:{port}", authority.host()), path: path.to_owned(), speaks })
    }

    /// The body for a mail; for `/predict` the text that postroom would read, so that both see the same words.
    pub(super) fn request(&self, mail: &BenchMail) -> anyhow::Result<MailRequest> {
        let content = &mail.mail.content;
        let body = match (self.speaks, content) {
            (Speaks::Postroom, MailContent::Mime(raw)) => {
                return Ok(MailRequest { content_type: "message/rfc822", body: Bytes::from(raw.clone()) });
            }
            (Speaks::Postroom, MailContent::Fields(fields)) => {
                let all = [("subject", &fields.subject), ("text", &fields.text), ("html", &fields.html)];
                let given = all.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
                serde_json::to_vec(&given.collect::<std::collections::BTreeMap<_, _>>())?
            }
            (Speaks::Predict, content) => {
                let email = content.clean(&CleanOptions::default());
                let text = format!("{}\n{}", email.subject.text(), email.body.text());
                serde_json::to_vec(&json!({"inputs": text.trim(), "truncate": true}))?
            }
        };
        Ok(MailRequest { content_type: "application/json", body: Bytes::from(body) })
    }

    /// A connection of its own.
    pub(super) async fn connect(&self) -> anyhow::Result<Connection> {
        Ok(Connection { server: self.clone(), sender: self.dial().await? })
    }

    async fn dial(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(&self.authority)
            .await
            .with_context(|| format!("`{}` is no host that can be found", self.authority))?
            .collect();
        let stream = TcpStream::connect(addresses.as_slice())
            .await
            .with_context(|| format!("no server answers at {}; is it running?", self.authority))?;
        // Nagle's algorithm would hold small requests back for an acknowledgement.
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // A connection that breaks shows in the request that it carries.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}

/// A client's connection, opened again when the server closes it.
pub(super) struct Connection {
    server: Server,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Sends one mail and reads the whole answer.
    pub(super) async fn send(&mut self, mail: &MailRequest) -> anyhow::Result<Answer> {
        if self.sender.ready().await.is_err() {
            self.sender = self.server.dial().await?;
        }
        let request = Request::post(&self.server.path)
            .header("host", &self.server.authority)
            .header("content-type", mail.content_type)
            .body(Full::new(mail.body.clone()))?;
        let exchange = async {
            let response = self.sender.send_request(request).await?;
            let status = response.status();
            Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
        };
        let (status, body) = tokio::time::timeout(PATIENCE, exchange)
            .await
            .map_err(|_| anyhow!("{} did not answer within {} s", self.server.authority, PATIENCE.as_secs()))?
            .with_context(|| format!("the connection to {} broke", self.server.authority))?;
        match status {
            status if status.is_success() => Ok(Answer::Decided),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Ok(Answer::Refused),
            status => {
                let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
                bail!("{}{} answered {status}: {said}", self.server.authority, self.server.path)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_alone_is_a_postroom_and_predict_a_peer() {
        let server = Server::parse("http://127.0.0.1:8080").unwrap();
        assert_eq!((server.authority.as_str(), server.path.as_str()), ("127.0.0.1:8080", "/v1/route"));
        let server = Server::parse("http://localhost:3000/predict").unwrap();
        assert_eq!((server.path.as_str(), server.speaks), ("/predict", Speaks::Predict));
        assert_eq!(Server::parse("http://host").unwrap().authority, "host:80");
        for url in ["https://host/predict", "host:80", "http://host/embed", "not a url"] {
            assert!(Server::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_peer_gets_the_cleaned_text_and_postroom_the_fields() {
        let mail = BenchMail::of_fields("Cake".to_owned(), "It came cold.".to_owned(), None);
        let body = |url| Server::parse(url).unwrap().request(&mail).unwrap().body;
        assert_eq!(body("http://h/predict"), r#"{"inputs":"Cake\nIt came cold.","truncate":true}"#);
        assert_eq!(body("http://h"), r#"{"subject":"Cake","text":"It came cold."}"#);
    }
}
