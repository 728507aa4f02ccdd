//! A decision for each reason.

use super::*;
use crate::artifact::{Calibration, LogitGroups};
use crate::collate::Pooling;
use crate::email::{CleanOptions, Fields, Posted, clean};
use crate::model::EncoderConfig;
use crate::queues::{Queue, QueueSet};
use crate::tokenizer::{Field, Token, WindowConfig};

const TEXT: &str = "Where is my order? It should have come on Friday.";

fn router(calibration: Calibration) -> RouterInfo {
    let queues = ["allergy", "late", "refunds"].map(|id| Queue::new(id, id));
    let sizes = serde_json::json!({
        "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16, "vocab_size": 10,
        "max_position_embeddings": 16, "model_type": "bert",
    });
    RouterInfo {
        name: "test".into(),
        version: "1".into(),
        encoder: "test".into(),
        queues: QueueSet::new(queues.into()).unwrap(),
        groups: LogitGroups::one_each(3),
        aliases: std::collections::BTreeMap::new(),
        languages: vec!["en".into()],
        windows: WindowConfig::default(),
        pooling: Pooling::Mean,
        attention_pooling: false,
        quantized: false,
        calibration,
        encoder_config: EncoderConfig::from_json(&sizes.to_string()).unwrap(),
        unknown_tensors: Vec::new(),
    }
}

fn mail(text: &str) -> CleanEmail {
    clean(&Posted::Fields(Fields { text: Some(text), ..Fields::default() }), &CleanOptions::default())
}

fn encoded(tokens_total: usize) -> EncodedEmail {
    let token = Token { id: 1, field: Field::Body, range: 0..1, word: 0, unknown: false };
    EncodedEmail { tokens: vec![token], tokens_total }
}

fn decided(calibration: Calibration, logits: [f32; 3]) -> Verdict {
    decide(&router(calibration), &PolicyConfig::default(), &mail(TEXT), &encoded(1), Some(&logits))
}

fn plain() -> Calibration {
    Calibration::new(1.0, 0.8)
}

fn reasons_of_text(text: &str) -> Vec<Reason> {
    let logits: &[f32] = &[0.0, 5.0, 0.0];
    decide(&router(plain()), &PolicyConfig::default(), &mail(text), &encoded(1), Some(logits)).reasons
}

#[test]
fn a_sure_mail_is_routed_without_a_reason_and_without_a_set() {
    let verdict = decided(Calibration { conformal: Some(0.99), ..plain() }, [0.0, 5.0, 0.0]);
    assert_eq!(verdict.outcome, Outcome::Route);
    assert_eq!(verdict.queue.unwrap().id, "late");
    assert!(verdict.reasons.is_empty() && verdict.candidate_set.is_none());
}

#[test]
fn an_unsure_mail_goes_to_a_person_with_the_queues_that_remain() {
    let verdict = decided(Calibration { conformal: Some(0.8), ..plain() }, [1.0, 1.5, -3.0]);
    assert_eq!(verdict.outcome, Outcome::NeedsHuman);
    assert_eq!(verdict.reasons, [Reason::BelowThreshold, Reason::SeveralIntents]);
    assert_eq!(verdict.candidate_set.unwrap(), ["late", "allergy"]);
    assert_eq!(verdict.candidates.len(), 3);
}

#[test]
fn a_router_that_knows_no_set_shows_none() {
    let verdict = decided(plain(), [1.0, 1.5, -3.0]);
    assert_eq!((verdict.reasons, verdict.candidate_set), (vec![Reason::BelowThreshold], None));
}

#[test]
fn the_set_is_shown_only_of_mail_like_that_which_it_was_solved_on() {
    let router = router(Calibration { conformal: Some(0.9), ..plain() });
    let set = |threshold, text, logits: [f32; 3]| {
        let config = PolicyConfig { threshold, ..PolicyConfig::default() };
        let verdict = decide(&router, &config, &mail(text), &encoded(1), Some(&logits));
        assert_eq!(verdict.outcome, Outcome::NeedsHuman, "{:?}", verdict.reasons);
        verdict.candidate_set.map_or(0, |set| set.len())
    };
    let (sure, unsure) = ([0.0, 5.0, 0.0], [1.0, 1.5, -3.0]);
    assert_eq!(set(None, TEXT, unsure), 2);
    // The numbers would have let these go: they are stopped for what the mail is.
    assert_eq!(set(None, "Refund!", sure), 0);
    let german = "Wo bleibt meine Bestellung? Sie sollte schon am Freitag kommen, und niemand hat mir geschrieben.";
    assert_eq!((set(None, german, sure), set(None, german, unsure)), (0, 0));
    // Short mail that the numbers hand over was among what the set was solved on.
    assert_eq!(set(None, "Refund!", unsure), 2);
    // A laxer threshold than the router's own, 0.8, leaves only the hardest of that mail; a stricter one adds surer mail.
    assert_eq!((set(Some(0.7), TEXT, unsure), set(Some(0.9), TEXT, unsure)), (0, 2));
    assert_eq!(set(Some(0.999), TEXT, sure), 1);
}

#[test]
fn a_mail_like_nothing_known_goes_to_a_person_however_sure() {
    let verdict = decided(Calibration { out_of_scope: Some(4.0), ..plain() }, [-4.0, 3.0, -4.0]);
    assert_eq!((verdict.outcome, verdict.reasons), (Outcome::NeedsHuman, vec![Reason::OutOfScope]));
}

#[test]
fn a_safety_queue_stops_what_would_be_routed_elsewhere() {
    let guarded = || Calibration { guards: [("allergy".to_owned(), 0.05)].into(), ..plain() };
    let verdict = decided(guarded(), [2.0, 4.5, 0.0]);
    assert_eq!((verdict.outcome, verdict.reasons), (Outcome::NeedsHuman, vec![Reason::SafetyQueue]));
    assert_eq!(decided(guarded(), [4.5, 2.0, 0.0]).queue.unwrap().id, "allergy");
}

#[test]
fn the_threshold_of_the_settings_wins_over_the_router_s_but_not_over_guard_and_scope() {
    let strict = Calibration { queue_thresholds: [("late".to_owned(), 1.0)].into(), ..plain() };
    let config = PolicyConfig { threshold: Some(0.3), ..PolicyConfig::default() };
    let decide = |calibration| decide(&router(calibration), &config, &mail(TEXT), &encoded(1), Some(&[0.0, 1.0, 0.0]));
    assert_eq!(decide(strict).outcome, Outcome::Route);
    let scoped = Calibration { out_of_scope: Some(9.0), ..plain() };
    assert_eq!(decide(scoped).reasons, [Reason::OutOfScope]);
}

#[test]
fn a_disabled_queue_is_neither_the_answer_nor_in_the_set() {
    let mut router = router(Calibration { conformal: Some(0.9), ..plain() });
    let queues = router.queues.iter().cloned().map(|queue| Queue { enabled: queue.id != "late", ..queue });
    router.queues = QueueSet::new(queues.collect()).unwrap();
    let logits: &[f32] = &[3.0, 4.0, 0.0];
    let verdict = decide(&router, &PolicyConfig::default(), &mail(TEXT), &encoded(1), Some(logits));
    assert_eq!(verdict.outcome, Outcome::NeedsHuman);
    assert!(verdict.reasons.contains(&Reason::QueueDisabled));
    // One queue that may be shown is not several.
    assert!(!verdict.reasons.contains(&Reason::SeveralIntents), "{:?}", verdict.reasons);
    assert_eq!(verdict.candidate_set.unwrap(), ["allergy"]);
    assert!(verdict.candidates.iter().all(|candidate| candidate.queue != "late"));
    // Where no other queue is possible there is no set, rather than an empty one.
    router.calibration.conformal = Some(0.1);
    let verdict = decide(&router, &PolicyConfig::default(), &mail(TEXT), &encoded(1), Some(logits));
    assert_eq!((verdict.outcome, verdict.candidate_set), (Outcome::NeedsHuman, None));
}

#[test]
fn a_queue_that_is_only_suggested_is_a_candidate_and_never_the_answer() {
    let mut router = router(plain());
    let queues = router.queues.iter().cloned().map(|queue| Queue { suggest_only: queue.id == "late", ..queue });
    router.queues = QueueSet::new(queues.collect()).unwrap();
    let logits: &[f32] = &[0.0, 9.0, 0.0];
    let verdict = decide(&router, &PolicyConfig::default(), &mail(TEXT), &encoded(1), Some(logits));
    assert_eq!((verdict.outcome, verdict.queue), (Outcome::NeedsHuman, None));
    assert_eq!(verdict.reasons, [Reason::SuggestOnly]);
    assert_eq!(verdict.candidates[0].queue, "late");
}

#[test]
fn what_the_mail_is_gives_reasons_too() {
    assert_eq!(reasons_of_text("Refund!"), [Reason::TooShort]);
    assert_eq!(reasons_of_text("  "), [Reason::EmptyBody]);
    // Scripts that put no blanks between words: Japanese, Chinese, Thai.
    for text in ["ケーキがまだ届きません。返金していただけますか。", "蛋糕还没有送到，可以退款吗？", "เค้กยังไม่มาถึง"]
    {
        assert!(!reasons_of_text(text).contains(&Reason::TooShort), "{text}");
    }
    let german = "Wo bleibt meine Bestellung? Sie sollte schon am Freitag kommen, und niemand hat mir geschrieben.";
    assert_eq!(reasons_of_text(german), [Reason::UnsupportedLanguage]);
    let long = decide(&router(plain()), &PolicyConfig::default(), &mail(TEXT), &encoded(9), Some(&[0.0, 5.0, 0.0]));
    assert_eq!((long.outcome, long.reasons), (Outcome::Route, vec![Reason::Truncated]));
}

#[test]
fn automatic_mail_is_for_no_queue_unless_the_settings_say_so() {
    let raw = b"Auto-Submitted: auto-replied\r\nSubject: Away\r\n\r\nI am back on Monday and will read it then.\r\n";
    let email = clean(&Posted::Mime(raw), &CleanOptions::default());
    let decide = |config| decide(&router(plain()), &config, &email, &encoded(1), Some(&[0.0, 5.0, 0.0]));
    let verdict = decide(PolicyConfig::default());
    assert_eq!((verdict.outcome, verdict.reasons), (Outcome::NotForAQueue, vec![Reason::AutoReply]));
    let config = PolicyConfig { automatic_mail: AutomaticMail::Route, ..PolicyConfig::default() };
    assert_eq!(decide(config).outcome, Outcome::Route);
}

#[test]
fn without_logits_a_person_decides() {
    let verdict = decide(&router(plain()), &PolicyConfig::default(), &mail(""), &encoded(1), None);
    assert_eq!((verdict.outcome, verdict.confidence), (Outcome::NeedsHuman, None));
}
