//! The program as a user starts it.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};

fn postroom(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_postroom"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

const EGGLESS: &str = "My eggless cake arrived cold. Can I get a refund for it?";

#[test]
fn route_answers_in_one_line_and_in_json() {
    let line = stdout(&postroom(&["route", "-"], EGGLESS));
    assert!(line.starts_with("refunds"), "{line}");
    let json = stdout(&postroom(&["route", "-", "--json", "--threads", "1"], EGGLESS));
    let decision: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(decision["decision"], "route");
    assert_eq!(decision["queue"]["id"], "refunds");
    assert_eq!(decision["input"]["truncated"], false);
}

#[test]
fn route_reads_a_raw_message_and_hands_an_empty_one_to_a_person() {
    let mail = "From: a@example.org\r\nSubject: Order 12\r\n\r\nPlease cancel my order, I typed the wrong address.\r\n";
    let line = stdout(&postroom(&["route", "-"], mail));
    assert!(line.starts_with("order-changes"), "{line}");
    let line = stdout(&postroom(&["route", "-"], "  \n "));
    assert!(line.starts_with("needs a person") && line.contains("empty body"), "{line}");
}

#[test]
fn attend_draws_words_and_writes_json() {
    let drawn = stdout(&postroom(&["attend", "-"], EGGLESS));
    assert!(drawn.contains("layer 5, head mean") && drawn.contains("refund"), "{drawn}");
    let json =
        stdout(&postroom(&["attend", "-", "--layers", "0,3", "--reduce", "none", "--rows", "all", "--json"], EGGLESS));
    let reply: serde_json::Value = serde_json::from_str(&json).unwrap();
    let shape: Vec<u64> = serde_json::from_value(reply["attention"]["shape"].clone()).unwrap();
    assert_eq!(shape[..2], [2, 12]);
    assert_eq!(shape[2], shape[3]);
}

#[test]
fn attend_writes_a_file_in_the_form_that_its_ending_says() {
    let folder = tempfile::tempdir().unwrap();
    for (name, start) in [("map.svg", "<svg "), ("map.html", "<!doctype html>"), ("map.json", "{")] {
        let path = folder.path().join(name);
        stdout(&postroom(&["attend", "-", "--rows", "all", "--out", path.to_str().unwrap()], EGGLESS));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(start), "{name}");
    }
    let error = stderr(&postroom(&["attend", "-", "--out", "map.bmp"], EGGLESS));
    assert!(error.contains(".safetensors"), "{error}");
}

#[test]
fn explain_prints_evidence_and_a_verdict() {
    let printed = stdout(&postroom(&["explain", "-", "--unit", "sentence"], EGGLESS));
    assert!(printed.starts_with("refunds") && printed.contains("occlusion for refunds, by sentence"), "{printed}");
    let error = stderr(&postroom(&["explain", "-", "--classes", "nobody"], EGGLESS));
    assert!(error.contains("late-deliveries"), "{error}");
}

#[test]
fn clean_shows_what_was_cut() {
    let mail = "Subject: Re: order\r\n\r\nStill not here.\r\n\r\nOn Mon, Jan 5, 2026 at 9:12 AM Desk <desk@example.org> wrote:\r\n> We will look.\r\n";
    let json = stdout(&postroom(&["clean", "-", "--json"], mail));
    let cleaned: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(cleaned["text"], "Still not here.");
    assert!(!cleaned["cut"].as_array().unwrap().is_empty());
    let lines = stdout(&postroom(&["clean", "-"], mail));
    assert!(lines.contains("quote"), "{lines}");
}

#[test]
fn mistakes_are_named_with_their_cause() {
    let error = stderr(&postroom(&["attend", "-", "--layers", "6"], EGGLESS));
    assert!(error.contains("valid are 0 to 5"), "{error}");
    let error = stderr(&postroom(&["route", "/nowhere.eml"], ""));
    assert!(error.contains("/nowhere.eml"), "{error}");
    let error = stderr(&postroom(&["route", "-", "--router", "data"], EGGLESS));
    assert!(error.contains("holds no router"), "{error}");
    let error = stderr(&postroom(&["route", "-", "--router", "models/nowhere"], EGGLESS));
    let told = error.contains("there is no router at models/nowhere, ") && error.contains("--router DIR");
    assert!(told && error.contains("/usr/share/postroom/models/nowhere"), "{error}");
    let error = stderr(&postroom(&["route", "-", "--device", "gpu"], EGGLESS));
    assert!(error.contains("auto, cpu, cuda:N"), "{error}");
}

/// A folder where routers find their encoder.
fn folder_with_encoder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/minilm-l6-v2"),
        folder.path().join("minilm-l6-v2"),
    )
    .unwrap();
    folder
}

/// Eight mails of two queues, one a line.
fn eight_mails() -> Vec<String> {
    let asks = ["the invoice is wrong", "please correct my bill", "I was charged twice", "send the receipt again"];
    let breaks = ["the page is broken", "I cannot log in", "the app crashes", "an error appears on screen"];
    asks.iter()
        .map(|text| serde_json::json!({"text": text, "label": "Billing"}))
        .chain(breaks.iter().map(|text| serde_json::json!({"text": text, "label": "Technical help"})))
        .map(|line| line.to_string())
        .collect()
}

#[test]
fn training_writes_a_router_that_routes_and_keeps_the_old_one_on_bad_data() {
    let folder = folder_with_encoder();
    let data = folder.path().join("mail.jsonl");
    let out = folder.path().join("mine");
    let lines = eight_mails();
    std::fs::write(&data, lines.join("\n")).unwrap();
    let report = folder.path().join("report");
    let arguments =
        ["train", data.to_str().unwrap(), "--out", out.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let told = stdout(&postroom(&arguments, ""));
    // Eight mails promise nothing, and the command says what is missing.
    assert!(told.contains("not proven") && told.contains("out of scope: NOT PROVEN"), "{told}");
    assert!(std::fs::read_to_string(report.join("report.json")).unwrap().contains("\"origin\": \"held_out\""));
    let json = stdout(&postroom(
        &["route", "-", "--json", "--router", out.to_str().unwrap()],
        "The app crashes when I log in.",
    ));
    let decision: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(decision["candidates"][0]["queue"], "technical-help");

    let before = std::fs::read(out.join("router.json")).unwrap();
    std::fs::write(&data, format!("{}\n{{\"text\": \"no label\"}}\n", lines.join("\n"))).unwrap();
    let error = stderr(&postroom(&arguments, ""));
    assert!(error.contains("line 9") && error.contains("no `queue`"), "{error}");
    assert_eq!(std::fs::read(out.join("router.json")).unwrap(), before);
}

#[test]
fn a_test_is_judged_without_what_was_trained_on_and_the_card_says_so() {
    let folder = folder_with_encoder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("mail.jsonl"), eight_mails().join("\n")).unwrap();
    let repeat = r#"{"text": "i was  charged TWICE", "label": "Billing"}"#;
    let new = r#"{"text": "my invoice shows the wrong sum", "label": "Billing"}"#;
    std::fs::write(at("test.jsonl"), format!("{repeat}\n{new}\n")).unwrap();
    let train = || {
        postroom(&["train", &at("mail.jsonl"), "--out", &at("mine"), "--test", &at("test.jsonl"), "--no-memory"], "")
    };
    let output = train();
    let noted = String::from_utf8_lossy(&output.stderr);
    assert!(noted.contains("note: 1 mail left out, its text is trained on"), "{noted}");
    let told = stdout(&output);
    assert!(told.contains("of 1 misrouted when every mail is routed"), "{told}");
    let card = std::fs::read_to_string(at("mine/README.md")).unwrap();
    assert!(card.contains("Without 1 of its mails") && !card.contains("Never trained on"), "{card}");
    let again = format!("`postroom eval {} --router {}`, which judges all", at("test.jsonl"), at("mine"));
    assert!(card.contains(&again), "{card}");

    std::fs::write(at("test.jsonl"), repeat).unwrap();
    let refused = stderr(&train());
    assert!(refused.contains("name other mail with --test") && !refused.contains("reading mail"), "{refused}");
    assert_eq!(std::fs::read_to_string(at("mine/README.md")).unwrap(), card);
}

#[test]
fn a_refused_training_still_writes_the_report_that_it_advises_and_keeps_the_old_router() {
    let folder = folder_with_encoder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    // Words that are near in meaning have different labels, which misleads the encoder; word counts know none of them and name the
    // larger queue.
    let usual = "kitten truck moon pear ship queen nurse violin tea summer avenue cake silver sister";
    let rare = "cat lorry planet apple boat king doctor guitar coffee winter";
    let rows =
        |queue: &str, words: &str| -> String { words.split(' ').map(|word| format!("{queue},{word}\n")).collect() };
    std::fs::write(at("mail.csv"), format!("queue,text\n{}{}", rows("usual", usual), rows("rare", rare))).unwrap();
    std::fs::write(at("training.toml"), "method = \"frozen\"\nc = [100.0]\n").unwrap();
    std::fs::create_dir(at("mine")).unwrap();
    std::fs::write(at("mine/router.json"), "the old router").unwrap();
    let refused = stderr(&postroom(
        &["train", &at("mail.csv"), "--config", &at("training.toml"), "--out", &at("mine"), "--report", &at("report")],
        "",
    ));
    assert!(refused.contains("it is not written") && refused.contains("labels with --report"), "{refused}");
    assert!(refused.contains(&format!("the report on held-out mail is in {}", at("report"))), "{refused}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(at("report/report.json")).unwrap()).unwrap();
    assert_eq!((&report["router"], &report["mails"]), (&"mine (not written)".into(), &24.into()), "{report}");
    assert_eq!(std::fs::read_to_string(at("mine/router.json")).unwrap(), "the old router");
}

#[test]
fn eval_writes_a_report_of_the_figures_that_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("mail.jsonl");
    let lines = [
        ("a", EGGLESS, "refunds", "Can I get a refund for it?"),
        ("b", "Where is my order? It should have come on Friday.", "late-deliveries", "Where is my order?"),
        ("c", "Does the rye loaf contain nuts?", "refunds", "Does the rye loaf contain nuts?"),
    ];
    let line = |(id, text, queue, decisive): &(&str, &str, &str, &str)| {
        serde_json::json!({"id": id, "subject": "<b>cake</b>", "body": text, "queue": queue, "decisive": decisive})
            .to_string()
    };
    std::fs::write(&data, lines.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let report = folder.path().join("report");
    let printed = stdout(&postroom(&["eval", data.to_str().unwrap(), "--report", report.to_str().unwrap()], ""));
    assert!(printed.starts_with("1 of 3 misrouted"), "{printed}");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(report.join("report.json")).unwrap()).unwrap();
    assert_eq!(json["accuracy"]["hits"], 2);
    assert_eq!(json["worst"][0]["id"], "c");
    assert_eq!(json["by_position"].as_array().unwrap().len(), 10);
    let page = std::fs::read_to_string(report.join("report.html")).unwrap();
    assert!(page.contains("&lt;b&gt;cake&lt;/b&gt;") && !page.contains("<b>cake"), "{page}");

    // What is measured is what is served: the threshold of the settings counts, here one that lets nothing go.
    assert!(!printed.contains("\n0 of 3 routed without a person"), "{printed}");
    let settings = folder.path().join("settings.toml");
    std::fs::write(&settings, "[routing.policy]\nthreshold = 1\n").unwrap();
    let strict = ["eval", data.to_str().unwrap(), "--config", settings.to_str().unwrap()];
    let printed = stdout(&postroom(&strict, ""));
    assert!(printed.contains("\n0 of 3 routed without a person at the threshold 1 of the settings"), "{printed}");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&postroom(&[&strict[..], &["--json"]].concat(), ""))).unwrap();
    assert_eq!((json["routed_alone"].as_u64(), json["threshold"].as_f64()), (Some(0), Some(1.0)), "{json}");

    // Mail for nobody, with labels that are no queues; and a budget tried on halves.
    let nobody = folder.path().join("nobody.jsonl");
    let lines = ["What is the capital of Peru?", "Who won the match last night?"];
    let line = |(id, text): (usize, &&str)| {
        serde_json::json!({"id": id.to_string(), "body": text, "queue": "oos"}).to_string()
    };
    std::fs::write(&nobody, lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let asked =
        ["eval", data.to_str().unwrap(), "--nobody", nobody.to_str().unwrap(), "--budget-trials", "3", "--json"];
    let json: serde_json::Value = serde_json::from_str(&stdout(&postroom(&asked, ""))).unwrap();
    assert_eq!((&json["nobody"]["mails"], &json["mails"]), (&2.into(), &3.into()));
    // Bakery mail has more energy than either.
    assert_eq!(json["nobody"]["auroc"], 1.0, "{json}");
    // Three mails prove nothing, so nothing is routed alone and nothing can be wrong.
    assert_eq!((&json["budget_trials"]["trials"], &json["budget_trials"]["proven"]), (&3.into(), &0.into()));
}

/// A service on a port that the system chose, once it is ready; its port, and the reading end of its log, which must stay open as long as it runs.
fn start_service() -> (Child, String, impl std::io::BufRead) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_postroom"))
        .args(["serve", "--port", "0"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = None;
    let mut log = BufReader::new(server.stderr.take().unwrap());
    for line in (&mut log).lines().map_while(Result::ok) {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if line["message"] == "listening" {
            let address = line["address"].as_str().unwrap().to_owned();
            port = address.rsplit(':').next().map(str::to_owned);
        }
        if line["message"] == "ready" {
            break;
        }
    }
    (server, port.expect("the log names the port"), log)
}

#[test]
fn serve_answers_healthcheck_and_stops_on_sigterm() {
    let (mut server, port, _log) = start_service();
    assert_eq!(stdout(&postroom(&["healthcheck", "--port", &port], "")), "ready\n");
    Command::new("kill").arg(server.id().to_string()).status().unwrap();
    assert!(server.wait().unwrap().success());
    assert!(stderr(&postroom(&["healthcheck", "--port", &port], "")).contains("no answer"));
}

#[test]
fn bench_measures_made_up_mail_and_draws_it() {
    let folder = tempfile::tempdir().unwrap();
    let (chart, windows) = (folder.path().join("bench.svg"), folder.path().join("windows.jsonl"));
    let [chart_name, windows_name] = [&chart, &windows].map(|path| path.to_str().unwrap());
    let arguments = ["bench", "--mix", "short", "--requests", "6", "--warm-up", "2", "--clients", "1,3", "--json"];
    let files = ["--svg", chart_name, "--windows", windows_name];
    let figures = stdout(&postroom(&[&arguments[..], &files[..]].concat(), ""));
    let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
    let levels = figures["levels"].as_array().unwrap();
    assert_eq!(levels.iter().map(|level| level["clients"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3]);
    assert!(levels.iter().all(|level| level["answered"] == 6 && level["mails_per_s"].as_f64().unwrap() > 0.0));
    assert!(figures["tokens"]["padded"].as_u64() >= figures["tokens"]["packed"].as_u64());
    assert!(std::fs::read_to_string(chart).unwrap().starts_with("<svg"));
    assert_eq!(std::fs::read_to_string(windows).unwrap().lines().count(), 200);
}

#[test]
fn bench_says_what_is_wrong_with_its_server_and_its_mail() {
    let refused = stderr(&postroom(&["bench", "--url", "http://127.0.0.1:1", "--requests", "1"], ""));
    assert!(refused.contains("no server answers at 127.0.0.1:1; is it running?"), "{refused}");
    let scheme = stderr(&postroom(&["bench", "--url", "https://127.0.0.1:1"], ""));
    assert!(scheme.contains("only plain HTTP"), "{scheme}");
    let missing = stderr(&postroom(&["bench", "no-such.jsonl", "--requests", "1"], ""));
    assert!(missing.contains("no-such.jsonl"), "{missing}");
    let none = stderr(&postroom(&["bench", "--clients", "0"], ""));
    assert!(none.contains("--clients"), "{none}");
}

#[test]
fn bench_drives_a_running_service_over_http() {
    let (mut server, port, _log) = start_service();
    let (url, pid) = (format!("http://127.0.0.1:{port}"), server.id().to_string());
    let figures = stdout(&postroom(
        &["bench", "--url", &url, "--pid", &pid, "--mix", "short", "--requests", "4", "--warm-up", "0", "--json"],
        "",
    ));
    server.kill().unwrap();
    server.wait().unwrap();
    let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(figures["levels"][0]["answered"], 4);
    assert!(cfg!(not(target_os = "linux")) || figures["memory"]["now_mb"].as_f64().unwrap() > 1.0);
}

/// Mails of a backlog: every seventh line is none.
fn backlog(mails: usize) -> String {
    let texts = ["My cake came cold, I want my money back.", "Where is my order?", "Does the rye loaf contain nuts?"];
    let line = |number: usize| match number % 7 {
        3 => "{\"text\": \n".to_owned(),
        _ => serde_json::json!({"id": format!("mail-{number}"), "text": texts[number % 3]}).to_string() + "\n",
    };
    (0..mails).map(line).collect()
}

#[test]
fn a_backlog_that_is_killed_goes_on_and_each_mail_has_one_row() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (mail, whole, killed) = (at("mail.jsonl"), at("whole.jsonl"), at("killed.jsonl"));
    std::fs::write(&mail, backlog(330)).unwrap();
    let arguments =
        |out: &str| ["route", "--backlog", &mail, "--out", out, "--threads", "1"].map(str::to_owned).to_vec();
    let run = |out: &str| postroom(&arguments(out).iter().map(String::as_str).collect::<Vec<_>>(), "");

    let told = stdout(&run(&whole));
    assert!(told.contains("errors                             47"), "{told}");
    let expected = std::fs::read_to_string(&whole).unwrap();
    assert_eq!(expected.lines().count(), 330);

    let mut child = Command::new(env!("CARGO_BIN_EXE_postroom"))
        .args(arguments(&killed))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = format!("{killed}.journal");
    // The line of the run, the line of the results' head, and one batch.
    while std::fs::read_to_string(&journal).unwrap_or_default().lines().count() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let half = std::fs::read_to_string(&killed).unwrap();
    let rows = half.lines().count();
    assert!((64..330).contains(&rows), "{rows} rows after the kill");
    // As if it had been killed within a batch.
    std::fs::write(&killed, half + "{\"place\": \"mail.jsonl line 9").unwrap();

    let output = run(&killed);
    assert!(String::from_utf8_lossy(&output.stderr).contains("are done already"), "{output:?}");
    assert_eq!(stdout(&output), told);
    assert_eq!(std::fs::read_to_string(&killed).unwrap(), expected);
    assert!(!std::path::Path::new(&journal).exists());
    assert!(stderr(&run(&killed)).contains("exists already"));

    let rows: Vec<serde_json::Value> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["id"], &rows[0]["decision"]), (&"mail-0".into(), &"route".into()));
    assert!(rows[3]["error"].as_str().unwrap().contains("no JSON object"), "{}", rows[3]);
    assert!(rows[3]["place"].as_str().unwrap().ends_with("mail.jsonl line 4"), "{}", rows[3]);
}

#[test]
fn a_mail_of_a_backlog_of_which_a_part_is_read_says_so_in_its_row() {
    let folder = tempfile::tempdir().unwrap();
    let (inbox, out) = (folder.path().join("inbox.mbox"), folder.path().join("out.jsonl"));
    let attachment = "x".repeat(33 << 20);
    let first = format!("From x\nSubject: Where is my order?\n\n{attachment}\n\n");
    std::fs::write(&inbox, first + "From y\nSubject: two\n\nDoes the rye loaf contain nuts?\n").unwrap();
    let (inbox, out) = (inbox.to_str().unwrap(), out.to_str().unwrap());
    stdout(&postroom(&["route", "--backlog", inbox, "--out", out], ""));
    let rows = std::fs::read_to_string(out).unwrap();
    let rows: Vec<serde_json::Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["truncated"], &rows[1]["truncated"]), (&true.into(), &false.into()), "{rows:?}");
    assert!(rows[0]["reasons"].as_array().unwrap().contains(&"truncated".into()), "{rows:?}");
}

#[test]
fn a_backlog_of_files_becomes_a_table_and_a_dry_run_says_what_it_would_come_to() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    std::fs::create_dir_all(inbox.join("old")).unwrap();
    std::fs::write(inbox.join("a.eml"), format!("Subject: Cold cake\n\n{EGGLESS}\n")).unwrap();
    std::fs::write(inbox.join("empty.eml"), "Subject:\n\n").unwrap();
    let mbox =
        "From x\nSubject: one\n\nWhere is my order?\n\nFrom y\nSubject: two\n\nDoes the rye loaf contain nuts?\n";
    std::fs::write(inbox.join("old/two.mbox"), mbox).unwrap();
    let (inbox, out) = (inbox.to_str().unwrap(), folder.path().join("out.csv"));
    stdout(&postroom(&["route", "--backlog", inbox, "--out", out.to_str().unwrap()], ""));
    let table = std::fs::read_to_string(&out).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 5, "{table}");
    assert!(lines[0].starts_with("place,id,decision,queue,confidence,reasons"), "{table}");
    assert!(lines[1].starts_with("a.eml,,") && lines[1].contains("refunds"), "{table}");
    assert!(lines[2].starts_with("empty.eml,,needs_human,,,empty_body"), "{table}");
    assert!(lines[3].starts_with("old/two.mbox line 1,,") && lines[4].starts_with("old/two.mbox line 6,,"), "{table}");

    let told = stdout(&postroom(&["route", "--backlog", inbox, "--dry-run", "--sample", "3"], ""));
    assert!(told.starts_with("4 mails, 0 of them unreadable; projected from 3"), "{told}");
    assert!(told.contains("to a person") && told.contains("time: about"), "{told}");
    let json = stdout(&postroom(&["route", "--backlog", inbox, "--dry-run", "--json"], ""));
    let answer: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&answer["mails"], &answer["sample"]["mails"]), (&4.into(), &4.into()));
    assert_eq!(answer["sample"]["reasons"]["empty_body"], 1);

    let error = stderr(&postroom(&["route", "--backlog", inbox], ""));
    assert!(error.contains("--out") && error.contains("--dry-run"), "{error}");
    let error = stderr(&postroom(&["route", "--backlog", inbox, "--out", "results.xlsx"], ""));
    assert!(error.contains(".csv or .jsonl"), "{error}");
    assert!(stderr(&postroom(&["route", "--out", "a.csv"], "")).contains("--backlog"));
}

#[test]
fn a_backlog_of_unknown_format_names_its_own_flag() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = folder.path().join("inbox");
    std::fs::write(&inbox, EGGLESS).unwrap();
    let error = stderr(&postroom(&["route", "--backlog", inbox.to_str().unwrap(), "--dry-run"], ""));
    assert!(error.contains("--backlog-format (jsonl, json, csv, tsv, mbox)"), "{error}");
}

#[test]
fn numbers_that_mean_nothing_are_refused_with_the_arguments() {
    let data = "data/crumb/week.jsonl";
    let cases: [&[&str]; 6] = [
        &["eval", data, "--budget-trials", "0"],
        &["eval", data, "--budget-trials", "2", "--budget", "0"],
        &["eval", data, "--budget-trials", "2", "--budget", "1"],
        &["eval", data, "--budget-trials", "2", "--budget", "NaN"],
        &["faithfulness", data, "--mails", "0"],
        &["route", "--backlog", data, "--dry-run", "--sample", "0"],
    ];
    for arguments in cases {
        let refused = postroom(arguments, "");
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {refused:?}");
    }
}

#[test]
fn a_training_on_few_mails_says_that_descriptions_count() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("few.csv");
    let rows = ["late,where is my parcel", "late,the van never came", "money,pay me back", "money,I want a refund"];
    std::fs::write(&data, format!("queue,text\n{}\n", rows.join("\n"))).unwrap();
    let out = folder.path().join("few");
    let output = postroom(&["train", data.to_str().unwrap(), "--out", out.to_str().unwrap(), "--no-memory"], "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is called and described by counts as one more") && said.contains("stays frozen"), "{said}");
}

/// What lies in the place of a new router goes when it comes: so nothing but a router may lie there.
#[test]
fn a_router_is_written_over_nothing_but_a_router() {
    let folder = tempfile::tempdir().unwrap();
    let tickets = folder.path().join("tickets.csv");
    let rows = ["late,where is my parcel", "late,the van never came", "money,pay me back", "money,I want a refund"];
    let mail = format!("queue,text\n{}\n", rows.join("\n"));
    std::fs::write(&tickets, &mail).unwrap();
    let (data, folder) = (tickets.to_str().unwrap(), folder.path().to_str().unwrap());
    for out in [folder, data] {
        let commands: [&[&str]; 4] = [
            &["train", data, "--out", out],
            &["queues", "rename", "refunds", "--name", "Money back", "--out", out],
            &["queues", "add", "gifts", "--name", "Gifts", "--description", "Gift cards.", "--out", out],
            &["model", "quantize", "models/crumb", data, "--out", out],
        ];
        for command in commands {
            let said = stderr(&postroom(command, ""));
            assert!(said.contains(&format!("{out} holds something that is no router")), "{command:?}: {said}");
            assert_eq!(std::fs::read_to_string(&tickets).unwrap(), mail);
        }
    }
}

#[test]
fn a_change_that_cannot_be_written_is_not_reported() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let out = in_the_way.join("changed");
    let output = postroom(&["queues", "remove", "refunds", "--out", out.to_str().unwrap()], "");
    assert!(!output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write") && said.contains(in_the_way.to_str().unwrap()), "{said}");
}

/// What explanations are worth, with words deleted and with words hidden: other figures, and occlusion beats chance in both.
#[test]
fn faithfulness_is_measured_by_deleting_and_by_hiding() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.jsonl");
    let week = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/crumb/week.jsonl")).unwrap();
    let some: Vec<&str> = week.lines().take(4).collect();
    std::fs::write(&path, some.join("\n")).unwrap();
    let data = path.to_str().unwrap();
    let tables = ["delete", "mask"].map(|perturb| {
        let arguments = ["faithfulness", data, "--method", "occlusion,attention", "--perturb", perturb];
        let table = stdout(&postroom(&arguments, ""));
        assert!(table.starts_with("4 mails, "), "{table}");
        let comprehensiveness = |method: &str| -> f64 {
            let row = table.lines().find(|line| line.starts_with(method)).unwrap();
            row.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        assert!(comprehensiveness("occlusion") > comprehensiveness("random"), "{table}");
        table
    });
    assert_ne!(tables[0], tables[1]);
}

/// A router on bytes: measured, written, told, refused where it loses too much, and as before when it is off again.
#[test]
fn a_router_runs_on_bytes_when_what_that_costs_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let week = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/crumb/week.jsonl")).unwrap();
    let some: Vec<&str> = week.lines().take(24).collect();
    std::fs::write(at("some.jsonl"), some.join("\n")).unwrap();
    let (bytes, again) = (at("bytes"), at("again"));

    let made = postroom(&["model", "quantize", "models/crumb", &at("some.jsonl"), "--out", &bytes], "");
    if String::from_utf8_lossy(&made.stderr).contains("no instructions for int8") {
        eprintln!("this machine cannot run on bytes: skipped");
        return;
    }
    let said = stdout(&made);
    assert!(said.contains("some.jsonl: ") && said.contains("packed int8"), "{said}");
    let manifest = || -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(at("bytes/router.json")).unwrap()).unwrap()
    };
    let measured = manifest()["quantize"]["measured"][0].clone();
    assert_eq!((&measured["mails"], &measured["changed"]), (&24.into(), &0.into()), "{measured}");
    assert!(measured["smallest_cosine"].as_f64().unwrap() > 0.999, "{measured}");
    assert!(std::fs::read_to_string(at("bytes/README.md")).unwrap().contains("## Int8"));
    assert!(stdout(&postroom(&["model", "verify", &bytes], "")).contains("5 recorded answers given again"));
    assert!(stdout(&postroom(&["route", "-", "--router", &bytes], EGGLESS)).starts_with("refunds"));

    // Off again, it is the router that it was.
    stdout(&postroom(&["model", "quantize", &bytes, "--off", "--out", &again], ""));
    let version = |router: &str| {
        let text = std::fs::read_to_string(format!("{router}/router.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["version"].clone()
    };
    let shipped = version(concat!(env!("CARGO_MANIFEST_DIR"), "/models/crumb"));
    assert_eq!(version(&again), shipped);
    assert_ne!(version(&bytes), shipped);

    // A router that decides otherwise than the measured one runs in f32 until it is measured.
    let merged = at("merged");
    let said = stdout(&postroom(
        &["queues", "--router", &bytes, "merge", "order-changes", "--into", "refunds", "--out", &merged],
        "",
    ));
    assert!(said.contains("it runs in f32 again"), "{said}");
    let text = std::fs::read_to_string(at("merged/router.json")).unwrap();
    let card = std::fs::read_to_string(at("merged/README.md")).unwrap();
    assert!(!text.contains("quantize") && !card.contains("## Int8"), "{text}\n{card}");

    // One that is written down to lose too much does not load.
    let mut poor = manifest();
    poor["quantize"]["measured"][0]["right_int8"] = (measured["right_f32"].as_u64().unwrap() - 1).into();
    std::fs::write(at("bytes/router.json"), poor.to_string()).unwrap();
    let refused = stderr(&postroom(&["route", "-", "--router", &bytes], EGGLESS));
    assert!(refused.contains("must not") && refused.contains("4.17 points") && refused.contains("--off"), "{refused}");
    // And can still be put right.
    stdout(&postroom(&["model", "quantize", &bytes, "--off"], ""));
    assert_eq!(version(&bytes), shipped);
}

#[test]
fn quantizing_without_mail_says_what_is_missing() {
    let refused = stderr(&postroom(&["model", "quantize", "models/crumb"], ""));
    assert!(refused.contains("DATA"), "{refused}");
}
