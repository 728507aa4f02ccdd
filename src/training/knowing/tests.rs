//! Each part solved on mail whose answer is known, and what is said where there is too little of it.

use super::*;

fn ids() -> Vec<String> {
    ["allergy", "late", "refunds"].map(str::to_owned).into()
}

/// `n` mails of each queue with falling margins, every `wrong_every`-th of them pointing at the next queue.
fn mails(n: usize, wrong_every: usize) -> (Vec<Vec<f32>>, Vec<usize>) {
    let mut logits = Vec::new();
    let mut targets = Vec::new();
    for mail in 0..n {
        for queue in 0..3 {
            let wrong = mail % wrong_every == wrong_every - 1;
            let mut row = vec![0.0; 3];
            row[if wrong { (queue + 1) % 3 } else { queue }] = 6.0 - 5.0 * mail as f32 / n as f32;
            logits.push(row);
            targets.push(queue);
        }
    }
    (logits, targets)
}

fn config() -> KnowingConfig {
    KnowingConfig { max_error_rate: 0.05, ..KnowingConfig::default() }
}

fn with(map: &mut BTreeMap<String, f64>, id: &str, value: f64) {
    map.insert(id.to_owned(), value);
}

fn about<'s>(solved: &'s Solved, what: &str) -> &'s Promise {
    solved.promises.iter().find(|promise| promise.about == what).unwrap()
}

#[test]
fn without_further_settings_only_the_common_threshold_is_solved() {
    let (logits, targets) = mails(100, 1000);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config());
    assert_eq!(solved.calibration, Calibration::new(1.0, solved.calibration.threshold));
    assert!(solved.budget_guaranteed() && solved.routed == 300 && solved.errors == 0, "{solved:?}");
    assert_eq!(solved.solved_on, 300);
    assert_eq!(solved.promises.len(), 1);
}

#[test]
fn few_mails_promise_nothing_and_say_how_many_are_needed() {
    let (logits, targets) = mails(4, 1000);
    let mut config = KnowingConfig { out_of_scope_quantile: 0.02, conformal_alpha: 0.05, ..config() };
    with(&mut config.recall_floor, "allergy", 0.99);
    with(&mut config.queue_max_error_rate, "late", 0.01);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config);
    assert!(solved.promises.iter().all(|promise| !promise.proven), "{:#?}", solved.promises);
    assert!(solved.calibration.out_of_scope.is_none() && solved.calibration.conformal.is_none());
    for (what, number) in [
        ("error budget", "59 sure mails"),
        ("error budget of late", "299 sure mails"),
        ("recall of allergy", "99 mails of the queue"),
        ("out of scope", "49 mails"),
        ("candidate set", "19 held-out mails"),
    ] {
        assert!(about(&solved, what).words.contains(number), "{}", about(&solved, what));
    }
}

#[test]
fn two_percent_of_known_mail_is_out_of_scope_at_most() {
    let (mut logits, targets) = mails(100, 1000);
    logits.iter_mut().enumerate().for_each(|(mail, row)| row.iter_mut().for_each(|z| *z += mail as f32));
    let solved = solve(&logits, &targets, 1.0, &ids(), &KnowingConfig { out_of_scope_quantile: 0.02, ..config() });
    let least = solved.calibration.out_of_scope.unwrap();
    let below = logits.iter().filter(|row| energy(row, 1.0) < least).count();
    // Rank floor(0.02 x 301) = 6: five mails lie below it.
    assert_eq!(below, 5);
    assert!(about(&solved, "out of scope").proven);
}

#[test]
fn a_recall_floor_becomes_a_guard_that_catches_the_missed_mail() {
    let (logits, targets) = mails(100, 10);
    let mut config = config();
    with(&mut config.recall_floor, "allergy", 0.95);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config);
    let guard = solved.calibration.guards["allergy"];
    let caught = logits
        .iter()
        .zip(&targets)
        .filter(|(_, target)| **target == 0)
        .filter(|(row, _)| {
            let judgement =
                solved.calibration.judge(row, Some(0.0), |queue| ["allergy", "late", "refunds"].get(queue).copied());
            judgement.best == 0 || judgement.guarded_by == Some(0)
        })
        .count();
    assert!(caught >= 96 && guard < 0.5, "{caught} {guard}");
    assert!(about(&solved, "recall of allergy").proven);
}

#[test]
fn a_strict_queue_gets_a_stricter_threshold_and_the_rest_keeps_its_own() {
    let (logits, targets) = mails(200, 25);
    let mut config = KnowingConfig { max_error_rate: 0.2, ..config() };
    with(&mut config.queue_max_error_rate, "late", 0.02);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config);
    let (own, common) = (solved.calibration.queue_thresholds["late"], solved.calibration.threshold);
    assert!(own > common, "{own} {common}");
    assert!(solved.budget_guaranteed());
    assert!(about(&solved, "error budget").words.contains("without a budget of their own"));
}

#[test]
fn a_budget_that_its_mails_cannot_prove_is_never_laxer_than_the_common_one() {
    let (logits, targets) = mails(40, 8);
    let mut config = KnowingConfig { max_error_rate: 0.02, ..config() };
    with(&mut config.queue_max_error_rate, "late", 0.5);
    with(&mut config.queue_max_error_rate, "refunds", 0.000_1);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config);
    assert!(solved.calibration.queue_thresholds["refunds"] >= solved.calibration.threshold);
    assert!(!about(&solved, "error budget of refunds").proven);
}

/// What the router lets go to a queue, and how much of it is wrong.
fn gone(solved: &Solved, logits: &[Vec<f32>], targets: &[usize], queue: usize) -> (usize, usize) {
    let ids = ids();
    let judged =
        logits.iter().map(|row| solved.calibration.judge(row, None, |queue| ids.get(queue).map(String::as_str)));
    let alone: Vec<bool> = judged
        .zip(targets)
        .filter(|(judgement, _)| judgement.routed_alone() && judgement.best == queue)
        .map(|(judgement, target)| judgement.best == *target)
        .collect();
    (alone.len(), alone.iter().filter(|&&correct| !correct).count())
}

#[test]
fn the_promise_of_a_queue_counts_the_mail_that_its_stored_threshold_lets_go() {
    // Two mails of `late` hold its budget and cannot prove it; one of them is below the common threshold, which is stored.
    let (mut logits, mut targets) = (Vec::new(), Vec::new());
    for mail in 0..100 {
        let margin = if mail < 80 { 6.0 } else { 2.0 };
        let queue = if mail % 2 == 0 { 0 } else { 2 };
        let mut row = vec![0.0; 3];
        row[queue] = margin;
        logits.push(row);
        targets.push(if mail < 80 { queue } else { 1 });
    }
    for margin in [7.0, 2.0] {
        logits.push(vec![0.0, margin, 0.0]);
        targets.push(1);
    }
    let mut config = config();
    with(&mut config.queue_max_error_rate, "late", 0.1);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config);
    assert!(solved.calibration.queue_thresholds["late"] >= solved.calibration.threshold);
    assert_eq!(gone(&solved, &logits, &targets, 1), (1, 0));
    let promise = about(&solved, "error budget of late");
    assert!(!promise.proven && promise.words.starts_with("0 of 1 held-out mails"), "{promise}");
}

#[test]
fn nothing_is_proven_of_mail_that_was_not_there() {
    // No mail is predicted as `refunds`, the only queue without a budget of its own.
    let (logits, targets) = mails(200, 1000);
    let (logits, targets): (Vec<Vec<f32>>, Vec<usize>) =
        logits.into_iter().zip(targets).filter(|(_, target)| *target != 2).unzip();
    let mut config = config();
    with(&mut config.queue_max_error_rate, "allergy", 0.05);
    with(&mut config.queue_max_error_rate, "late", 0.05);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config);
    let promise = about(&solved, "error budget");
    assert!(promise.words.starts_with("no held-out mail was predicted as a queue without a budget"), "{promise}");
    assert!(promise.words.contains("59 sure mails") && !solved.budget_guaranteed() && solved.solved_on == 0);
    assert!(solved.promises[0].is_common_budget() && solved.calibration.threshold < 1.0);
    assert!(about(&solved, "error budget of late").proven);

    // Where every queue has its own there is nothing common to promise.
    with(&mut config.queue_max_error_rate, "refunds", 0.05);
    let solved = solve(&logits, &targets, 1.0, &ids(), &config);
    assert!(!solved.promises.iter().any(Promise::is_common_budget) && !solved.budget_guaranteed(), "{solved:?}");
}

#[test]
fn the_set_holds_the_right_queue_of_mail_handed_to_a_person() {
    let (logits, targets) = mails(200, 4);
    let solved = solve(&logits, &targets, 1.0, &ids(), &KnowingConfig { conformal_alpha: 0.1, ..config() });
    let ids = ids();
    let (mut handed, mut held) = (0, 0);
    for (row, target) in logits.iter().zip(&targets) {
        let judgement = solved.calibration.judge(row, None, |queue| ids.get(queue).map(String::as_str));
        if !judgement.routed_alone() {
            handed += 1;
            held += usize::from(solved.calibration.candidate_set(&judgement).unwrap().contains(target));
        }
    }
    assert!(handed > 100 && held as f64 >= 0.9 * f64::from(handed), "{held} of {handed}");
}

#[test]
fn settings_that_name_no_queue_or_no_share_are_refused() {
    let mut unknown = config();
    with(&mut unknown.recall_floor, "alergy", 0.99);
    let error = unknown.check(&ids()).unwrap_err();
    assert!(error.to_string().contains("`alergy`") && error.to_string().contains("allergy, late"), "{error}");
    let mut share = config();
    with(&mut share.queue_max_error_rate, "late", 1.0);
    assert!(share.check(&ids()).unwrap_err().to_string().contains("queue_max_error_rate.late"));
    assert!(KnowingConfig { max_error_rate: f64::NAN, ..config() }.check(&ids()).is_err());
    assert!(config().check(&ids()).is_ok());
}

#[test]
fn no_mail_and_broken_logits_do_not_panic() {
    let mut config = KnowingConfig { out_of_scope_quantile: 0.02, conformal_alpha: 0.05, ..config() };
    with(&mut config.recall_floor, "allergy", 0.99);
    assert_eq!(solve(&[], &[], 1.0, &ids(), &config).routed, 0);
    let broken = vec![vec![f32::NAN; 3]; 60];
    let solved = solve(&broken, &[0; 60], 1.0, &ids(), &config);
    assert_eq!(solved.routed, 0);
}
