//! Files of a router that runs are replaced, cut off, made unreadable or taken away: told by name, and the router goes on.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use postroom::routing::{Mail, MailContent, MailFields, ReloadError, Reloaded, Routers, RoutersConfig};
use serde_json::json;

use crate::routers::{open, serve};
use crate::tiny::{self, QUEUES};

/// What becomes of a file, and how that is done.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 6] = [
    ("cut off", |file| {
        let whole = std::fs::read(file).unwrap();
        std::fs::write(file, &whole[..whole.len() / 2]).unwrap();
    }),
    ("empty", |file| std::fs::write(file, "").unwrap()),
    ("one byte changed", |file| {
        let mut bytes = std::fs::read(file).unwrap();
        // In what `router.json` says of the head, in the middle of a file of numbers.
        let sum = bytes.windows(19).position(|window| window == b"\"head.safetensors\":").map(|at| at + 25);
        let at = sum.unwrap_or(bytes.len() / 2);
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        std::fs::write(file, bytes).unwrap();
    }),
    ("replaced", |file| std::fs::write(file, "{\"another\": \"file\"}").unwrap()),
    // Whoever runs as root may read whatever its permissions say; a link to itself nobody can.
    ("unreadable", |file| {
        std::fs::remove_file(file).unwrap();
        std::os::unix::fs::symlink(file, file).unwrap();
    }),
    ("gone", |file| std::fs::remove_file(file).unwrap()),
];

/// Writes another time down than any before: two changes within a tick of the system's clock would look like none.
fn touch(file: &Path) {
    static TIMES: AtomicU64 = AtomicU64::new(1_000_000_000);
    if let Ok(open) = std::fs::File::options().write(true).open(file) {
        let time = UNIX_EPOCH + Duration::from_secs(TIMES.fetch_add(60, Ordering::Relaxed));
        open.set_modified(time).unwrap();
    }
}

/// The version that answers and the queue that it chooses.
async fn answer(routers: &Routers) -> (String, Option<String>) {
    let fields = MailFields { text: Some("Where is my order? It is late.".to_owned()), ..MailFields::default() };
    let mail = Mail { id: None, content: MailContent::Fields(fields) };
    let decision = routers.default_slot().live().unwrap().route(mail).await.unwrap();
    (decision.model.version, decision.queue.map(|queue| queue.id))
}

/// A file and what it held, to be put back.
struct Whole {
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Whole {
    fn of(file: PathBuf) -> Self {
        Self { bytes: std::fs::read(&file).unwrap(), file }
    }

    fn put_back(&self) {
        let _ = std::fs::remove_file(&self.file);
        std::fs::create_dir_all(self.file.parent().unwrap()).unwrap();
        std::fs::write(&self.file, &self.bytes).unwrap();
        touch(&self.file);
    }

    fn harm(&self, damage: fn(&Path)) {
        damage(&self.file);
        touch(&self.file);
    }
}

fn refused(routers: &Routers, name: &str, what: &str) {
    match routers.reload("shop") {
        Err(ReloadError::Refused { reason, in_force, .. }) => {
            assert!(reason.contains(name) && in_force.is_some(), "{name} {what}: {reason}");
        }
        other => panic!("{name} {what}: {other:?}"),
    }
}

#[tokio::test]
async fn whatever_becomes_of_a_file_is_told_by_name_and_the_router_goes_on() {
    let folder = tiny::folder();
    let version = tiny::write(folder.path(), "shop", 0);
    let routers = open(folder.path(), "shop", &RoutersConfig::default());
    let expected = (version.clone(), Some(QUEUES[0].to_owned()));
    let state = || routers.get("shop").unwrap().state();
    let mut refusals = 0;
    for name in [
        "shop/router.json",
        "shop/head.safetensors",
        "shop/probes.json",
        "tiny/model.safetensors",
        "tiny/tokenizer.json",
        "tiny/config.json",
    ] {
        let whole = Whole::of(folder.path().join(name));
        for (what, damage) in DAMAGES {
            let (short, under_checksum) = (name.split('/').next_back().unwrap(), name != "shop/probes.json");
            // Answers that were not recorded cannot be compared; a digit of one that is within the tolerance is one.
            if !under_checksum && matches!(what, "gone" | "one byte changed") {
                continue;
            }
            whole.harm(damage);
            let told = match (short, what) {
                // Without it there is no router, and its folder is named.
                ("router.json", "gone") => "holds no router",
                // A digit of the head's checksum.
                ("router.json", "one byte changed") => "head.safetensors",
                _ => short,
            };
            refused(&routers, told, what);
            refusals += 1;
            assert_eq!(answer(&routers).await, expected, "{name} {what}");
            whole.put_back();
            assert_eq!(routers.reload("shop").unwrap(), Reloaded::Unchanged { version: version.clone() });
            assert_eq!(state().refused, None, "{name} whole again");

            // Nobody asks: the watch sees it by itself, once.
            whole.harm(damage);
            for _ in 0..4 {
                routers.look();
            }
            refusals += 1;
            let reason = state().refused.unwrap_or_else(|| panic!("{name} {what}: not seen")).reason;
            assert!(reason.contains(told), "{name} {what}: {reason}");
            assert_eq!((state().refusals, answer(&routers).await), (refusals, expected.clone()), "{name} {what}");
            whole.put_back();
            for _ in 0..4 {
                routers.look();
            }
            assert_eq!((state().refused, state().exchanges), (None, 1), "{name} whole again");
        }
    }
}

#[tokio::test]
async fn folders_that_go_are_told_and_the_router_goes_on() {
    let folder = tiny::folder();
    let version = tiny::write(folder.path(), "shop", 0);
    let routers = open(folder.path(), "shop", &RoutersConfig::default());
    let state = || routers.get("shop").unwrap().state();
    for (name, told) in [("shop", "there is no router at"), ("tiny", "the router's encoder `tiny` is in none of")] {
        let (there, away) = (folder.path().join(name), folder.path().join("away"));
        std::fs::rename(&there, &away).unwrap();
        refused(&routers, told, "gone");
        for _ in 0..4 {
            routers.look();
        }
        assert!(state().refused.unwrap().reason.contains(told), "{name}");
        assert_eq!(answer(&routers).await.0, version);
        std::fs::rename(&away, &there).unwrap();
        for _ in 0..4 {
            routers.look();
        }
        assert_eq!((state().refused, state().exchanges), (None, 1), "{name}");
    }
    assert_eq!(routers.reload("shop").unwrap(), Reloaded::Unchanged { version });
}

/// Whoever asks for a reload after a copy that broke off must hear of it, though `router.json` is the one in force.
#[tokio::test]
async fn a_reload_says_which_file_of_the_router_in_force_is_damaged() {
    let folder = tiny::folder();
    let version = tiny::write(folder.path(), "shop", 0);
    let server = serve(open(folder.path(), "shop", &RoutersConfig::default())).await;
    let unchanged = json!({"router": "shop", "outcome": "unchanged", "version": version});
    assert_eq!(server.reload("shop").await.json(), unchanged);
    // Written to in place, as no program should.
    let head = folder.path().join("shop/head.safetensors");
    std::fs::OpenOptions::new().append(true).open(&head).unwrap().write_all(b"\0").unwrap();
    let problem = server.reload("shop").await.problem(422, "router_refused");
    assert!(problem["detail"].as_str().unwrap().contains("head.safetensors has sha256"), "{problem}");
    assert!(problem["remedy"].as_str().unwrap().contains(&format!("Version {version} goes on")), "{problem}");
    server.answers_good_mail().await;
    let states = server.states().await;
    assert!(states["routers"][0]["refused"]["reason"].as_str().unwrap().contains("head.safetensors"), "{states}");
}

/// Mail is routed without the files; what needs gradients reads them once more when it is first asked.
#[tokio::test]
async fn what_needs_files_that_are_gone_says_so_until_they_are_back() {
    let folder = tiny::folder();
    tiny::write(folder.path(), "shop", 0);
    let server = serve(open(folder.path(), "shop", &RoutersConfig::default())).await;
    let (there, away) = (folder.path().join("tiny"), folder.path().join("away"));
    std::fs::rename(&there, &away).unwrap();
    let mail = json!({"text": "Where is my order? It is late."});
    let gradients =
        ["/v1/explain?method=rollout", "/v1/heads", "/v1/attention?reduce=rollout", "/v1/attention?weight=norm"];
    for path in gradients {
        server.post_json(path, mail.clone()).await.problem(503, "gradients_unavailable");
    }
    for path in ["/v1/route", "/v1/explain", "/v1/attention"] {
        let reply = server.post_json(path, mail.clone()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
    std::fs::rename(&away, &there).unwrap();
    for path in gradients {
        let reply = server.post_json(path, mail.clone()).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
}
