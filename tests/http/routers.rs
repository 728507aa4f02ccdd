//! Several routers in one service, exchanged while it answers; what is damaged stays out; a shadow, a canary, versions.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::Request;
use hyper::body::Bytes;
use postroom::artifact::VersionedRouter;
use postroom::routing::{NamedRouter, ReloadError, Reloaded, Routers, RoutersConfig};
use postroom::server::ServerConfig;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{Reply, TestServer, send};
use crate::tiny::{self, QUEUES};

const TEXT: &str = "Where is my order? It is late.";

pub(crate) fn open(folder: &Path, default: &str, config: &RoutersConfig) -> Routers {
    Routers::open(config, &folder.join(default), tiny::loader()).unwrap()
}

fn named(folder: &Path, names: &[&str]) -> RoutersConfig {
    let list = names.iter().map(|name| NamedRouter { name: (*name).to_owned(), path: folder.join(name) }).collect();
    RoutersConfig { list, ..RoutersConfig::default() }
}

/// A server, and the port of its `/admin` endpoints.
pub(crate) struct Served {
    server: TestServer,
    admin: SocketAddr,
}

impl std::ops::Deref for Served {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl Served {
    async fn ask_admin(&self, method: &str, path: &str) -> Reply {
        send(self.admin, Request::builder().method(method).uri(path).body(Bytes::new()).unwrap()).await
    }

    pub(crate) async fn reload(&self, name: &str) -> Reply {
        self.ask_admin("POST", &format!("/admin/routers/{name}/reload")).await
    }

    pub(crate) async fn states(&self) -> Value {
        self.ask_admin("GET", "/admin/routers").await.json()
    }
}

pub(crate) async fn serve(routers: Routers) -> Served {
    // Free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = TestServer::with(ServerConfig { admin_port: Some(port), ..ServerConfig::default() }, None).await;
    server.handle.set_ready(routers);
    let admin = SocketAddr::from(([127, 0, 0, 1], port));
    while TcpStream::connect(admin).await.is_err() {
        tokio::task::yield_now().await;
    }
    Served { server, admin }
}

/// The version that answered and the queue that it chose.
fn answer(reply: &Reply) -> (String, String) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let decision = reply.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&decision["model"]["version"]), text(&decision["queue"]["id"]))
}

#[tokio::test]
async fn a_request_names_its_router_in_the_path_the_query_or_the_body() {
    let folder = tiny::folder();
    let versions = [tiny::write(folder.path(), "shop", 0), tiny::write(folder.path(), "office", 1)];
    let server = serve(open(folder.path(), "shop", &named(folder.path(), &["office"]))).await;
    let mail = json!({"text": TEXT});
    for path in ["/v1/route", "/v1/route?router=shop", "/v1/routers/shop/route"] {
        assert_eq!(answer(&server.post_json(path, mail.clone()).await), (versions[0].clone(), QUEUES[0].to_owned()));
    }
    for path in ["/v1/route?router=office", "/v1/routers/office/route"] {
        assert_eq!(answer(&server.post_json(path, mail.clone()).await), (versions[1].clone(), QUEUES[1].to_owned()));
    }
    let by_body = server.post_json("/v1/route", json!({"text": TEXT, "router": "office"})).await;
    assert_eq!(answer(&by_body).0, versions[1]);

    let batch = server.post_json("/v1/route/batch", json!({"emails": [mail], "router": "office"})).await.json();
    assert_eq!(batch["results"][0]["result"]["model"]["version"], json!(versions[1]));
    let maps = server.post_json("/v1/routers/office/attention", json!({"text": TEXT})).await;
    assert_eq!((maps.status.as_u16(), &maps.json()["model"]["revision"]), (200, &json!(versions[1])));
    assert_eq!(server.get("/v1/model?router=office").await.json()["version"], json!(versions[1]));
    let listed = server.get("/v1/routers").await.json();
    let names: Vec<&Value> = listed["routers"].as_array().unwrap().iter().map(|router| &router["name"]).collect();
    assert_eq!(names, ["shop", "office"]);
    assert_eq!(listed["routers"][0]["default"], true);
}

#[tokio::test]
async fn clients_of_other_servers_name_a_router_as_their_model() {
    let folder = tiny::folder();
    let versions = [tiny::write(folder.path(), "shop", 0), tiny::write(folder.path(), "office", 1)];
    let server = serve(open(folder.path(), "shop", &named(folder.path(), &["office"]))).await;
    let predict = json!({"inputs": TEXT});
    for (path, queue) in [("/predict", 0), ("/predict?router=shop", 0), ("/predict?router=office", 1)] {
        assert_eq!(server.post_json(path, predict.clone()).await.json()[0]["label"], QUEUES[queue], "{path}");
    }
    assert_eq!(server.post_json("/?router=office", predict.clone()).await.json()[0][0]["label"], QUEUES[1]);
    let info = server.get("/info?router=office").await.json();
    assert_eq!((&info["model_id"], &info["model_sha"]), (&json!("office"), &json!(versions[1])));
    for (path, model, queue) in [
        ("/classify", "office", 1),
        ("/v1/classify", "shop", 0),
        // The default one by the name that it was made under.
        ("/classify", "tiny", 0),
        ("/classify?router=office", "office", 1),
        // A client that must send a model, and whose address was changed alone.
        ("/classify?router=office", "tiny", 1),
    ] {
        let answer = server.post_json(path, json!({"model": model, "input": TEXT})).await.json();
        assert_eq!((&answer["data"][0]["label"], &answer["model"]), (&json!(QUEUES[queue]), &json!(model)), "{path}");
    }
    let answer = server.post_json("/classify?router=office", json!({"input": TEXT})).await.json();
    assert_eq!((&answer["data"][0]["label"], &answer["model"]), (&json!(QUEUES[1]), &json!("office")));

    let tensor = json!({"name": "text", "shape": [1], "datatype": "BYTES", "data": [TEXT]});
    let body = json!({"inputs": [tensor]});
    for (name, place) in [("shop", 0), ("office", 1), ("tiny", 0)] {
        let answer = server.post_json(&format!("/v2/models/{name}/infer"), body.clone()).await.json();
        assert_eq!((&answer["model_name"], &answer["model_version"]), (&json!(name), &json!(versions[place])));
        assert_eq!(answer["outputs"][0]["data"][0], QUEUES[place]);
        let version = format!("/v2/models/{name}/versions/{}", versions[place]);
        assert_eq!(server.get(&version).await.json()["name"], name);
        assert_eq!(server.get(&format!("{version}/ready")).await.json(), json!({"name": name, "ready": true}));
    }
    // The version of another router.
    let other = server.get(&format!("/v2/models/office/versions/{}", versions[0])).await;
    assert_eq!(other.status, 404, "{other:?}");
}

#[tokio::test]
async fn a_model_that_no_router_has_is_refused_in_the_words_of_each_server() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    tiny::write(folder.path(), "office", 1);
    let server = serve(open(folder.path(), "shop", &named(folder.path(), &["office"]))).await;
    let (predict, classify) = (json!({"inputs": TEXT}), json!({"input": TEXT}));
    for path in ["/predict?router=none", "/?router=none"] {
        let reply = server.post_json(path, predict.clone()).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error_type"]), (422, &json!("Validation")), "{reply:?}");
        assert!(reply.json()["error"].as_str().unwrap().contains("`none` is not served here"), "{reply:?}");
    }
    let reply = server.get("/info?router=none").await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error_type"]), (422, &json!("Validation")), "{reply:?}");
    for (path, body) in [
        ("/classify?router=none", classify.clone()),
        ("/classify", json!({"input": TEXT, "model": "none"})),
        // Two names for one request.
        ("/classify?router=office", json!({"input": TEXT, "model": "shop"})),
    ] {
        let reply = server.post_json(path, body).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.json()["error"]["type"]),
            (404, &json!("NotFoundError")),
            "{reply:?}"
        );
    }
    let twice = server.post_json("/classify?router=office&router=shop", classify).await;
    assert_eq!((twice.status.as_u16(), &twice.json()["error"]["type"]), (400, &json!("BadRequestError")), "{twice:?}");
    let reply = server.post_json("/v2/models/none/infer", json!({"inputs": []})).await;
    assert_eq!(reply.status, 404, "{reply:?}");
    assert!(reply.json()["error"].as_str().unwrap().contains("`none` is not served here"), "{reply:?}");
}

#[tokio::test]
async fn a_router_that_is_not_there_is_told_with_those_that_are() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    tiny::write(folder.path(), "office", 1);
    let server = serve(open(folder.path(), "shop", &named(folder.path(), &["office"]))).await;
    let mail = json!({"text": TEXT});
    let by_path = server.post_json("/v1/routers/none/route", mail.clone()).await.problem(404, "unknown_router");
    assert_eq!(by_path["valid"], json!(["shop", "office"]));
    let by_query = server.post_json("/v1/route?router=none", mail).await.problem(422, "unknown_router");
    assert_eq!((&by_query["valid"], &by_query["given"]), (&json!(["shop", "office"]), &json!("none")));
    let by_body = server.post_json("/v1/route", json!({"text": TEXT, "router": "none"})).await;
    by_body.problem(422, "unknown_router");
    server.post_json("/v1/route", json!({"text": TEXT, "router": 7})).await.problem(422, "wrong_type");
    let twice = json!({"text": TEXT, "router": "office"});
    server.post_json("/v1/route?router=shop", twice.clone()).await.problem(422, "repeated_parameter");
    server.post_json("/v1/routers/shop/route", twice).await.problem(422, "repeated_parameter");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_exchanges_under_load_fail_no_request_and_mix_no_answer() {
    let folder = tiny::folder();
    let written: Vec<(String, String)> = (0..2)
        .map(|favourite| {
            (tiny::write(folder.path(), &format!("made-{favourite}"), favourite), QUEUES[favourite].to_owned())
        })
        .collect();
    let model = VersionedRouter::open_or_create(&folder.path().join("shop")).unwrap();
    for favourite in 0..2 {
        model.add(&folder.path().join(format!("made-{favourite}"))).unwrap();
    }
    model.set_current(&written[0].0).unwrap();
    let server = serve(open(folder.path(), "shop", &RoutersConfig::default())).await;

    let done = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        let (done, address, written) = (Arc::clone(&done), server.address, written.clone());
        clients.spawn(async move {
            let mut seen = [0usize; 2];
            while !done.load(Ordering::Relaxed) {
                let request = Request::post("/v1/route").header("content-type", "text/plain");
                let reply = send(address, request.body(TEXT.into()).unwrap()).await;
                // The version that is named is the one that chose the queue.
                let answer = answer(&reply);
                seen[written.iter().position(|one| *one == answer).unwrap_or_else(|| panic!("{answer:?}"))] += 1;
            }
            seen
        });
    }
    for exchange in 1..=50 {
        let to = &written[exchange % 2].0;
        model.set_current(to).unwrap();
        let reply = server.reload("shop").await;
        assert_eq!(
            reply.json(),
            json!({
                "router": "shop", "outcome": "exchanged", "from": written[(exchange + 1) % 2].0, "to": to,
            })
        );
    }
    done.store(true, Ordering::Relaxed);
    let seen = clients.join_all().await;
    let [first, second] = [0, 1].map(|version| seen.iter().map(|counts| counts[version]).sum::<usize>());
    assert!(first > 0 && second > 0, "{first} and {second} answers");
    let state = server.states().await["routers"][0].clone();
    assert_eq!((&state["exchanges"], &state["refusals"], &state["refused"]), (&json!(51), &json!(0), &Value::Null));
}

#[tokio::test]
async fn a_damaged_router_is_refused_with_the_reason_and_the_old_one_goes_on() {
    let folder = tiny::folder();
    let (shop, head) = (folder.path().join("shop"), folder.path().join("shop/head.safetensors"));
    let old = tiny::write(folder.path(), "shop", 0);
    let server = serve(open(folder.path(), "shop", &RoutersConfig::default())).await;
    let new = tiny::write(folder.path(), "shop", 1);
    let whole = std::fs::read(&head).unwrap();

    // Half a file, as a copy that broke off leaves it.
    std::fs::write(&head, &whole[..whole.len() / 2]).unwrap();
    let problem = server.reload("shop").await.problem(422, "router_refused");
    assert!(problem["detail"].as_str().unwrap().contains("head.safetensors has sha256"), "{problem}");
    assert!(problem["remedy"].as_str().unwrap().contains(&old), "{problem}");
    assert_eq!(answer(&server.post("/v1/route", "text/plain", TEXT).await).0, old);
    let state = server.states().await["routers"][0].clone();
    assert_eq!((&state["version"], &state["refusals"]), (&json!(old), &json!(1)));
    assert!(state["refused"]["reason"].as_str().unwrap().contains("head.safetensors"), "{state}");
    let metrics = String::from_utf8(server.ask_admin("GET", "/metrics").await.body.to_vec()).unwrap();
    for told in ["router_refusals_total{name=\"shop\"} 1", "router_refused{name=\"shop\"} 1.0"] {
        assert!(metrics.contains(told), "{metrics}");
    }

    // Whole again, though router.json is the same: it is tried again.
    std::fs::write(&head, &whole).unwrap();
    let reply = server.reload("shop").await;
    assert_eq!((&reply.json()["outcome"], &reply.json()["to"]), (&json!("exchanged"), &json!(new)));
    assert_eq!(answer(&server.post("/v1/route", "text/plain", TEXT).await), (new.clone(), QUEUES[1].to_owned()));
    assert_eq!(server.states().await["routers"][0]["refused"], Value::Null);

    // Neither here nor anywhere: what runs does not need its files.
    std::fs::remove_dir_all(&shop).unwrap();
    std::fs::write(folder.path().join("tiny/model.safetensors"), "").unwrap();
    server.reload("shop").await.problem(422, "router_refused");
    assert_eq!(answer(&server.post("/v1/route", "text/plain", TEXT).await).0, new);
    let unchanged = server.reload("none").await;
    assert_eq!(unchanged.problem(404, "unknown_router")["valid"], json!(["shop"]));
}

#[test]
fn a_router_that_answers_other_than_it_did_is_refused() {
    let folder = tiny::folder();
    let version = tiny::write(folder.path(), "shop", 0);
    let routers = open(folder.path(), "shop", &RoutersConfig::default());
    tiny::write(folder.path(), "shop", 1);
    let file = folder.path().join("shop/probes.json");
    let mut probes: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let logit = probes["probes"][2]["logits"][1].as_f64().unwrap();
    probes["probes"][2]["logits"][1] = json!(logit + 0.02);
    std::fs::write(&file, probes.to_string()).unwrap();
    let reason = match routers.reload("shop") {
        Err(ReloadError::Refused { reason, in_force, .. }) => {
            assert_eq!(in_force.as_deref(), Some(version.as_str()));
            reason
        }
        other => panic!("{other:?}"),
    };
    assert!(reason.contains("text 2 of probes.json gives `late-deliveries` the logit"), "{reason}");
    // Within the tolerance it is taken.
    probes["probes"][2]["logits"][1] = json!(logit + 0.005);
    std::fs::write(&file, probes.to_string()).unwrap();
    assert!(matches!(routers.reload("shop"), Ok(Reloaded::Exchanged { .. })));
}

#[test]
fn a_change_is_taken_in_when_the_files_have_settled_and_new_folders_become_routers() {
    let folder = tiny::folder();
    let old = tiny::write(folder.path(), "shop", 0);
    let config = RoutersConfig { dir: Some(folder.path().to_owned()), ..RoutersConfig::default() };
    let routers = open(folder.path(), "shop", &config);
    let version = |name: &str| routers.get(name).and_then(|slot| slot.live()).map(|live| live.router().version.clone());
    routers.look();
    assert_eq!((routers.names(), version("shop")), (vec!["shop".to_owned()], Some(old.clone())));

    let new = tiny::write(folder.path(), "shop", 1);
    let office = tiny::write(folder.path(), "office", 2);
    routers.look();
    assert_eq!((version("shop"), version("office")), (Some(old), None));
    routers.look();
    assert_eq!((version("shop"), version("office")), (Some(new.clone()), Some(office)));

    // Touched but the same: nothing is loaded.
    std::fs::write(folder.path().join("shop/README.md"), "Another card").unwrap();
    routers.look();
    routers.look();
    assert_eq!(routers.get("shop").unwrap().state().exchanges, 2);
    assert_eq!(routers.reload("shop").unwrap(), Reloaded::Unchanged { version: new });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_is_counted_and_changes_no_answer() {
    let folder = tiny::folder();
    let versions = [tiny::write(folder.path(), "shop", 0), tiny::write(folder.path(), "next", 1)];
    let config = RoutersConfig { shadow: Some("next".to_owned()), ..named(folder.path(), &["next"]) };
    let alone = serve(open(folder.path(), "shop", &RoutersConfig::default())).await;
    let server = serve(open(folder.path(), "shop", &config)).await;
    alone.ask_admin("GET", "/admin/shadow").await.problem(404, "no_shadow");

    let without_times = |reply: Reply| {
        let mut decision = reply.json();
        decision["timing_us"].take();
        decision
    };
    let mails = 20;
    for number in 0..mails {
        let mail = json!({"id": number.to_string(), "text": format!("{TEXT} {}", "It is late. ".repeat(number))});
        let with = without_times(server.post_json("/v1/route", mail.clone()).await);
        assert_eq!(with, without_times(alone.post_json("/v1/route", mail).await));
        assert_eq!(with["model"]["version"], json!(versions[0]));
    }
    let report = loop {
        let report = server.ask_admin("GET", "/admin/shadow").await.json();
        let told = |key: &str| report[key].as_u64().unwrap();
        if told("mails") + told("dropped") + told("failed") == mails as u64 {
            break report;
        }
        tokio::task::yield_now().await;
    };
    let scored = report["mails"].as_u64().unwrap();
    assert!(scored > 0 && report["scored"] == scored, "{report}");
    // The shadow's decisions are none of the service's.
    let metrics = server.ask_admin("GET", "/metrics").await;
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    let decided = format!("postroom_decisions_total{{decision=\"route\",queue=\"{}\"}} {mails}", QUEUES[0]);
    assert!(metrics.contains(&decided) && !metrics.contains(&format!("queue=\"{}\"}} ", QUEUES[1])), "{metrics}");
    assert!(metrics.contains(&format!("postroom_shadow_mails_total{{outcome=\"scored\"}} {scored}")), "{metrics}");
    assert!(metrics.contains("postroom_shadow_agreement 0.0\n"), "{metrics}");
    // Where there is no shadow, none disagrees.
    let metrics = alone.ask_admin("GET", "/metrics").await;
    let metrics = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(metrics.contains("postroom_shadow_agreement NaN\n"), "{metrics}");
    assert_eq!(report["matrix"], json!({QUEUES[0]: {QUEUES[1]: scored}}));
    assert_eq!((&report["agreement"], &report["same_likeliest_queue"]), (&json!(0.0), &json!(0.0)));
    assert_eq!((&report["live_version"], &report["shadow_version"]), (&json!(versions[0]), &json!(versions[1])));
    assert!(report["mean_confidence_distance"].as_f64().unwrap() < 0.1, "{report}");
}

#[tokio::test]
async fn a_canary_answers_its_share_of_the_mail_always_the_same() {
    let folder = tiny::folder();
    let versions = [tiny::write(folder.path(), "shop", 0), tiny::write(folder.path(), "next", 1)];
    let config =
        RoutersConfig { canary: Some("next".to_owned()), canary_share: 0.25, ..named(folder.path(), &["next"]) };
    let server = serve(open(folder.path(), "shop", &config)).await;
    let mut by_canary = Vec::new();
    for _ in 0..2 {
        let mut taken = Vec::new();
        for number in 0..40 {
            let mail = json!({"id": format!("ticket-{number}"), "text": TEXT});
            let (version, queue) = answer(&server.post_json("/v1/route", mail).await);
            let canary = version == versions[1];
            assert_eq!((&version, queue.as_str()), (&versions[usize::from(canary)], QUEUES[usize::from(canary)]));
            taken.push(canary);
        }
        by_canary.push(taken);
    }
    assert_eq!(by_canary[0], by_canary[1]);
    let taken = by_canary[0].iter().filter(|&&canary| canary).count();
    assert!((3..=20).contains(&taken), "{taken} of 40");
    let canary = server.states().await["canary"].clone();
    assert_eq!(canary, json!({"name": "next", "share": 0.25, "answered": 2 * taken, "failed": 0}));

    // Why is said by whoever decided: the canary prefers another queue than the default router.
    for (number, &canary) in by_canary[0].iter().enumerate() {
        let mail = json!({"id": format!("ticket-{number}"), "text": TEXT});
        let explained = server.post_json("/v1/route?explain=brief", mail).await.json();
        assert_eq!(explained["explanation"]["class"], explained["queue"]["id"], "{explained} by the canary: {canary}");
    }

    // A canary that is named answers whoever names it, and one that is gone costs no mail.
    let named = server.post_json("/v1/routers/next/route", json!({"id": "ticket-0", "text": TEXT})).await;
    assert_eq!(answer(&named).0, versions[1]);
}

#[test]
fn settings_that_contradict_each_other_are_refused_by_name() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    let refused = |config: &RoutersConfig| {
        Routers::open(config, &folder.path().join("shop"), tiny::loader()).err().unwrap().to_string()
    };
    let twice = refused(&named(folder.path(), &["shop"]));
    assert!(twice.contains("two routers are called `shop`"), "{twice}");
    let bad = refused(&named(folder.path(), &["a/b"]));
    assert!(bad.contains("`a/b` cannot be a router's name"), "{bad}");
    let none = refused(&RoutersConfig { shadow: Some("next".to_owned()), ..RoutersConfig::default() });
    assert!(none.contains("routers.shadow is `next`") && none.contains("there are shop"), "{none}");
    let itself = refused(&RoutersConfig { canary: Some("shop".to_owned()), ..RoutersConfig::default() });
    assert!(itself.contains("routers.canary is `shop`"), "{itself}");
}

#[tokio::test]
async fn a_further_router_that_cannot_be_loaded_costs_only_its_own_requests() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    tiny::write(folder.path(), "office", 1);
    std::fs::write(folder.path().join("office/head.safetensors"), "no tensors").unwrap();
    let server = serve(open(folder.path(), "shop", &named(folder.path(), &["office"]))).await;
    server.post("/v1/routers/office/route", "text/plain", TEXT).await.problem(503, "router_unavailable");
    assert_eq!(answer(&server.post("/v1/route", "text/plain", TEXT).await).1, QUEUES[0]);
    let state = server.states().await["routers"][1].clone();
    assert!(state["refused"]["reason"].as_str().unwrap().contains("head.safetensors"), "{state}");
}

fn postroom(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_postroom")).args(arguments).env("USER", "ann").output().unwrap()
}

fn told(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test]
async fn promote_and_rollback_reach_a_running_service_and_the_answer_is_the_old_one_to_the_bit() {
    let folder = tiny::folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, second) = (tiny::write(folder.path(), "made-0", 0), tiny::write(folder.path(), "made-1", 1));
    let (shop, made) = (at("shop"), [at("made-0"), at("made-1")]);
    assert!(told(&postroom(&["model", "promote", &shop, &made[0]])).contains("recorded answers given again"));
    let server = serve(open(folder.path(), "shop", &RoutersConfig::default())).await;
    let route = || server.post_json("/v1/route", json!({"text": TEXT}));
    let before = route().await.json();
    assert_eq!(before["model"]["version"], json!(first));

    told(&postroom(&["model", "promote", &shop, &made[1]]));
    server.reload("shop").await;
    assert_eq!(route().await.json()["model"]["version"], json!(second));

    let said = told(&postroom(&["model", "rollback", &shop]));
    assert!(said.contains(&format!("{first} is in force in place of {second}")), "{said}");
    server.reload("shop").await;
    let after = route().await.json();
    assert_eq!((&after["confidence"], &after["candidates"]), (&before["confidence"], &before["candidates"]));

    // Nothing before the first; a version by its name; a damaged one stays out and leaves no trace.
    let none = postroom(&["model", "rollback", &shop]);
    assert!(!none.status.success() && String::from_utf8_lossy(&none.stderr).contains("no version before"), "{none:?}");
    told(&postroom(&["model", "promote", &shop, &second]));
    let third = tiny::write(folder.path(), "made-2", 2);
    std::fs::write(folder.path().join("made-2/head.safetensors"), "no tensors").unwrap();
    let damaged = postroom(&["model", "promote", &shop, &at("made-2")]);
    assert!(String::from_utf8_lossy(&damaged.stderr).contains("head.safetensors"), "{damaged:?}");
    assert!(!folder.path().join("shop/versions").join(&third).exists());

    // A version is never changed; a changed copy can be promoted.
    let disable = ["queues", "disable", QUEUES[2], "--router", shop.as_str()];
    let refused = String::from_utf8(postroom(&disable).stderr).unwrap();
    assert!(refused.contains("holds versions") && refused.contains("--out DIR"), "{refused}");
    told(&postroom(&[&disable[..], &["--out", &at("changed")]].concat()));
    told(&postroom(&["model", "verify", &at("changed")]));
    assert!(told(&postroom(&["model", "verify", &shop])).contains(&second));

    let list: Value = serde_json::from_str(&told(&postroom(&["model", "list", &shop, "--json"]))).unwrap();
    assert_eq!(list["current"], json!(second));
    let changes: Vec<(&str, &str)> = list["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (change["action"].as_str().unwrap(), change["to"].as_str().unwrap()))
        .collect();
    let (first, second) = (first.as_str(), second.as_str());
    assert_eq!(changes, [("promote", first), ("promote", second), ("rollback", first), ("promote", second)]);
    assert_eq!(list["changes"][2]["who"], "ann");
    assert_eq!(list["changes"][2]["from"], json!(second));
}

#[test]
fn a_refused_first_promotion_leaves_nothing_behind_and_speaks_of_no_version_before() {
    let folder = tiny::folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    tiny::write(folder.path(), "made", 0);
    std::fs::write(folder.path().join("made/head.safetensors"), "no tensors").unwrap();
    let (shop, empty, made) = (at("shop"), at("empty"), at("made"));
    std::fs::create_dir(&empty).unwrap();
    let refusals =
        [("nowhere", "is not there yet"), (empty.as_str(), "router.json"), (made.as_str(), "head.safetensors")];
    for (version, told) in refusals {
        let refused = postroom(&["model", "promote", &shop, version]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(told), "{said}");
        assert!(!said.contains("goes on"), "{said}");
        assert!(!folder.path().join("shop").exists(), "{version}");
    }

    // A directory that was there stays, and says that it holds none yet.
    std::fs::create_dir_all(folder.path().join("shop/versions")).unwrap();
    let said = String::from_utf8(postroom(&["model", "promote", &shop, "nowhere"]).stderr).unwrap();
    assert!(said.contains("holds no version `nowhere`, and none yet"), "{said}");
}

/// The next line of a log with this message.
fn wait_for(log: &mut impl Iterator<Item = std::io::Result<String>>, message: &str) -> Value {
    log.map_while(Result::ok)
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
        .find(|line| line["message"] == message)
        .unwrap_or_else(|| panic!("the log ends without `{message}`"))
}

#[tokio::test]
async fn a_service_takes_in_a_version_on_sighup() {
    let folder = tiny::folder();
    let (first, second) = (tiny::write(folder.path(), "made-0", 0), tiny::write(folder.path(), "made-1", 1));
    let model = VersionedRouter::open_or_create(&folder.path().join("shop")).unwrap();
    for made in ["made-0", "made-1"] {
        model.add(&folder.path().join(made)).unwrap();
    }
    model.set_current(&first).unwrap();
    let mut service = Command::new(env!("CARGO_BIN_EXE_postroom"))
        .args(["serve", "--port", "0", "--threads", "1", "--router", folder.path().join("shop").to_str().unwrap()])
        .env("POSTROOM_ROUTERS_POLL_MS", "0")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(service.stderr.take().unwrap()).lines();
    let address = wait_for(&mut log, "listening")["address"].as_str().unwrap().parse().unwrap();
    wait_for(&mut log, "ready");
    let version = || async {
        let request = Request::get("/v1/model").body(Bytes::new()).unwrap();
        send(address, request).await.json()["version"].as_str().unwrap().to_owned()
    };
    assert_eq!(version().await, first);
    model.set_current(&second).unwrap();
    Command::new("kill").args(["-HUP", &service.id().to_string()]).status().unwrap();
    let told = wait_for(&mut log, "router in force");
    assert_eq!((&told["from"], &told["to"]), (&json!(first), &json!(second)));
    assert_eq!(version().await, second);
    Command::new("kill").arg(service.id().to_string()).status().unwrap();
    // The log is read to its end: a closed pipe would end the service otherwise.
    log.for_each(drop);
    assert!(service.wait().unwrap().success());
}
