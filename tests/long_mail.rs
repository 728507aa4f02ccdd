//! Long mail is read to its end, and a mail's logits do not depend on its neighbours.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test program")]

mod common;

use postroom::collate::{Pooling, WindowedEmail, pack};
use postroom::model::KeepMaps;
use postroom::tokenizer::WindowConfig;

const DECISIVE: &str = "I want my money back for the broken cake.";

/// About `tokens` tokens of talk about nothing.
fn filler(tokens: usize) -> String {
    "We walked along the river and talked about the weather. ".repeat(tokens / 11 + 1)
}

fn windowed(text: &str) -> WindowedEmail {
    let encoded = common::encode(text);
    WindowedEmail::new(&encoded, &common::encoder_dir().tokenizer, &WindowConfig::default(), Pooling::Mean)
}

fn pooled(mail: &WindowedEmail) -> Vec<f32> {
    let pooled = common::router().classifier.encoder().pool(&pack([mail]), &KeepMaps::None).unwrap();
    pooled.vectors.to_vec2::<f32>().unwrap().remove(0)
}

#[test]
fn the_decisive_sentence_in_the_last_window_reaches_the_head() {
    let without = filler(3000);
    let with = format!("{without}{DECISIVE}");
    let (plain, decisive) = (windowed(&without), windowed(&with));
    let encoded = common::encode(&with);
    assert!(encoded.tokens.len() > 3000 && !encoded.truncated());
    assert!(decisive.windows.len() > 10);
    let last = decisive.windows.last().unwrap();
    let first_decisive = common::encode(&without).tokens.len();
    assert!(
        last.contains(&first_decisive),
        "the sentence must start in the last window for this test to mean anything"
    );

    // The last window's vector moves towards the sentence; the mail's pooled vector moves with it.
    let change: f32 = pooled(&plain).iter().zip(pooled(&decisive)).map(|(a, b)| (a - b) * (a - b)).sum::<f32>().sqrt();
    assert!(change > 1e-3, "pooled features moved by {change} only");
}

#[test]
fn a_mail_over_the_ceiling_is_cut_and_says_so() {
    let text = filler(3000);
    let encoded = common::encoder_dir().tokenizer.encode(&common::body(&text), 100);
    assert_eq!(encoded.tokens.len(), 100);
    assert!(encoded.truncated());
    assert_eq!(encoded.tokens_total, common::encode(&text).tokens.len());
}

#[test]
fn a_mail_has_the_same_logits_alone_in_any_batch_and_in_any_order() {
    let router = common::router();
    let texts =
        ["Refund please.".to_owned(), filler(600), "Is the brownie safe for my nut allergy?".to_owned(), filler(40)];
    let mails: Vec<WindowedEmail> = texts.iter().map(|text| windowed(text)).collect();
    let logits = |batch: &[&WindowedEmail]| {
        router.classifier.forward(&pack(batch.iter().copied()), &KeepMaps::None).unwrap().logits
    };
    let alone: Vec<Vec<f32>> = mails.iter().map(|mail| logits(&[mail]).remove(0)).collect();
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 2, 0, 1]] {
        let batch: Vec<&WindowedEmail> = order.iter().map(|&mail| &mails[mail]).collect();
        for (row, mail) in logits(&batch).iter().zip(order) {
            for (together, by_itself) in row.iter().zip(&alone[mail]) {
                assert!((together - by_itself).abs() < 1e-4, "{together} {by_itself}");
            }
        }
    }
}

#[test]
fn maps_do_not_change_the_logits() {
    let router = common::router();
    let mail = windowed("My eggless cake arrived cold. Can I get a refund for it?");
    let forward = |keep| router.classifier.forward(&pack([&mail]), keep).unwrap();
    let (fast, explained) = (forward(&KeepMaps::None), forward(&KeepMaps::Layers((0..6).collect())));
    assert!(fast.maps.is_empty() && explained.maps[0].layers.len() == 6);
    for (fast, explained) in fast.logits[0].iter().zip(&explained.logits[0]) {
        assert!((fast - explained).abs() < 1e-4, "{fast} {explained}");
    }
}

#[test]
fn every_word_finds_its_slice_in_the_mail_as_posted() {
    let text = "Caf\u{e9} \u{1f382}\u{200d}\u{1f468} cake\u{301} na\u{ef}ve\r\nשלום עולם  e\u{301}clair \u{4e2d}\u{6587} x\u{327}y.";
    let email = common::body(text);
    let encoded = common::encoder_dir().tokenizer.encode(&email, 8192);
    assert_eq!(email.body.posted(), text);
    let mut words = Vec::new();
    for token in &encoded.tokens {
        let posted = email.body.posted_range(token.range.clone());
        assert!(text.is_char_boundary(posted.start) && text.is_char_boundary(posted.end));
        match words.last_mut() {
            Some((word, start, end)) if *word == token.word => {
                assert!(*start <= posted.start);
                *end = posted.end.max(*end);
            }
            _ => words.push((token.word, posted.start, posted.end)),
        }
    }
    let slices: Vec<&str> = words.iter().map(|&(_, start, end)| &text[start..end]).collect();
    for expected in [
        "Caf\u{e9}",
        "cake\u{301}",
        "na\u{ef}ve",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "e\u{301}clair",
        "\u{4e2d}",
        "x\u{327}y",
    ] {
        assert!(slices.contains(&expected), "{expected} is not among {slices:?}");
    }
}
