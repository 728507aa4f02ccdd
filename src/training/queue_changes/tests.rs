//! Edits of a small router without files or network.

use std::collections::BTreeMap;

use super::*;
use crate::artifact::{
    Calibration, EncoderReference, Figures, HeadTensors, LogitGroups, Manifest, Memory, Provenance, ROUTER_SCHEMA,
    Remembered, RouterFiles,
};
use crate::collate::Pooling;
use crate::lexical::{Gate, Lexical, Negation, Vocabulary};
use crate::tokenizer::WindowConfig;

const IDS: [&str; 4] = ["a", "b", "c", "d"];

/// Four queues whose numbers tell where they came from.
fn router() -> StoredRouter {
    let mail = |queue| Remembered { queue, pooled: vec![1.0, 0.0], logits: vec![0.0, 1.0, 2.0, 3.0] };
    StoredRouter {
        manifest: Manifest {
            schema: ROUTER_SCHEMA.to_owned(),
            name: "test".to_owned(),
            version: String::new(),
            encoder: EncoderReference { name: "e".to_owned(), sha256: BTreeMap::new() },
            files: RouterFiles::default(),
            queues: IDS.map(|id| Queue::new(id, id)).into(),
            members: Vec::new(),
            aliases: BTreeMap::new(),
            languages: Vec::new(),
            windows: WindowConfig::default(),
            pooling: Pooling::Mean,
            quantize: None,
            calibration: Calibration::new(1.0, 0.8),
            provenance: Provenance::default(),
            figures: Figures::default(),
        },
        groups: LogitGroups::one_each(4),
        head: HeadTensors {
            d_model: 2,
            query: Vec::new(),
            weight: vec![0.0, 0.1, 1.0, 1.1, 2.0, 2.1, 3.0, 3.1],
            bias: vec![0.0, 1.0, 2.0, 3.0],
        },
        lexical: Some(Lexical {
            vocabulary: Vocabulary::new(vec![7], vec![1.0], Negation::default()),
            weight: vec![0.0, 1.0, 2.0, 3.0],
            bias: vec![0.0; 4],
            gate: Gate::default(),
        }),
        change: None,
        memory: Some(Memory { mails: (0..4).map(mail).collect() }),
        card: "# R\n".to_owned(),
    }
}

fn remembered(router: &StoredRouter) -> Vec<usize> {
    router.memory.iter().flat_map(|memory| &memory.mails).map(|mail| mail.queue).collect()
}

#[test]
fn a_merge_keeps_all_tensors_and_moves_ids_and_memory() {
    let mut router = router();
    let head = router.head.clone();
    merge(&mut router, &["a".to_owned(), "d".to_owned()], "c").unwrap();
    assert_eq!(super::ids(&router), ["b", "c"]);
    assert_eq!(router.groups.clone().into_members(), [vec![1], vec![0, 2, 3]]);
    assert_eq!((router.head.clone(), remembered(&router)), (head, vec![1, 0, 1, 1]));
    merge(&mut router, &["b".to_owned()], "c").unwrap_err();
    assert_eq!(router.manifest.aliases.keys().collect::<Vec<_>>(), ["a", "d"]);
}

#[test]
fn an_alias_follows_its_queue_and_goes_with_it() {
    let mut router = router();
    merge(&mut router, &["a".to_owned()], "b").unwrap();
    merge(&mut router, &["b".to_owned()], "c").unwrap();
    assert!(router.manifest.aliases.values().all(|queue| queue == "c") && router.manifest.aliases.len() == 2);
    let mut more = router.clone();
    more.manifest.queues.push(Queue::new("e", "e"));
    more.groups = more.groups.with_one_more();
    remove(&mut more, "c").unwrap();
    assert!(more.manifest.aliases.is_empty());
    assert_eq!((more.groups.n_logits(), &more.head.bias[..]), (2, &[3.0][..]));
}

#[test]
fn the_strictest_threshold_and_the_most_watchful_guard_hold_for_the_whole() {
    let mut router = router();
    router.manifest.calibration.queue_thresholds = [("a".to_owned(), 0.7), ("c".to_owned(), 0.95)].into();
    router.manifest.calibration.guards = [("a".to_owned(), 0.02), ("b".to_owned(), 0.01)].into();
    merge(&mut router, &["a".to_owned()], "b").unwrap();
    let calibration = &router.manifest.calibration;
    // `b` had the common threshold, 0.8.
    assert_eq!(calibration.queue_thresholds, [("b".to_owned(), 0.8), ("c".to_owned(), 0.95)].into());
    assert_eq!(calibration.guards, [("b".to_owned(), 0.01)].into());
}

#[test]
fn a_removed_queue_takes_its_rows_and_its_memory_along() {
    let mut router = router();
    remove(&mut router, "b").unwrap();
    assert_eq!(router.head.weight, [0.0, 0.1, 2.0, 2.1, 3.0, 3.1]);
    assert_eq!(router.lexical.as_ref().unwrap().weight, [0.0, 2.0, 3.0]);
    assert_eq!(remembered(&router), [0, 1, 2]);
    assert!(router.memory.unwrap().mails.iter().all(|mail| mail.logits == [0.0, 2.0, 3.0]));
    assert!(router.card.contains("`b` was removed"), "{}", router.card);
}

#[test]
fn the_gate_judges_by_the_queues_that_are_left_of_the_training() {
    let mut router = router();
    let judges = |router: &StoredRouter| router.lexical.as_ref().unwrap().gate;
    router.lexical.as_mut().unwrap().gate = Gate { power: 0.5, temperature: 1.0, logits: 2 };
    remove(&mut router, "d").unwrap();
    assert_eq!(judges(&router).logits, 2);
    // Of one queue alone the encoder would always be sure, and the words would never count.
    remove(&mut router, "a").unwrap();
    assert_eq!(judges(&router), Gate::default());

    let mut router = self::router();
    router.lexical.as_mut().unwrap().gate = Gate { power: 0.5, temperature: 1.0, logits: 4 };
    remove(&mut router, "b").unwrap();
    assert_eq!(judges(&router), Gate { power: 0.5, temperature: 1.0, logits: 3 });
}

#[test]
fn two_queues_must_stay_and_ids_must_be_known() {
    let mut router = router();
    let error = rename(&mut router, "x", "X", None).unwrap_err().to_string();
    assert!(error.contains("a, b, c, d"), "{error}");
    let twice = merge(&mut router, &["a".to_owned(), "a".to_owned()], "b").unwrap_err();
    assert!(matches!(twice, QueueChangeError::Queues(QueueError::Twice(_))));
    remove(&mut router, "a").unwrap();
    remove(&mut router, "b").unwrap();
    assert!(matches!(remove(&mut router, "c"), Err(QueueChangeError::Queues(QueueError::TooFew(1)))));
}
