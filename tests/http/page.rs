//! The page's files and its own endpoint. What the page does in a browser is tested by `scripts/page-check`.

use hyper::Request;
use hyper::body::Bytes;
use postroom::server::ServerConfig;
use serde_json::json;

use crate::support::TestServer;

#[tokio::test]
async fn the_page_is_there_before_the_router_and_lets_nothing_in() {
    let server = TestServer::with(ServerConfig::default(), None).await;
    for path in ["/", "/explain", "/page/app.js", "/page/page.css"] {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        let policy = reply.header("content-security-policy");
        for rule in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"] {
            assert!(policy.split("; ").any(|part| part == rule), "{path}: {policy}");
        }
        for rule in ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"] {
            assert!(policy.split("; ").any(|part| part == rule), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("referrer-policy"), "no-referrer");
        assert_eq!(reply.header("cache-control"), "no-cache");
    }
    assert_eq!(server.get("/").await.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(server.get("/page/app.js").await.header("content-type"), "text/javascript; charset=utf-8");
    server.get("/page/other.js").await.problem(404, "not_found");
    server.post("/page/app.js", "text/plain", "a mail").await.problem(405, "method_not_allowed");
}

#[tokio::test]
async fn a_file_that_the_browser_has_is_not_sent_again() {
    let server = TestServer::with(ServerConfig::default(), None).await;
    let first = server.get("/page/app.js").await;
    let again = |tag: &str| Request::get("/page/app.js").header("if-none-match", tag).body(Bytes::new()).unwrap();
    let reply = server.send(again(first.header("etag"))).await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (304, 0), "{reply:?}");
    assert_eq!(reply.header("etag"), first.header("etag"));
    assert_eq!(server.send(again("\"another\"")).await.status, 200);
}

#[tokio::test]
async fn a_browser_gets_the_page_packed() {
    let server = TestServer::with(ServerConfig::default(), None).await;
    let plain = server.get("/page/inside.js").await;
    assert_eq!(plain.header("content-encoding"), "");
    let asked =
        Request::get("/page/inside.js").header("accept-encoding", "gzip, deflate, br").body(Bytes::new()).unwrap();
    let packed = server.send(asked).await;
    assert_eq!((packed.header("content-encoding"), packed.header("vary")), ("gzip", "accept-encoding"));
    assert!(packed.body.len() * 2 < plain.body.len(), "{} of {}", packed.body.len(), plain.body.len());
    assert_eq!(packed.body[..2], [0x1f, 0x8b]);
}

#[tokio::test]
async fn a_raw_message_is_told_as_its_offsets_see_it() {
    let server = TestServer::start().await;
    let raw = "From: ann@example.org\r\nSubject: =?utf-8?q?Caf=C3=A9_order?=\r\nMIME-Version: 1.0\r\n\
               Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
               The caf=C3=A9 sent =F0=9F=8E=82 late.\r\n\r\n-- \r\nAnn\r\n";
    let reply = server.post("/v1/read", "message/rfc822", raw).await.json();
    assert_eq!(reply["subject"], "Café order");
    let text = reply["text"].as_str().unwrap();
    let map = server.post("/v1/attention?offsets=utf16", "message/rfc822", raw).await.json();
    let utf16: Vec<u16> = text.encode_utf16().collect();
    let units = map["units"].as_array().unwrap();
    for unit in units.iter().filter(|unit| unit["field"] == "body") {
        let place = |name: &str| usize::try_from(unit[name].as_u64().unwrap()).unwrap();
        let slice = String::from_utf16(&utf16[place("start")..place("end")]).unwrap();
        assert_eq!(unit["text"], slice, "{unit}");
    }
    assert!(units.iter().any(|unit| unit["text"] == "café"), "{units:?}");
    assert_eq!(map["text"]["length"], utf16.len());
}

#[tokio::test]
async fn a_mail_in_json_is_told_as_it_was_sent() {
    let server = TestServer::start().await;
    let mail = json!({"subject": "Hi", "text": "Where is it?\r\n\r\n-- \r\nAnn"});
    assert_eq!(server.post_json("/v1/read", mail.clone()).await.json(), mail);
    server.post_json("/v1/read?words=true", mail).await.problem(422, "unknown_parameter");
}
