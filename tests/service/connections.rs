//! Very many connections, and probes while the service has all the mail that it can take.

#![expect(unsafe_code, reason = "the limit of file descriptors is a C call")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::running::{Service, TEXT};

/// Lets this process have so many file descriptors; `false`, and a word about it, where it may not.
fn may_open(files: libc::rlim_t) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls read or write one struct that outlives them.
    let raised = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 && {
            limit.rlim_cur = limit.rlim_cur.max(files);
            // The system's own processes may raise the hard limit as well.
            limit.rlim_max = limit.rlim_max.max(files);
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit) == 0
        }
    };
    if !raised {
        eprintln!("skipped: this process may not open {files} files");
    }
    raised
}

#[test]
fn five_thousand_idle_connections_shut_nobody_out() {
    const IDLE: usize = 5000;
    if !may_open(2 * IDLE as libc::rlim_t + 1000) {
        return;
    }
    for most in ["1024", "6000"] {
        let shell = format!("ulimit -n {};", IDLE + 1500);
        // Nobody of them is to leave because it says nothing.
        let patient = ("POSTROOM_SERVER_HEAD_TIMEOUT_MS", "600000");
        let service = Service::start(&shell, &[("POSTROOM_SERVER_MAX_CONNECTIONS", most), patient]);
        let open: Vec<TcpStream> =
            (0..IDLE).map(|_| TcpStream::connect(("127.0.0.1", service.port)).unwrap()).collect();
        assert!(service.get("/livez").unwrap().starts_with("HTTP/1.1 200"), "{most}");
        assert!(service.post("/v1/route", TEXT, "Where is my order?").unwrap().starts_with("HTTP/1.1 200"), "{most}");
        let metrics = service.get("/metrics").unwrap();
        let held = metrics.lines().find_map(|line| line.strip_prefix("postroom_http_connections ")).unwrap();
        let held: f64 = held.parse().unwrap();
        // All that were let in, or as many as may be served at a time.
        assert!(held > 0.9 * most.parse::<f64>().unwrap().min(IDLE as f64), "{most}: {held} connections");
        drop(open);
    }
}

/// Longest that a probe may take. Programs for tests are slow, and so are machines that test.
const PATIENCE: Duration = if cfg!(debug_assertions) { Duration::from_secs(1) } else { Duration::from_millis(100) };

const PROBES: usize = 60;

#[test]
fn sixty_probes_at_once_are_answered_while_the_model_has_all_it_can_do() {
    let service = Service::start("", &[]);
    let mail = "Where is my order? It should have come on Friday, and nobody answers the phone. ".repeat(20);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _ = service.post("/v1/route", TEXT, &mail);
                }
            });
        }
        let waiting = || -> f64 {
            let metrics = service.get("/metrics").unwrap();
            let waiting = "postroom_waiting_mails{lane=\"route\"} ";
            metrics.lines().find_map(|line| line.strip_prefix(waiting)).unwrap().parse().unwrap()
        };
        while waiting() < 4.0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // A machine that tests may stop for a moment, a service that lets probes wait behind mail does so each time.
        let mut slowest = Vec::new();
        for _ in 0..5 {
            slowest.push(slowest_probe(&service));
            if slowest.last().is_some_and(|slowest| *slowest < PATIENCE) {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(slowest.iter().any(|slowest| *slowest < PATIENCE), "{slowest:?}");
    });
}

/// Sixty probes of each kind, all at once, each on an open connection; the longest wait.
fn slowest_probe(service: &Service) -> Duration {
    let barrier = Barrier::new(PROBES);
    std::thread::scope(|scope| {
        let probes: Vec<_> = (0..PROBES)
            .map(|number| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(("127.0.0.1", service.port)).unwrap();
                    let path = ["/livez", "/readyz"][number % 2];
                    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
                    barrier.wait();
                    let start = Instant::now();
                    stream.write_all(request.as_bytes()).unwrap();
                    let mut answer = String::new();
                    stream.read_to_string(&mut answer).unwrap();
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                    start.elapsed()
                })
            })
            .collect();
        probes.into_iter().map(|probe| probe.join().unwrap()).max().unwrap()
    })
}
