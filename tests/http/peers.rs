//! Requests as the documentation of other classification servers has them, and the answers that their clients read.

use hyper::Request;
use hyper::body::Bytes;
use postroom::routing::{RoutingConfig, RoutingService};
use postroom::server::ServerConfig;
use postroom::tokenizer::WindowConfig;
use serde_json::{Value, json};

use crate::support::{TestServer, router};

const LATE: &str = "Where is my order? It should have come on Friday.";

/// What `/v1/route` says of a text: queue and confidence.
async fn routed(server: &TestServer, mail: Value) -> (Value, f64) {
    let decision = server.post_json("/v1/route", mail).await.json();
    (decision["candidates"][0]["queue"].clone(), decision["candidates"][0]["confidence"].as_f64().unwrap())
}

fn is_near(found: &Value, expected: f64) -> bool {
    (found.as_f64().unwrap() - expected).abs() < 1e-4
}

fn is_ranked(predictions: &Value) -> bool {
    let scores: Vec<f64> = predictions.as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect();
    scores.len() == 3 && scores.is_sorted_by(|a, b| a >= b) && (scores.iter().sum::<f64>() - 1.0).abs() < 1e-6
}

#[tokio::test]
async fn predict_answers_one_text_with_all_queues_ranked() {
    let server = TestServer::start().await;
    let (queue, confidence) = routed(&server, json!({"text": LATE})).await;
    for inputs in [json!(LATE), json!([LATE])] {
        let reply = server.post_json("/predict", json!({"inputs": inputs, "truncate": true})).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let predictions = reply.json();
        assert!(is_ranked(&predictions), "{predictions}");
        assert_eq!(predictions[0]["label"], queue);
        assert!(is_near(&predictions[0]["score"], confidence), "{predictions} {confidence}");
        assert!(reply.header("x-compute-tokens").parse::<usize>().unwrap() > 5);
    }
    let raw = server.post_json("/predict", json!({"inputs": LATE, "raw_scores": true})).await.json();
    assert_eq!(raw[0]["label"], queue);
    assert!(!is_ranked(&raw), "{raw}");
}

#[tokio::test]
async fn predict_reads_a_pair_as_subject_and_body_and_lists_of_lists_as_a_batch() {
    let server = TestServer::start().await;
    let (queue, confidence) = routed(&server, json!({"subject": "Refund", "text": LATE})).await;
    let pair = server.post_json("/predict", json!({"inputs": ["Refund", LATE]})).await.json();
    assert_eq!(pair[0]["label"], queue);
    assert!(is_near(&pair[0]["score"], confidence), "{pair} {confidence}");
    let batch = server.post_json("/predict", json!({"inputs": [[LATE], ["Refund", LATE]]})).await.json();
    assert_eq!(batch.as_array().unwrap().len(), 2);
    assert!(is_ranked(&batch[0]) && is_near(&batch[1][0]["score"], confidence), "{batch}");
}

#[tokio::test]
async fn predict_cleans_mail_as_routing_does() {
    let server = TestServer::start().await;
    let quoted =
        format!("{LATE}\n\nOn Mon, 5 Jan 2026 at 10:12, Desk <desk@example.org> wrote:\n> Do you want a refund?\n");
    let scores = |reply: crate::support::Reply| reply.json()[0]["score"].as_f64().unwrap();
    let plain = scores(server.post_json("/predict", json!({"inputs": LATE})).await);
    let cleaned = scores(server.post_json("/predict", json!({"inputs": quoted})).await);
    assert!((plain - cleaned).abs() < 1e-4, "{plain} {cleaned}");
}

#[tokio::test]
async fn predict_errors_have_the_shape_and_status_of_the_peer() {
    let server = TestServer::start().await;
    let many: Vec<[&str; 1]> = vec![["a"]; 65];
    for (body, status, kind, reason) in [
        (json!({"inputs": ""}), 400, "Empty", "no text"),
        (json!({"inputs": [["a cake"], [" \n"]]}), 400, "Empty", "input 1"),
        (json!({"inputs": ["a", "b", "c"]}), 422, "Validation", "a list of its own"),
        (json!({"inputs": many}), 422, "Validation", "at most 64"),
        (json!({}), 422, "Validation", "inputs"),
        (json!([]), 422, "Validation", "a map"),
        (json!(["a cake"]), 422, "Validation", "a map"),
        (json!({"inputs": "a", "truncate": "yes"}), 422, "Validation", "boolean"),
    ] {
        let reply = server.post_json("/predict", body.clone()).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error_type"]), (status, &json!(kind)), "{body} {reply:?}");
        assert!(reply.json()["error"].as_str().unwrap().contains(reason), "{body} {reply:?}");
    }
    let twice = server.post("/predict", "application/json", r#"{"inputs": "a cake", "inputs": "two"}"#).await;
    assert_eq!((twice.status.as_u16(), &twice.json()["error_type"]), (422, &json!("Validation")), "{twice:?}");
    let reply = server.post("/predict", "text/plain", LATE).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error_type"]), (415, &json!("Validation")));
    let loading = TestServer::with(ServerConfig::default(), None).await;
    let reply = loading.post_json("/predict", json!({"inputs": LATE})).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error_type"]), (503, &json!("Unhealthy")));
    assert_eq!(reply.header("retry-after"), "1");
}

#[tokio::test]
async fn a_mail_over_the_token_ceiling_is_scored_only_where_the_caller_lets_it_be_cut() {
    let windows = WindowConfig { max_length: 32, stride: 24, max_tokens: 100 };
    let service = RoutingService::start(router(windows), RoutingConfig::default()).unwrap();
    let server = TestServer::with(ServerConfig::default(), Some(service)).await;
    let long = "Where is my order? ".repeat(50);
    let refused = server.post_json("/predict", json!({"inputs": long})).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.json()["error"].as_str().unwrap().contains("250 tokens, at most 100"), "{refused:?}");
    let tensor = json!([{"name": "text", "shape": [1], "datatype": "BYTES", "data": [long]}]);
    for (path, body) in [
        ("/predict", json!({"inputs": long, "truncate": true})),
        ("/", json!({"inputs": long, "truncate": true})),
        ("/classify", json!({"input": long, "truncate_prompt_tokens": -1})),
        ("/v2/models/arbitrary/infer", json!({"inputs": tensor, "parameters": {"truncate": true}})),
    ] {
        let reply = server.post_json(path, body).await;
        assert_eq!(reply.status, 200, "{path} {reply:?}");
    }
    for (path, body) in [
        ("/", json!({"inputs": long})),
        ("/classify", json!({"input": long})),
        ("/v2/models/arbitrary/infer", json!({"inputs": tensor})),
    ] {
        let reply = server.post_json(path, body).await;
        assert!(matches!(reply.status.as_u16(), 400 | 422), "{path} {reply:?}");
        assert!(reply.json().to_string().contains("at most 100"), "{path} {reply:?}");
    }
}

#[tokio::test]
async fn info_tells_the_router_its_labels_and_its_limits() {
    let server = TestServer::start().await;
    let info = server.get("/info").await.json();
    assert_eq!((&info["model_id"], &info["max_client_batch_size"]), (&json!("arbitrary"), &json!(64)));
    assert_eq!((&info["max_input_length"], &info["auto_truncate"]), (&json!(8192), &json!(false)));
    let labels = &info["model_type"]["classifier"];
    assert_eq!(labels["id2label"]["1"], "late-deliveries");
    assert_eq!(labels["label2id"]["late-deliveries"], 1);
    // What a client of the peer adds is passed over, as at its other endpoints.
    assert_eq!(server.get("/info?verbose=true").await.json(), info);
}

#[tokio::test]
async fn the_root_answers_the_inference_client_of_hugging_face() {
    let server = TestServer::start().await;
    let one = server.post_json("/", json!({"inputs": LATE})).await.json();
    assert!(is_ranked(&one[0]), "{one}");
    let parameters = json!({"top_k": 2, "function_to_apply": "sigmoid"});
    let two =
        server.post_json("/", json!({"inputs": [LATE, "My cake is cold."], "parameters": parameters})).await.json();
    assert_eq!((two.as_array().unwrap().len(), two[0].as_array().unwrap().len()), (2, 2));
    let score = two[0][0]["score"].as_f64().unwrap();
    assert!(score > 0.0 && score < 1.0, "{two}");
    let raw = server.post_json("/", json!({"inputs": LATE, "parameters": {"function_to_apply": "none"}})).await.json();
    let logit = raw[0][0]["score"].as_f64().unwrap();
    assert!((1.0 / (1.0 + (-logit).exp()) - score).abs() < 1e-4, "{raw} {two}");
    for body in [
        json!({"inputs": 7}),
        json!({"inputs": []}),
        json!({"inputs": "a cake", "parameters": {"top_k": 0}}),
        json!({"inputs": "a cake", "parameters": [null]}),
    ] {
        let reply = server.post_json("/", body).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error_type"]), (422, &json!("Validation")), "{reply:?}");
    }
}

#[tokio::test]
async fn classify_answers_as_vllm_documents_it() {
    let server = TestServer::start().await;
    let (queue, confidence) = routed(&server, json!({"text": LATE})).await;
    for path in ["/classify", "/v1/classify"] {
        let reply = server.post_json(path, json!({"model": "arbitrary", "input": [LATE, "My cake is cold."]})).await;
        let answer = reply.json();
        assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!("arbitrary")), "{reply:?}");
        assert!(answer["id"].as_str().unwrap().starts_with("classify-") && answer["created"].as_u64().unwrap() > 0);
        let first = &answer["data"][0];
        assert_eq!((&first["index"], &first["num_classes"], &first["label"]), (&json!(0), &json!(3), &queue));
        let probs: Vec<f64> = serde_json::from_value(first["probs"].clone()).unwrap();
        assert!((probs.iter().copied().fold(0.0, f64::max) - confidence).abs() < 1e-4, "{answer} {confidence}");
        assert_eq!(answer["data"][1]["index"], 1);
        assert_eq!(answer["usage"]["prompt_tokens"], answer["usage"]["total_tokens"]);
        assert_eq!(answer["usage"]["completion_tokens"], 0);
    }
    for (body, status, kind) in [
        (json!({"model": "gpt-2", "input": "a cake"}), 404, "NotFoundError"),
        (json!({"input": [[1, 2]]}), 400, "BadRequestError"),
        (json!({"input": " "}), 400, "BadRequestError"),
        (json!({"input": []}), 400, "BadRequestError"),
        (json!({"input": "a cake", "truncate_prompt_tokens": 5}), 400, "BadRequestError"),
    ] {
        let reply = server.post_json("/classify", body).await;
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status.as_u16(), &error["type"], &error["code"]), (status, &json!(kind), &json!(status)));
    }
}

#[tokio::test]
async fn the_inference_protocol_tells_health_and_metadata() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/v2").await.json()["name"], "postroom");
    assert_eq!(server.get("/v2/health/live").await.json(), json!({"live": true}));
    assert_eq!(server.get("/v2/health/ready").await.json(), json!({"ready": true}));
    assert_eq!(server.get("/v2/models/arbitrary/ready").await.json(), json!({"name": "arbitrary", "ready": true}));
    let model = server.get("/v2/models/arbitrary").await.json();
    assert_eq!(model["inputs"][0], json!({"name": "text", "datatype": "BYTES", "shape": [-1]}));
    let outputs: Vec<&Value> = model["outputs"].as_array().unwrap().iter().map(|output| &output["name"]).collect();
    assert_eq!(outputs, ["label", "score", "probabilities", "decision"]);
    assert_eq!(model["outputs"][2]["shape"], json!([-1, 3]));
    let version = model["versions"][0].as_str().unwrap();
    assert_eq!(server.get(&format!("/v2/models/arbitrary/versions/{version}")).await.json(), model);
    for path in ["/v2/models/other", "/v2/models/other/ready", "/v2/models/arbitrary/versions/0", "/v2/models/%FF"] {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 404, "{path} {reply:?}");
        assert!(reply.json()["error"].as_str().unwrap().contains("not served here"), "{reply:?}");
    }
    let loading = TestServer::with(ServerConfig::default(), None).await;
    let reply = loading.get("/v2/health/ready").await;
    assert_eq!((reply.status.as_u16(), reply.json()), (503, json!({"ready": false})));
    assert_eq!(loading.get("/v2/health/live").await.status, 200);
    assert!(loading.get("/v2/models/arbitrary").await.json()["error"].is_string());
}

#[tokio::test]
async fn the_inference_protocol_scores_texts_and_gives_back_the_id() {
    let server = TestServer::start().await;
    let (queue, confidence) = routed(&server, json!({"subject": "Cold", "text": LATE})).await;
    let tensor = |name: &str, data: Value| json!({"name": name, "shape": [2], "datatype": "BYTES", "data": data});
    let inputs = json!([tensor("text", json!([LATE, "My cake is cold."])), tensor("subject", json!(["Cold", ""]))]);
    let path = "/v2/models/arbitrary/infer";
    let reply = server.post_json(path, json!({"id": "42", "inputs": inputs})).await;
    let answer = reply.json();
    assert_eq!((&answer["id"], &answer["model_name"]), (&json!("42"), &json!("arbitrary")), "{reply:?}");
    let outputs = answer["outputs"].as_array().unwrap();
    assert_eq!((&outputs[0]["name"], &outputs[0]["data"][0]), (&json!("label"), &queue));
    assert_eq!((&outputs[1]["datatype"], &outputs[1]["shape"]), (&json!("FP32"), &json!([2])));
    assert!(is_near(&outputs[1]["data"][0], confidence), "{answer} {confidence}");
    assert_eq!(outputs[2]["shape"], json!([2, 3]));
    assert_eq!(outputs[2]["parameters"]["labels"], "refunds,late-deliveries,allergy-questions");
    let all: Vec<f64> = serde_json::from_value(outputs[2]["data"].clone()).unwrap();
    assert!((all[..3].iter().sum::<f64>() - 1.0).abs() < 1e-5 && all.len() == 6, "{answer}");
    assert_eq!(outputs[3]["data"], json!(["route", "route"]));
    let only = json!({"inputs": inputs, "outputs": [{"name": "score"}]});
    let answer = server.post_json(path, only).await.json();
    assert_eq!((answer["outputs"].as_array().unwrap().len(), answer.get("id")), (1, None));
    for (body, reason) in [
        (json!({"inputs": []}), "`text` is missing"),
        (json!({"inputs": inputs, "outputs": [{"name": "logits"}]}), "no output `logits`"),
        (json!({"inputs": inputs, "outputs": vec![json!({"name": "label"}); 2]}), "the output `label` stands twice"),
        (json!({"inputs": [tensor("text", json!(["one"]))]}), "says 2"),
        (json!({"inputs": [tensor("text", json!(["a cake", " "]))]}), "input 1"),
        (json!({}), "inputs"),
    ] {
        let reply = server.post_json(path, body).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(reply.json()["error"].as_str().unwrap().contains(reason), "{reason}: {reply:?}");
    }
}

#[tokio::test]
async fn the_inference_protocol_reads_binary_tensors_as_tritons_client_sends_them() {
    let server = TestServer::start().await;
    let (queue, _) = routed(&server, json!({"text": LATE})).await;
    let mut tensor = (LATE.len() as u32).to_le_bytes().to_vec();
    tensor.extend_from_slice(LATE.as_bytes());
    let parameters = json!({"binary_data_size": tensor.len()});
    let input = json!({"name": "text", "shape": [1, 1], "datatype": "BYTES", "parameters": parameters});
    let header = json!({"inputs": [input], "parameters": {"binary_data_output": true}}).to_string();
    let request = |length: usize| {
        Request::post("/v2/models/arbitrary/infer")
            .header("inference-header-content-length", length)
            .header("content-type", "application/octet-stream")
            .body(Bytes::from([header.as_bytes(), &tensor].concat()))
            .unwrap()
    };
    let reply = server.send(request(header.len())).await;
    assert_eq!(reply.json()["outputs"][0]["data"][0], queue, "{reply:?}");
    for length in [header.len() - 1, header.len() + tensor.len() + 1] {
        let reply = server.send(request(length)).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(reply.json()["error"].is_string());
    }
}

#[tokio::test]
async fn a_queue_that_is_full_tells_each_client_in_its_own_words_when_to_come_back() {
    use postroom::inference::InferenceConfig;
    let inference = InferenceConfig { max_waiting_mails: 1, max_batch_tokens: 1, ..InferenceConfig::default() };
    let service = crate::support::fresh_service(RoutingConfig { inference, ..RoutingConfig::default() });
    let server = TestServer::with(ServerConfig::default(), Some(service)).await;
    let texts: Vec<[&str; 1]> = vec![[LATE]; 40];
    let reply = server.post_json("/predict", json!({"inputs": texts})).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error_type"]), (429, &json!("Overloaded")), "{reply:?}");
    assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    let texts: Vec<&str> = vec![LATE; 40];
    let reply = server.post_json("/classify", json!({"input": texts})).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (503, &json!(503)), "{reply:?}");
}
