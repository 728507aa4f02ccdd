//! `POST /v1/route/batch`: order, and bad mail among good.

use serde_json::{Value, json};

use crate::support::TestServer;

#[tokio::test]
async fn order_is_kept_and_a_bad_mail_fails_alone() {
    let server = TestServer::start().await;
    let mut emails: Vec<Value> = (0..64)
        .map(|index| json!({"id": format!("mail-{index}"), "text": "Where is my order? ".repeat(1 + (index * 7) % 5)}))
        .collect();
    emails[3] = json!({"id": "mail-3", "body": "unknown field"});
    emails[20] = json!("no object");
    emails[40] = json!({});
    let reply = server.post_json("/v1/route/batch", json!({"emails": emails})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    let results = answer["results"].as_array().unwrap();
    assert_eq!((results.len(), &answer["failed"]), (64, &json!(3)));
    for (index, outcome) in results.iter().enumerate() {
        assert_eq!(outcome["index"], index);
        match index {
            3 => assert_eq!(outcome["problem"]["code"], "unknown_field"),
            20 => assert_eq!(outcome["problem"]["code"], "wrong_type"),
            40 => assert_eq!(outcome["problem"]["code"], "missing_field"),
            _ => assert_eq!(outcome["result"]["id"], format!("mail-{index}")),
        }
        assert_eq!(outcome["status"], if outcome["problem"].is_null() { 200 } else { 422 });
    }
}

#[tokio::test]
async fn lines_are_answered_line_by_line() {
    let server = TestServer::start().await;
    let body = "{\"id\": \"a\", \"text\": \"Where is my order?\"}\r\n\r\n{\"id\": \"b\", \"text\": \"Where\n{\"id\": \"c\", \"text\": \"\\ud83d My cake is late\"}";
    let reply = server.post("/v1/route/batch", "application/x-ndjson", body).await;
    assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "application/x-ndjson"), "{reply:?}");
    let lines: Vec<Value> =
        String::from_utf8_lossy(&reply.body).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["result"]["id"], "a");
    assert_eq!((&lines[1]["status"], &lines[1]["problem"]["code"]), (&json!(400), &json!("incomplete_json")));
    assert_eq!(lines[2]["result"]["id"], "c");
}

#[tokio::test]
async fn a_mail_in_a_batch_gets_the_answer_that_it_gets_alone() {
    let server = TestServer::start().await;
    let mails =
        [json!({"text": "My cake came cold."}), json!({"text": "Is there any nut in the praline? ".repeat(20)})];
    let batch = server.post_json("/v1/route/batch", json!({"emails": mails})).await.json();
    for (index, mail) in mails.into_iter().enumerate() {
        let alone = server.post_json("/v1/route", mail).await.json()["confidence"].as_f64().unwrap();
        let together = batch["results"][index]["result"]["confidence"].as_f64().unwrap();
        assert!((alone - together).abs() < 1e-4, "{alone} {together}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_whole_batch_is_refused_whole() {
    let server = TestServer::start().await;
    let path = "/v1/route/batch";
    let many: Vec<Value> = (0..65).map(|_| json!({"text": "a"})).collect();
    let problem = server.post_json(path, json!({"emails": many.clone()})).await.problem(413, "too_many_emails");
    assert_eq!((&problem["limit"], &problem["given"]), (&json!(64), &json!(65)));
    // What lies behind the limit is counted, and nothing is made of it: not even what is no mail is told of there.
    let odd: serde_json::Map<String, Value> = (0..65).map(|index| (format!("field-{index}"), json!(1))).collect();
    let more = [many, vec![Value::Object(odd)]].concat();
    let reply = server.post_json(path, json!({"emails": more})).await;
    assert_eq!(reply.problem(413, "too_many_emails")["given"], 66);
    let lines = "{}\n\n".repeat(66);
    let reply = server.post(path, "application/x-ndjson", lines).await;
    assert_eq!(reply.problem(413, "too_many_emails")["given"], 66);
    server.post_json(path, json!({})).await.problem(422, "missing_field");
    server.post_json(path, json!({"emails": [], "explain": true})).await.problem(422, "unknown_field");
    server.post_json(path, json!({"emails": {"text": "a"}})).await.problem(422, "wrong_type");
    server.post_json(path, json!([])).await.problem(422, "wrong_type");
    let twice = r#"{"emails": [], "emails": []}"#;
    server.post(path, "application/json", twice).await.problem(422, "wrong_type");
    server.post(path, "text/plain", "a").await.problem(415, "unsupported_media_type");
    assert_eq!(server.post_json(path, json!({"emails": []})).await.json(), json!({"results": [], "failed": 0}));
}
