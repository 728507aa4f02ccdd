//! SIGKILL at the worst moment: what was promised of restarts holds.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postroom::artifact::{VersionedRouter, changes, load_router};
use postroom::server::keys::NewKey;

use crate::running::{Service, TEXT, name, postroom, stderr};
use crate::tiny;

#[test]
fn a_service_that_is_killed_under_load_comes_up_again_with_all_but_its_memory() {
    let folder = tiny::folder();
    let version = tiny::write(folder.path(), "made", 0);
    let (made, shop) = (folder.path().join("made"), folder.path().join("shop"));
    assert!(postroom(&["model", "promote", name(&shop), name(&made)]).status.success());
    let history = std::fs::read(shop.join("changes.jsonl")).unwrap();
    let key = NewKey::make("helpdesk", "route".parse().unwrap()).unwrap();
    let keys = folder.path().join("keys.txt");
    std::fs::write(&keys, &key.line).unwrap();
    let settings = [("POSTROOM_MODEL_ROUTER", name(&shop)), ("POSTROOM_SERVER_KEYS_FILE", name(&keys))];
    let headers = format!("{TEXT}authorization: Bearer {}\r\n", key.key.as_str());
    let once = format!("{headers}idempotency-key: ticket-7\r\n");
    let ask = |service: &Service, headers: &str| {
        service.post("/v1/route", headers, "Where is my order?").map(|answer| answer.to_ascii_lowercase())
    };
    let sure = |answer: std::io::Result<String>| {
        let answer = answer.unwrap();
        assert!(answer.starts_with("http/1.1 200") && answer.contains(&version), "{answer}");
        answer
    };
    for _ in 0..2 {
        // It comes up by itself, whatever became of the one before: `start` waits until it is ready.
        let mut service = Service::start("", &settings);
        assert!(ask(&service, TEXT).unwrap().starts_with("http/1.1 401"));
        // Answers by `Idempotency-Key` live in the memory of one process.
        assert!(!sure(ask(&service, &once)).contains("idempotency-replayed"));
        assert!(sure(ask(&service, &once)).contains("idempotency-replayed: true"));
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        let mut answers = Vec::new();
                        while answers.last().is_none_or(Result::is_ok) {
                            answers.push(ask(&service, &headers));
                        }
                        answers
                    })
                })
                .collect();
            let start = Instant::now();
            while service.log.lock().unwrap().matches("\"status\":200").count() < 60 {
                assert!(start.elapsed() < Duration::from_secs(60), "nothing is answered");
                std::thread::sleep(Duration::from_millis(2));
            }
            service.signal("-KILL");
            for answer in clients.into_iter().flat_map(|client| client.join().unwrap()).flatten() {
                // Whole, or cut off where the process ended; never a wrong one.
                assert!("http/1.1 200 ok\r\n".starts_with(&answer[..answer.len().min(17)]), "{answer}");
            }
        });
        service.process.wait().unwrap();
        assert_eq!(std::fs::read(shop.join("changes.jsonl")).unwrap(), history);
    }
}

/// At moments all over the command, a version is in force that loads, and the next command works.
#[test]
fn a_promotion_that_is_killed_at_any_moment_leaves_a_version_in_force() {
    let folder = tiny::folder();
    let written = [tiny::write(folder.path(), "made-0", 0), tiny::write(folder.path(), "made-1", 1)];
    let made = [0, 1].map(|number| folder.path().join(format!("made-{number}")));
    let shop = folder.path().join("shop");
    let promote = |router: usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_postroom"));
        command
            .args(["model", "promote", name(&shop), name(&made[router])])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    assert!(promote(0).status().unwrap().success());
    let router = VersionedRouter::open(&shop).unwrap();
    let mut known = changes(&router).unwrap().len();
    for round in 0..24 {
        let mut child = promote((round + 1) % 2).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round as u64 * 2));
        // It may have ended already.
        let _ = child.kill();
        child.wait().unwrap();
        let current = router.current().unwrap().unwrap();
        assert!(written.contains(&current), "{current}");
        let place = router.path_of(&current);
        load_router(&place, candle_core::DType::F32, &candle_core::Device::Cpu).unwrap();
        let told = changes(&router).unwrap().len();
        assert!(told == known || told == known + 1, "{told} changes after {known}");
        known = told;
    }
    for (router, version) in [1, 0, 1].into_iter().zip([&written[1], &written[0], &written[1]]) {
        let output = postroom(&["model", "promote", name(&shop), name(&made[router])]);
        assert!(String::from_utf8_lossy(&output.stdout).contains(version), "{}", stderr(&output));
    }
    let output = postroom(&["model", "rollback", name(&shop)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(router.current().unwrap().as_ref(), Some(&written[0]));
}
