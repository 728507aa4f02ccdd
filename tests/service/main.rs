//! The service as a process: what it writes, what signals do, what it does when the system has nothing left to give.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr, reason = "a test program, which says what it skips")]
#![cfg(target_os = "linux")]

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use postroom::server::keys::NewKey;

mod clock;
#[expect(dead_code, reason = "shared with the tests of the interface")]
#[path = "../http/collector.rs"]
mod collector;
mod connections;
mod disk;
mod killed;
mod running;
mod small_disk;
#[expect(dead_code, reason = "shared with the tests of the interface")]
#[path = "../http/tiny.rs"]
mod tiny;

use collector::Collector;
use running::{Service, TEXT};

#[test]
fn no_word_of_a_mail_leaves_the_service_but_in_its_answer() {
    let canary = "Quetzalcoatlus";
    let collector = Collector::start();
    let (url, headers) = (collector.url(), format!("authorization=Bearer%20{canary}"));
    let exporting =
        [("POSTROOM_TELEMETRY_OTLP_ENDPOINT", url.as_str()), ("POSTROOM_TELEMETRY_OTLP_HEADERS", headers.as_str())];
    let service = Service::start("", &exporting);
    let mime = format!(
        "From: Ann {canary} <{canary}@mail.example>\r\nTo: {canary}@desk.example\r\nSubject: {canary} order\r\n\
         X-{canary}: {canary}\r\nMessage-ID: <{canary}@mail.example>\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary={canary}\r\n\r\n--{canary}\r\nContent-Type: text/plain\r\n\r\n\
         Where is my {canary}? It should have come on Friday.\r\n--{canary}\r\n\
         Content-Type: application/pdf; name=\"{canary}.pdf\"\r\n\
         Content-Disposition: attachment; filename=\"{canary}.pdf\"\r\n\r\n{canary}\r\n--{canary}--\r\n"
    );
    let json = format!(
        r#"{{"id": "{canary}", "subject": "{canary}", "text": "{canary} is late", "from": "{canary}@mail.example", "headers": {{"X-{canary}": "{canary}"}}}}"#
    );
    let broken = [
        format!(r#"{{"text": "{canary}"#),
        format!(r#"{{"text": 5, "subject": "{canary}"}}"#),
        format!(r#"{{"text": "{canary}", "headers": "{canary}"}}"#),
        format!(r#"["{canary}"]"#),
    ];
    let (as_mime, as_json) = ("content-type: message/rfc822\r\n", "content-type: application/json\r\n");
    for path in ["/v1/route", "/v1/attention"] {
        assert!(service.post(path, as_mime, &mime).unwrap().starts_with("HTTP/1.1 200"));
        assert!(service.post(path, as_json, &json).unwrap().starts_with("HTTP/1.1 200"));
        for body in &broken {
            let answer = service.post(path, as_json, body).unwrap();
            assert!(answer.starts_with("HTTP/1.1 4") && !answer.contains(canary), "{answer}");
        }
    }
    let batch = format!(r#"{{"emails": [{json}, {{"text": 5, "subject": "{canary}"}}]}}"#);
    service.post("/v1/route/batch", as_json, &batch).unwrap();
    let headers = format!("{TEXT}x-request-id: {canary}@mail.example\r\ntraceparent: {canary}\r\n");
    service.post("/v1/route", &headers, canary).unwrap();
    let place = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n";
    let headers = format!("{TEXT}{place}tracestate: a={canary}@mail.example\r\nuser-agent: {canary}\r\n");
    service.post("/v1/route", &headers, canary).unwrap();
    service.post(&format!("/{canary}?{canary}={canary}"), TEXT, canary).unwrap();
    let told = service.get("/metrics").unwrap();
    assert!(told.contains("postroom_decisions_total") && !told.contains(canary), "{told}");
    service.signal("-TERM");
    service.wait_for("\"stopped\"");
    let log = service.log.lock().unwrap();
    assert!(log.contains("/v1/route/batch") && !log.contains(canary), "{log}");
    let exports = collector.rest();
    let spans: Vec<_> = exports.iter().flat_map(collector::Export::spans).collect();
    assert!(spans.iter().any(|span| span.name == "POST /v1/route/batch"), "{spans:?}");
    assert!(spans.iter().filter(|span| span.name == "decide").count() >= 5, "{spans:?}");
    for export in &exports {
        assert!(export.head.contains(&canary.to_ascii_lowercase()), "{}", export.head);
        assert!(!String::from_utf8_lossy(&export.body).contains(canary), "{spans:?}");
    }
    // The trace in the log is the exported one, the caller's where there is one and ours where there is none.
    let traces: Vec<&str> = log.split("\"trace_id\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(traces.len() > 5 && traces.contains(&"4bf92f3577b34da6a3ce929d0e0e4736"), "{log}");
    let exported: Vec<String> = spans.iter().map(|span| hex(&span.trace_id)).collect();
    assert!(traces.iter().all(|trace| exported.iter().any(|other| other == trace)), "{traces:?} {exported:?}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn nothing_is_sent_and_no_thread_waits_to_unless_an_endpoint_is_set() {
    let collector = Collector::start();
    let off = ("POSTROOM_TELEMETRY_OTLP_ENDPOINT", "");
    let url = collector.url();
    for (settings, exports) in [
        (vec![], false),
        (vec![("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()), off], false),
        (vec![("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())], true),
    ] {
        let service = Service::start("", &settings);
        service.post("/v1/route", TEXT, "Where is my order?").unwrap();
        let threads = std::fs::read_dir(format!("/proc/{}/task", service.process.id())).unwrap();
        let names: Vec<String> =
            threads.map(|one| std::fs::read_to_string(one.unwrap().path().join("comm")).unwrap()).collect();
        assert_eq!(names.iter().any(|name| name.starts_with("OpenTelemetry")), exports, "{names:?}");
        service.signal("-TERM");
        service.wait_for("\"stopped\"");
        assert_eq!(!collector.rest().is_empty(), exports, "{settings:?}");
    }
}

#[test]
fn spans_go_to_the_endpoint_and_not_to_a_proxy_of_the_environment() {
    let (collector, proxy) = (Collector::start(), TcpListener::bind("127.0.0.1:0").unwrap());
    let (url, proxy_url) = (collector.url(), format!("http://{}", proxy.local_addr().unwrap()));
    let mut settings = vec![("POSTROOM_TELEMETRY_OTLP_ENDPOINT", url.as_str()), ("NO_PROXY", ""), ("no_proxy", "")];
    let names = ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    settings.extend(names.map(|name| (name, proxy_url.as_str())));
    let service = Service::start("", &settings);
    service.post("/v1/route", TEXT, "Where is my order?").unwrap();
    service.signal("-TERM");
    service.wait_for("\"stopped\"");
    assert!(!collector.rest().is_empty());
    proxy.set_nonblocking(true).unwrap();
    assert!(proxy.accept().is_err(), "the proxy was asked");
}

#[test]
fn a_stop_under_load_answers_whatever_was_accepted() {
    let mut service = Service::start("", &[("POSTROOM_SERVER_DRAIN_DELAY_MS", "3000")]);
    let body = "Where is my order? It should have come on Friday. ".repeat(6);
    let outcomes: Vec<Vec<std::io::Result<String>>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut answers = Vec::new();
                    // Each sends until the port is closed.
                    while answers.len() < 500 && answers.last().is_none_or(Result::is_ok) {
                        answers.push(service.post("/v1/route", TEXT, &body));
                    }
                    answers
                })
            })
            .collect();
        while service
            .get("/metrics")
            .is_ok_and(|told| !told.contains("endpoint=\"/v1/route\",method=\"POST\",status=\"200\""))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        service.signal("-TERM");
        service.wait_for("told to stop");
        assert!(service.get("/readyz").unwrap().starts_with("HTTP/1.1 503"));
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(service.process.wait().unwrap().success());
    for outcome in outcomes.into_iter().flatten() {
        match outcome {
            Ok(answer) => assert!(answer.starts_with("HTTP/1.1 200"), "an accepted request got {answer:?}"),
            Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}"),
        }
    }
    assert!(!service.log.lock().unwrap().contains("drain timeout"));
}

#[test]
fn keys_are_read_again_at_a_hangup_and_stand_in_no_log() {
    let (old, new) = (NewKey::make("old", "route".parse().unwrap()), NewKey::make("new", "route".parse().unwrap()));
    let (old, new) = (old.unwrap(), new.unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &old.line).unwrap();
    let service = Service::start("", &[("POSTROOM_SERVER_KEYS_FILE", file.path().to_str().unwrap())]);
    let ask = |key: &NewKey| {
        let headers = format!("{TEXT}authorization: Bearer {}\r\n", key.key.as_str());
        service.post("/v1/route", &headers, "Where is my order?").unwrap()
    };
    assert!(ask(&old).starts_with("HTTP/1.1 200") && ask(&new).starts_with("HTTP/1.1 401"));
    std::fs::write(file.path(), &new.line).unwrap();
    service.signal("-HUP");
    service.wait_for("read again");
    assert!(ask(&old).starts_with("HTTP/1.1 401") && ask(&new).starts_with("HTTP/1.1 200"));
    let log = service.log.lock().unwrap();
    for key in [&old, &new] {
        let hash = key.line.split("sha256:").last().unwrap();
        assert!(!log.contains(key.key.as_str()) && !log.contains(hash), "{log}");
    }
}

#[test]
fn without_file_descriptors_the_service_waits_and_goes_on() {
    let service = Service::start("ulimit -n 40;", &[]);
    let open: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(("127.0.0.1", service.port)).unwrap()).collect();
    service.wait_for("cannot accept connections");
    let (start, before) = (Instant::now(), service.cpu());
    std::thread::sleep(Duration::from_millis(500));
    let share = (service.cpu() - before) as f64 / 100.0 / start.elapsed().as_secs_f64();
    assert!(share < 0.5, "it spins: {share} of a core");
    drop(open);
    assert!(service.post("/v1/route", TEXT, "Where is my order?").unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn a_batch_of_far_too_many_mails_takes_no_memory() {
    const MAILS: usize = 690_000;
    let service = Service::start("", &[]);
    let before = peak_now(&service);
    let list = format!("{{\"emails\":[{}]}}", vec!["{}"; MAILS].join(","));
    for (kind, body) in [("json", list), ("x-ndjson", "{}\n".repeat(MAILS))] {
        let headers = format!("content-type: application/{kind}\r\n");
        let answer = service.post("/v1/route/batch", &headers, &body).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains(&MAILS.to_string()), "{kind}: {answer}");
    }
    let after = peak(&service);
    assert!(after < before + 64, "{before} MiB before, {after} MiB after");
}

/// The most memory that a service has had, in MiB.
fn peak(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.process.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// The same from now on: forgets what the loading took. Where the system does not let it, the bound is less strict.
fn peak_now(service: &Service) -> u64 {
    let _ = std::fs::write(format!("/proc/{}/clear_refs", service.process.id()), "5");
    peak(service)
}

#[test]
fn lists_of_far_too_many_take_no_memory_wherever_they_stand() {
    const LENGTH: usize = 2_000_000;
    let service = Service::start("", &[]);
    let before = peak_now(&service);
    let list = |item: &str| format!("[{}]", vec![item; LENGTH / (item.len() + 1)].join(","));
    let flat = LENGTH / 4;
    let tensor = |rest: &str| format!(r#"{{"inputs":[{{"name":"text","shape":[{flat}],"datatype":"BYTES",{rest}}}]}}"#);
    let json = "content-type: application/json\r\n";
    // Of each empty text the length alone, which is four zeros.
    let head = tensor(&format!(r#""parameters":{{"binary_data_size":{}}}"#, 4 * flat));
    let binary =
        format!("content-type: application/octet-stream\r\ninference-header-content-length: {}\r\n", head.len());
    for (path, headers, body, status, word) in [
        ("/predict", json, format!(r#"{{"inputs":{}}}"#, list(r#"["a"]"#)), 422, "333333 inputs"),
        ("/", json, format!(r#"{{"inputs":{}}}"#, list(r#""a""#)), 422, "500000 inputs"),
        ("/classify", json, format!(r#"{{"input":{}}}"#, list(r#""a""#)), 400, "500000 inputs"),
        ("/v2/models/crumb/infer", json, tensor(&format!(r#""data":{}"#, list(r#""a""#))), 400, "500000 inputs"),
        ("/v2/models/crumb/infer", binary.as_str(), head + &"\0".repeat(4 * flat), 400, "500000 inputs"),
        ("/predict", json, format!(r#"{{"inputs":"Where is it?","more":{}}}"#, list("[1]")), 200, "score"),
        ("/v1/route", json, format!(r#"{{"text":{}}}"#, list("[1]")), 422, "wrong_type"),
        ("/v1/route/batch", json, format!(r#"{{"emails":[{{"text":{}}}]}}"#, list("[1]")), 422, "wrong_type"),
        ("/v1/route/batch", json, format!(r#"{{"emails":[],"timeout_ms":{}}}"#, list("[1]")), 422, "wrong_type"),
    ] {
        let answer = service.post(path, headers, &body).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(word), "{path}: {answer}");
        let after = peak(&service);
        assert!(after < before + 64, "{path} {word}: {before} MiB before, {after} MiB after");
    }
}

#[test]
fn keys_are_made_once_shown_once_and_listed_by_name() {
    let postroom = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_postroom")).args(arguments).output().unwrap();
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    let (made, _) = postroom(&["keys", "new", "helpdesk", "--scope", "route,explain", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let (key, line) = (made["key"].as_str().unwrap(), made["line"].as_str().unwrap());
    assert!(key.starts_with("postroom_") && line.starts_with("helpdesk  route,explain  sha256:"), "{line}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), line).unwrap();
    let (listed, _) = postroom(&["keys", "list", Path::new(file.path()).to_str().unwrap()]);
    assert_eq!(listed, "helpdesk  route,explain\n");
    let (_, refused) = postroom(&["keys", "new", "a b"]);
    assert!(refused.contains("`a b` is no name for a key"), "{refused}");
    let (_, refused) = postroom(&["keys", "new", "a", "--scope", "root"]);
    assert!(refused.contains("root"), "{refused}");
}
