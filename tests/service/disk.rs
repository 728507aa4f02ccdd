//! Disks that are full, and readers of the log that do not read: the service goes on, commands say what is wrong and what helps,
//! and what was there is whole.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use postroom::artifact::{VersionedRouter, changes};

use crate::running::{Service, TEXT, name, postroom, stderr};
use crate::small_disk::{SmallDisk, all_files};
use crate::tiny::{self, QUEUES};

/// A file on a disk without any room.
fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader has gone.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn answering_to(stdout: Stdio, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postroom"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn a_log_that_cannot_be_written_costs_its_lines_and_nothing_else() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    let shop = folder.path().join("shop");
    for (log, what) in [(full(), "a full disk"), (unread(), "a reader that has gone")] {
        let mut service = Service::unheard(log, &[("POSTROOM_MODEL_ROUTER", name(&shop))]);
        for _ in 0..3 {
            assert!(
                service.post("/v1/route", TEXT, "Where is my order?").unwrap().starts_with("HTTP/1.1 200"),
                "{what}"
            );
        }
        assert!(service.get("/nowhere").unwrap().starts_with("HTTP/1.1 404"), "{what}");
        let lost = lost_lines(&service);
        assert!(lost > 3, "{what}: {lost}");
        service.signal("-TERM");
        assert!(service.process.wait().unwrap().success(), "{what}");
    }
}

fn lost_lines(service: &Service) -> u64 {
    let metrics = service.get("/metrics").unwrap();
    let lost = metrics.lines().find_map(|line| line.strip_prefix("postroom_log_lines_lost_total ")).unwrap();
    lost.parse().unwrap()
}

#[test]
fn a_log_whose_reader_stalls_costs_its_lines_and_nothing_else() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    let shop = folder.path().join("shop");
    // The reader lives and does not read: what is written fills the pipe, and whoever writes more waits for ever.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut service = Service::unheard(writer.into(), &[("POSTROOM_MODEL_ROUTER", name(&shop))]);
    let start = Instant::now();
    let headers = format!("{TEXT}x-request-id: {}\r\n", "a".repeat(100));
    while lost_lines(&service) == 0 {
        assert!(start.elapsed() < Duration::from_secs(300), "no line is lost");
        for _ in 0..100 {
            assert!(service.post("/nowhere", &headers, "").unwrap().starts_with("HTTP/1.1 404"));
        }
    }
    assert!(service.get("/livez").unwrap().starts_with("HTTP/1.1 200"));
    assert!(service.post("/v1/route", TEXT, "Where is my order?").unwrap().starts_with("HTTP/1.1 200"));
    service.signal("-TERM");
    let told = Instant::now();
    let ended = loop {
        if let Some(ended) = service.process.try_wait().unwrap() {
            break ended;
        }
        assert!(told.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.success(), "{ended}");
    drop(reader);
}

#[test]
fn what_was_logged_comes_out_before_the_error_that_ends_the_service() {
    let folder = tiny::folder();
    let told = stderr(&postroom(&["serve", "--port", "0", "--router", name(&folder.path().join("none"))]));
    let listening = told.find("\"listening\"").unwrap_or_else(|| panic!("{told}"));
    assert!(told[listening..].contains("postroom: "), "{told}");
}

/// A mail, a few labelled ones and a key file.
fn inputs(folder: &Path) -> [String; 3] {
    let [mail, labelled, keys] = ["mail.txt", "labelled.jsonl", "keys.txt"].map(|file| folder.join(file));
    std::fs::write(&mail, "Where is my order? It is late.").unwrap();
    let line = |queue: &str| format!("{{\"text\": \"Where is my {queue}?\", \"label\": \"{queue}\"}}\n");
    std::fs::write(&labelled, QUEUES.map(line).concat()).unwrap();
    std::fs::write(&keys, "").unwrap();
    [mail, labelled, keys].map(|path| name(&path).to_owned())
}

#[test]
fn every_command_says_that_its_answer_cannot_be_written() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "made", 0);
    let (made, shop) = (folder.path().join("made"), folder.path().join("shop"));
    assert!(postroom(&["model", "promote", name(&shop), name(&made)]).status.success());
    let [mail, labelled, keys] = inputs(folder.path());
    let new = postroom(&["keys", "new", "helpdesk", "--json"]).stdout;
    let new: serde_json::Value = serde_json::from_slice(&new).unwrap();
    std::fs::write(&keys, new["line"].as_str().unwrap()).unwrap();
    let [made, shop] = [name(&made), name(&shop)];
    let commands: [&[&str]; 22] = [
        &["bench", "--mix", "short", "--router", made, "--requests", "1", "--warm-up", "0"],
        &["--help"],
        &["route", "--help"],
        &["--version"],
        &["route", &mail, "--router", made],
        &["route", &mail, "--router", made, "--json"],
        &["route", "--backlog", &labelled, "--text", "text", "--dry-run", "--router", made],
        &["route", "--backlog", &labelled, "--text", "text", "--dry-run", "--json", "--router", made],
        &["attend", &mail, "--router", made],
        &["attend", &mail, "--router", made, "--json"],
        &["explain", &mail, "--router", made],
        &["explain", &mail, "--router", made, "--json"],
        &["clean", &mail],
        &["clean", &mail, "--json"],
        &["eval", &labelled, "--router", made],
        &["eval", &labelled, "--router", made, "--json"],
        &["queues", "list", "--router", made],
        &["queues", "list", "--router", made, "--json"],
        &["keys", "new", "helpdesk"],
        &["keys", "list", &keys],
        &["model", "list", shop],
        &["model", "verify", shop],
    ];
    for command in commands {
        let output = answering_to(full(), command);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {told}");
        assert!(told.contains("postroom: cannot write"), "{command:?}: {told}");
        assert!(told.contains("No space left on device") && told.contains("remedy: make room"), "{command:?}: {told}");
        // `head` has read enough: nothing went wrong.
        let output = answering_to(unread(), command);
        let told = stderr(&output);
        assert!(output.status.success() && !told.contains("postroom:"), "{command:?}: {told}");
    }
}

#[test]
fn what_is_changed_is_changed_though_it_cannot_be_said() {
    let folder = tiny::folder();
    let version = tiny::write(folder.path(), "made", 0);
    let (made, shop) = (folder.path().join("made"), folder.path().join("shop"));
    let output = answering_to(full(), &["model", "promote", name(&shop), name(&made)]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(&format!("{version} is in force; only saying so failed")), "{told}");
    let router = VersionedRouter::open(&shop).unwrap();
    assert_eq!((router.current().unwrap(), changes(&router).unwrap().len()), (Some(version), 1));

    let output = answering_to(full(), &["queues", "disable", QUEUES[2], "--router", name(&made)]);
    assert!(stderr(&output).contains("holds the changed router; only saying so failed"), "{}", stderr(&output));
    let listed = postroom(&["queues", "list", "--router", name(&made)]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("allergy-questions  off"), "{listed:?}");

    let [_, labelled, _] = inputs(folder.path());
    let results = folder.path().join("results.jsonl");
    let backlog = ["route", "--backlog", &labelled, "--text", "text", "--out", name(&results), "--router", name(&made)];
    let output = answering_to(full(), &backlog);
    assert!(stderr(&output).contains("results.jsonl is whole; only saying so failed"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&results).unwrap().lines().count(), QUEUES.len());
}

/// Told: what cannot be written, why, and what helps.
fn assert_says_full(output: &Output) {
    let told = stderr(output);
    assert!(!output.status.success() && told.contains("cannot write"), "{told}");
    assert!(told.contains("No space left on device") && told.contains("remedy: make room"), "{told}");
}

/// With every amount of room from none to enough, so that each write of the command is once the one that fails.
#[test]
fn a_promotion_on_a_full_disk_leaves_the_version_before_and_its_history() {
    let Some(disk) = SmallDisk::of_pages(64) else { return };
    let folder = tiny::folder();
    let (old, new) = (tiny::write(folder.path(), "made-0", 0), tiny::write(folder.path(), "made-1", 1));
    let shop = disk.path().join("shop");
    let made = [0, 1].map(|number| folder.path().join(format!("made-{number}")));
    copy(&folder.path().join("tiny"), &disk.path().join("tiny"));
    let first = postroom(&["model", "promote", name(&shop), name(&made[0])]);
    assert!(first.status.success(), "{}", stderr(&first));
    let router = VersionedRouter::open(&shop).unwrap();
    // The next line begins in one page and ends in another.
    let history = shop.join("changes.jsonl");
    let line = std::fs::read(&history).unwrap();
    let blank = vec![b'\n'; 4096 - 40 - line.len()];
    std::fs::write(&history, [line, blank].concat()).unwrap();
    // All but the new version, which may lie there already: whole, and not in force.
    let others = || {
        let mut files = all_files(&shop);
        files.retain(|(path, _)| !path.starts_with(router.path_of(&new)));
        files
    };
    let before = others();
    // First the copy does not fit; once it does, what comes in force then does not.
    let (mut room, mut failed) = (0, [0, 0]);
    loop {
        let copied = router.path_of(&new).exists();
        if copied && failed[1] == 0 {
            room = 0;
        }
        assert!(room < 64, "it never succeeds");
        disk.leave(room);
        let output = postroom(&["model", "promote", name(&shop), name(&made[1])]);
        if output.status.success() {
            break;
        }
        assert_says_full(&output);
        assert!(others() == before, "with room for {room} pages");
        assert_eq!((router.current().unwrap(), changes(&router).unwrap().len()), (Some(old.clone()), 1));
        let verified = postroom(&["model", "verify", name(&shop)]);
        assert!(verified.status.success(), "{}", stderr(&verified));
        failed[usize::from(copied)] += 1;
        room += 1;
    }
    assert!(failed[0] >= 3 && failed[1] >= 2, "{failed:?} writes failed");
    assert_eq!((router.current().unwrap(), changes(&router).unwrap().len()), (Some(new.clone()), 2));
    // Taking it back needs room as well.
    disk.leave(0);
    assert_says_full(&postroom(&["model", "rollback", name(&shop)]));
    assert_eq!(router.current().unwrap(), Some(new));
    disk.empty();
    assert!(postroom(&["model", "rollback", name(&shop)]).status.success());
    assert_eq!(router.current().unwrap(), Some(old));
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

#[test]
fn a_changed_router_that_does_not_fit_leaves_the_old_one() {
    let Some(disk) = SmallDisk::of_pages(64) else { return };
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    let shop = disk.path().join("shop");
    copy(&folder.path().join("tiny"), &disk.path().join("tiny"));
    copy(&folder.path().join("shop"), &shop);
    let before = all_files(&shop);
    let mut failed = 0;
    for room in 0.. {
        assert!(room < 64, "it never succeeds");
        disk.leave(room);
        let output = postroom(&["queues", "disable", QUEUES[2], "--router", name(&shop)]);
        if output.status.success() {
            break;
        }
        assert_says_full(&output);
        assert!(stderr(&output).contains("the router is as it was"), "{}", stderr(&output));
        failed += 1;
        assert_eq!(all_files(&shop), before, "with room for {room} pages");
        // Nothing is left of what did not fit.
        assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 3);
    }
    assert!(failed >= 3, "only {failed} writes failed");
    assert_ne!(all_files(&shop), before);
    assert!(postroom(&["model", "verify", name(&shop)]).status.success());
}

#[test]
fn a_backlog_on_a_full_disk_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::of_pages(512) else { return };
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    let (shop, mail) = (folder.path().join("shop"), folder.path().join("mail.jsonl"));
    let line = |number: usize| format!("{{\"id\": \"{number}\", \"text\": \"Where is my order? It is late.\"}}\n");
    std::fs::write(&mail, (0..400).map(line).collect::<String>()).unwrap();
    let route = |out: &Path| {
        postroom(&["route", "--backlog", name(&mail), "--out", name(out), "--router", name(&shop), "--threads", "1"])
    };
    let whole = folder.path().join("results.jsonl");
    assert!(route(&whole).status.success());
    let expected = std::fs::read(&whole).unwrap();
    let results = disk.path().join("results.jsonl");
    for room in 0..3 {
        disk.leave(room);
        assert_says_full(&route(&results));
    }
    disk.empty();
    let output = route(&results);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read(&results).unwrap(), expected);
}

#[test]
fn a_map_and_a_training_that_do_not_fit_leave_what_was_there() {
    let Some(disk) = SmallDisk::of_pages(40) else { return };
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    let (shop, map) = (folder.path().join("shop"), disk.path().join("map.json"));
    let [mail, _, _] = inputs(folder.path());
    let attend = || postroom(&["attend", &mail, "--router", name(&shop), "--rows", "all", "--out", name(&map)]);
    assert!(attend().status.success());
    let before = std::fs::read(&map).unwrap();
    disk.leave(0);
    assert_says_full(&attend());
    assert_eq!(std::fs::read(&map).unwrap(), before);
    disk.empty();

    copy(&folder.path().join("tiny"), &disk.path().join("tiny"));
    copy(&folder.path().join("shop"), &disk.path().join("shop"));
    let labelled = folder.path().join("labelled.jsonl");
    let line = |number: usize| {
        let queue = QUEUES[number % 2];
        format!("{{\"text\": \"Where is my {queue}? It is order {number}.\", \"label\": \"{queue}\"}}\n")
    };
    std::fs::write(&labelled, (0..12).map(line).collect::<String>()).unwrap();
    let config = folder.path().join("training.toml");
    std::fs::write(&config, "[windows]\nmax_length = 32\nstride = 16\nmax_tokens = 1024\n").unwrap();
    let out = disk.path().join("shop");
    let before = all_files(&out);
    let encoder = disk.path().join("tiny");
    let arguments = ["--encoder", name(&encoder), "--config", name(&config), "--out", name(&out), "--method", "frozen"];
    let train = || postroom(&[&["train", name(&labelled)][..], &arguments].concat());
    for room in 0..3 {
        disk.leave(room);
        let output = train();
        assert_says_full(&output);
        assert!(stderr(&output).contains("the new router is not written"), "{}", stderr(&output));
        assert_eq!(all_files(&out), before);
    }
    disk.empty();
    let output = train();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_ne!(all_files(&out), before);
}
