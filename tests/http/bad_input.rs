//! Everything a client can get wrong gets a 4xx that names it, or a sound decision; and the next request works.

use hyper::Request;
use hyper::body::Bytes;
use serde_json::json;

use crate::support::TestServer;

/// Content type, body, status, code, field.
type Case = (&'static str, &'static [u8], u16, &'static str, &'static str);

const REFUSED: [Case; 26] = [
    ("application/json", b"", 400, "incomplete_json", "body"),
    ("application/json", br#"{"subject": "Late", "text": "Where is my or"#, 400, "incomplete_json", "body"),
    ("application/json", b"{'text': 'a'}", 400, "invalid_json", "body"),
    ("application/json", b"{\"text\": \"a\0b\"}", 400, "invalid_json", "body"),
    ("application/json", b"{\"text\": \"a\"} trailing", 400, "invalid_json", "body"),
    ("application/json", b"{\"text\": \"\xff\xfe\"}", 400, "invalid_text", "body"),
    ("application/json", b"{\"text\": \"\xed\xa0\xbd\"}", 400, "invalid_text", "body"),
    ("application/json; charset=utf-16", b"{}", 415, "unsupported_charset", "content-type"),
    ("application/json", b"{}", 422, "missing_field", "text"),
    ("application/json", b"[]", 422, "wrong_type", ""),
    ("application/json", b"\"text\"", 422, "wrong_type", ""),
    ("application/json", b"null", 422, "wrong_type", ""),
    ("application/json", br#"{"text": 5}"#, 422, "wrong_type", "text"),
    ("application/json", br#"{"text": "a", "body": "b"}"#, 422, "unknown_field", "body"),
    ("application/json", br#"{"text": "a", "layers": "last"}"#, 422, "unknown_field", "layers"),
    ("application/json", br#"{"text": "a", "text": "b"}"#, 422, "repeated_field", "text"),
    ("application/json", br#"{"text": "a", "headers": "b"}"#, 422, "wrong_type", "headers"),
    ("application/json", br#"{"text": "a", "headers": {"To": 5}}"#, 422, "wrong_type", "headers.To"),
    ("application/json", br#"{"text": "a", "headers": [["To"]]}"#, 422, "wrong_type", "headers"),
    ("application/json", br#"{"text": "a", "id": "a\nb"}"#, 422, "invalid_field", "id"),
    ("text/plain", b"My order \xff", 400, "invalid_text", "body"),
    ("text/plain; charset=nonsense", b"My order", 415, "unsupported_charset", "content-type"),
    ("application/x-www-form-urlencoded", b"text=a", 415, "unsupported_media_type", "content-type"),
    ("multipart/form-data; boundary=x", b"--x--", 415, "unsupported_media_type", "content-type"),
    ("text/html", b"<p>a</p>", 415, "unsupported_media_type", "content-type"),
    ("", b"a", 415, "unsupported_media_type", "content-type"),
];

#[tokio::test]
async fn what_cannot_be_read_is_refused_by_name_and_the_next_request_works() {
    let server = TestServer::start().await;
    for (content_type, body, status, code, field) in REFUSED {
        let reply = server.post("/v1/route", content_type, body).await;
        let problem = reply.problem(status, code);
        assert_eq!(problem["field"].as_str().unwrap_or_default(), field, "{problem}");
        assert!(problem["remedy"].is_string() || problem["valid"].is_array() || problem["limit"].is_u64(), "{problem}");
    }
    server.answers_good_mail().await;
}

#[tokio::test]
async fn mail_without_words_goes_to_a_person() {
    let server = TestServer::start().await;
    for (content_type, body) in [
        ("text/plain", ""),
        ("text/plain", " \r\n\t \u{a0}\n"),
        ("text/plain", "\0\0\0"),
        ("message/rfc822", ""),
        ("message/rfc822", "\0\0\0\r\n\r\n\0"),
        ("application/json", r#"{"text": ""}"#),
        ("application/json", r#"{"subject": "", "text": null, "html": "  "}"#),
        ("application/json", r#"{"text": "\u0000 \u0000"}"#),
    ] {
        let reply = server.post("/v1/route", content_type, body).await;
        assert_eq!(reply.status, 200, "{content_type} {body:?}: {reply:?}");
        let decision = reply.json();
        assert_eq!(decision["decision"], "needs_human", "{content_type} {body:?}: {decision}");
        assert!(!decision["reasons"].as_array().unwrap().is_empty(), "{decision}");
        assert!(decision["queue"].is_null(), "{decision}");
    }
    server.answers_good_mail().await;
}

#[tokio::test]
async fn odd_but_readable_mail_is_routed() {
    let server = TestServer::start().await;
    let not_utf8: &[u8] = b"Subject: \xff\xfe\r\n\r\nWhere is my order \xff\xfe\0?\r\n";
    for (content_type, body) in [
        ("application/json", br#"{"text": "Where is my order \ud83d please?"}"#.as_slice()),
        ("application/json", br#"{"text": "Where is my \ude00\ud83d order please?"}"#),
        ("application/json", "\u{feff}{\"text\": \"Where is my order?\"}".as_bytes()),
        ("application/json", b"{\"text\": \"Where is my order \\u0000?\"}"),
        ("text/plain", b"Where is my order \0 please?"),
        ("message/rfc822", not_utf8),
    ] {
        let reply = server.post("/v1/route", content_type, body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(["route", "needs_human"].contains(&reply.json()["decision"].as_str().unwrap()), "{reply:?}");
    }
    server.answers_good_mail().await;
}

#[tokio::test]
async fn nested_json_is_refused_and_not_followed() {
    let server = TestServer::start().await;
    for opening in ["[", "{\"a\":"] {
        let body = format!("{{\"headers\": {}", opening.repeat(100_000));
        server.post("/v1/route", "application/json", body).await.problem(400, "invalid_json");
    }
    server.answers_good_mail().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_its_size() {
    let server = TestServer::start().await;
    let mail = "Where is my order? ".repeat(5 * 1024 * 1024 / 19);
    let size = mail.len();
    let problem = server.post("/v1/route", "text/plain", mail).await.problem(413, "body_too_large");
    assert_eq!((&problem["limit"], &problem["given"]), (&json!(2 * 1024 * 1024), &json!(size)), "{problem}");
    assert!(problem["remedy"].is_string());
    server.answers_good_mail().await;
}

#[tokio::test]
async fn curl_without_a_content_type_is_told_what_to_write() {
    let server = TestServer::start().await;
    let reply = server.post("/v1/route", "application/x-www-form-urlencoded", "Where is my order?").await;
    let problem = reply.problem(415, "unsupported_media_type");
    assert_eq!(problem["valid"], json!(["application/json", "text/plain", "message/rfc822"]));
    assert!(problem["detail"].as_str().unwrap().contains("curl"), "{problem}");
}

#[tokio::test]
async fn compressed_bodies_are_refused() {
    let server = TestServer::start().await;
    let request = Request::post("/v1/route")
        .header("content-type", "text/plain")
        .header("content-encoding", "gzip")
        .body(Bytes::from_static(b"\x1f\x8b\x08"))
        .unwrap();
    server.send(request).await.problem(415, "unsupported_encoding");
}

#[tokio::test]
async fn unknown_query_parameters_are_refused() {
    let server = TestServer::start().await;
    let reply = server.post("/v1/route?explian=brief", "text/plain", "Where is my order?").await;
    assert_eq!(reply.problem(422, "unknown_parameter")["field"], "explian");
    server.get("/v1/queues?page=2").await.problem(422, "unknown_parameter");
}
