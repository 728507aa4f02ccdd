//! The wall clock jumps, as it does when a machine wakes up or its time is set: years ahead, years back.

use std::path::Path;
use std::process::Command;

use postroom::server::keys::NewKey;

use crate::running::{Service, TEXT, name};
use crate::tiny;

/// Stands before the C library's clock and adds as many seconds to the wall clock as a file says.
const SHIFTED: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int done = syscall(SYS_clock_gettime, clock, time);
    if (done == 0 && clock == CLOCK_REALTIME) {
        char text[32] = {0};
        int file = open(getenv("SHIFT"), O_RDONLY);
        if (file >= 0 && read(file, text, 31) > 0) time->tv_sec += atoll(text);
        if (file >= 0) close(file);
    }
    return done;
}
"#;

/// Makes the library; `false`, and a word about it, where there is no C compiler.
fn made(library: &Path) -> bool {
    let source = library.with_extension("c");
    std::fs::write(&source, SHIFTED).unwrap();
    let done = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args([library, &source]).output();
    let made = done.is_ok_and(|done| done.status.success());
    if !made {
        eprintln!("skipped: there is no C compiler here");
    }
    made
}

#[test]
fn a_clock_that_jumps_stops_nothing() {
    let folder = tiny::folder();
    let (library, shift, keys) =
        (folder.path().join("shifted.so"), folder.path().join("shift"), folder.path().join("keys.txt"));
    if !made(&library) {
        return;
    }
    tiny::write(folder.path(), "shop", 0);
    let shop = folder.path().join("shop");
    let key = |name: &str| NewKey::make(name, "route,admin".parse().unwrap()).unwrap();
    // Each whole at once: whoever reads half of it would read something else.
    let put = |file: &Path, text: &str| {
        let aside = folder.path().join("aside");
        std::fs::write(&aside, text).unwrap();
        std::fs::rename(&aside, file).unwrap();
    };
    let mut current = key("first");
    put(&keys, &current.line);
    put(&shift, "0");
    let settings = [
        ("LD_PRELOAD", name(&library)),
        ("SHIFT", name(&shift)),
        ("POSTROOM_MODEL_ROUTER", name(&shop)),
        ("POSTROOM_SERVER_KEYS_FILE", name(&keys)),
        ("POSTROOM_ROUTERS_POLL_MS", "50"),
    ];
    let service = Service::start("", &settings);
    let year = 31_556_952_i64;
    // Linux takes no time before 1970 nor after 2232.
    for (round, years) in [30, -30, 200, -56, 0].into_iter().enumerate() {
        put(&shift, &(years * year).to_string());
        let told = service.log.lock().unwrap().len();
        let authorization = format!("authorization: Bearer {}\r\n", current.key.as_str());
        let once = format!("{TEXT}{authorization}idempotency-key: ticket-{round}\r\n");
        for replayed in [false, true] {
            let answer = service.post("/v1/route", &once, "Where is my order?").unwrap().to_ascii_lowercase();
            assert!(answer.starts_with("http/1.1 200"), "{years} years: {answer}");
            assert_eq!(answer.contains("idempotency-replayed: true"), replayed, "{years} years: {answer}");
        }
        assert!(service.get("/readyz").unwrap().starts_with("HTTP/1.1 200"), "{years} years");
        // Both are timed by the clock that cannot jump: a look at the files comes though the wall clock went back.
        let next = key(&format!("key-{round}"));
        put(&keys, &next.line);
        current = next;
        let version = tiny::write(folder.path(), "shop", (round + 1) % 3);
        service.wait_for_after(told, &format!("\"to\":\"{version}\""));
        service.wait_for_after(told, "read again");
        let authorization = format!("{TEXT}authorization: Bearer {}\r\n", current.key.as_str());
        let reloaded = service.post("/admin/routers/shop/reload", &authorization, "").unwrap();
        assert!(reloaded.contains("unchanged"), "{years} years: {reloaded}");
    }
    service.signal("-TERM");
    service.wait_for("\"stopped\"");
    assert!(!service.log.lock().unwrap().contains("panicked"));
}
