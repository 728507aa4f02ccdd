use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;
use crate::model::{ClassifierOutput, PackedBatch};

/// A network that is a function of the batch's tokens; each logit row is the first token of its mail.
struct Stub<F>(F);

impl<F: Fn(&[u32]) -> Result<(), ModelError> + Send + 'static> Network for Stub<F> {
    fn forward(&self, batch: &PackedBatch, _: &KeepMaps) -> Result<ClassifierOutput, ModelError> {
        (self.0)(&batch.input_ids)?;
        let first = |mail| batch.input_ids[batch.mail_tokens(mail).start] as f32;
        Ok(ClassifierOutput {
            logits: (0..batch.n_mails()).map(|mail| vec![first(mail)]).collect(),
            maps: Vec::new(),
            token_weights: Vec::new(),
        })
    }
}

/// What the stub does with a mail of these tokens.
const PANICS: u32 = 13;
const FAILS: u32 = 14;
/// Tells that it runs and waits until it may end.
const WAITS: u32 = 15;

/// An engine whose network behaves by token, the tokens that it saw, and the gate of mails that wait.
struct Bench {
    engine: Arc<Engine>,
    seen: Arc<Mutex<Vec<u32>>>,
    running: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
    counted: Arc<[AtomicUsize; 4]>,
}

fn bench() -> Bench {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (started, running) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let for_thread = Arc::clone(&seen);
    let engine = Engine::start(
        Stub(move |tokens: &[u32]| {
            for_thread.lock().unwrap().extend_from_slice(tokens);
            assert!(!tokens.contains(&PANICS), "a word of the mail");
            if tokens.contains(&WAITS) {
                started.send(()).unwrap();
                may_go_on.recv().unwrap();
            }
            if tokens.contains(&FAILS) { Err(ModelError::NotFinite) } else { Ok(()) }
        }),
        InferenceConfig::default(),
    )
    .unwrap();
    let counted: Arc<[AtomicUsize; 4]> = Arc::default();
    let counts = Arc::clone(&counted);
    engine.observe(Arc::new(move |event| {
        let place = match event {
            Event::Panicked => 0,
            Event::Failed => 1,
            Event::Dropped { why: Dropped::Expired, .. } => 2,
            Event::Dropped { why: Dropped::Cancelled, .. } => 3,
            _ => return,
        };
        counts[place].fetch_add(1, Ordering::SeqCst);
    }));
    Bench { engine: Arc::new(engine), seen, running, go_on, counted }
}

impl Bench {
    async fn run(&self, token: u32) -> Answer {
        self.engine.run(WindowedEmail::of_tokens(vec![token, 1]), KeepMaps::None, Caller::default()).await
    }

    fn spawn(&self, token: u32) -> tokio::task::JoinHandle<Answer> {
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move {
            engine.run(WindowedEmail::of_tokens(vec![token, 1]), KeepMaps::None, Caller::default()).await
        })
    }

    /// A mail that holds the thread until `go_on`.
    fn hold(&self) -> tokio::task::JoinHandle<Answer> {
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move {
            engine.run(WindowedEmail::of_tokens(vec![WAITS]), KeepMaps::None, Caller::default()).await
        })
    }

    fn counted(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|place| self.counted[place].load(Ordering::SeqCst))
    }
}

#[tokio::test]
async fn a_panic_fails_one_mail_and_the_thread_goes_on() {
    let bench = bench();
    assert!(matches!(bench.run(PANICS).await, Err(InferenceError::Panicked)));
    assert_eq!(bench.run(5).await.unwrap().logits, [5.0]);
    assert_eq!(bench.counted(), [1, 0, 0, 0]);
}

/// An answer once came before its batch stood in the metrics, so that a test of them failed on a slow machine.
#[tokio::test]
async fn whoever_has_an_answer_finds_its_batch_counted() {
    let engine = Engine::start(Stub(|_: &[u32]| Ok(())), InferenceConfig::default()).unwrap();
    let batches = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&batches);
    engine.observe(Arc::new(move |event| {
        if matches!(event, Event::Batch { .. }) {
            std::thread::sleep(Duration::from_millis(2));
            counted.fetch_add(1, Ordering::SeqCst);
        }
    }));
    for answered in 1..=5 {
        engine.run(WindowedEmail::of_tokens(vec![1]), KeepMaps::None, Caller::default()).await.unwrap();
        assert_eq!(batches.load(Ordering::SeqCst), answered);
    }
}

/// Maps that find no place are no mail that was not routed.
#[tokio::test]
async fn what_is_refused_is_told_with_the_lane_that_it_was_for() {
    let engine = Engine::start(Stub(|_: &[u32]| Ok(())), InferenceConfig::default()).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&told);
    engine.observe(Arc::new(move |event| events.lock().unwrap().push(*event)));
    let passed = Caller { deadline: Some(Instant::now()), ..Caller::default() };
    for keep in [KeepMaps::None, KeepMaps::Layers(vec![0])] {
        engine.run(WindowedEmail::of_tokens(vec![1]), keep, passed).await.unwrap_err();
    }
    let refused = [Lane::Route, Lane::Maps].map(|lane| Event::Refused { lane, why: Refused::TooLate });
    assert_eq!(*told.lock().unwrap(), refused);
}

#[tokio::test]
async fn a_panic_outside_the_network_does_not_end_the_thread_either() {
    let engine = Engine::start(Stub(|_: &[u32]| Ok(())), InferenceConfig::default()).unwrap();
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    engine.observe(Arc::new(move |event| match event {
        Event::Batch { tokens: 2, .. } => panic!("an observer that fails"),
        Event::Panicked => drop(counted.fetch_add(1, Ordering::SeqCst)),
        _ => {}
    }));
    let run = |tokens| engine.run(WindowedEmail::of_tokens(tokens), KeepMaps::None, Caller::default());
    run(vec![1, 2]).await.unwrap();
    assert_eq!(run(vec![7]).await.unwrap().logits, [7.0]);
    assert_eq!(panics.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_without_an_answer_fails_alone_in_its_batch() {
    let bench = bench();
    let held = bench.hold();
    bench.running.recv().unwrap();
    // Both wait and become one batch.
    let (bad, good) = tokio::join!(bench.run(FAILS), async {
        while bench.engine.waiting() < 1 {
            tokio::task::yield_now().await;
        }
        let good = bench.run(6);
        bench.go_on.send(()).unwrap();
        good.await
    });
    assert!(matches!(bad, Err(InferenceError::Model(_))));
    assert_eq!(good.unwrap().logits, [6.0]);
    assert_eq!(bench.counted()[1], 1);
    held.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_waits_for_is_never_run() {
    let bench = bench();
    let held = bench.hold();
    bench.running.recv().unwrap();
    let soon = Caller { deadline: Some(Instant::now() + Duration::from_millis(20)), ..Caller::default() };
    let late = bench.engine.run(WindowedEmail::of_tokens(vec![8]), KeepMaps::None, soon);
    let left = tokio::time::timeout(Duration::from_millis(20), bench.run(9));
    let (late, left) = tokio::join!(late, left);
    assert!(matches!(late, Err(InferenceError::Expired)) && left.is_err());
    bench.go_on.send(()).unwrap();
    held.await.unwrap().unwrap();
    bench.run(5).await.unwrap();
    assert_eq!(*bench.seen.lock().unwrap(), [WAITS, 5, 1]);
    assert_eq!(bench.counted(), [0, 0, 1, 1]);
}

/// Its batch is formed and runs already when the caller leaves: it runs on for the others, and not once more for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_leaves_once_its_batch_is_formed_costs_its_batch_mates_nothing() {
    let bench = bench();
    let held = bench.hold();
    bench.running.recv().unwrap();
    let starts: [fn(&Bench) -> tokio::task::JoinHandle<Answer>; 3] =
        [Bench::hold, |bench| bench.spawn(FAILS), |bench| bench.spawn(6)];
    let mut waiting = Vec::new();
    for start in starts {
        waiting.push(start(&bench));
        while bench.engine.waiting() < waiting.len() {
            tokio::task::yield_now().await;
        }
    }
    bench.go_on.send(()).unwrap();
    bench.running.recv().unwrap();
    let leaver = waiting.remove(0);
    leaver.abort();
    assert!(leaver.await.unwrap_err().is_cancelled());
    bench.go_on.send(()).unwrap();
    // Were the leaver's mail run again, it would not hang the test but be seen below.
    bench.go_on.send(()).unwrap();
    held.await.unwrap().unwrap();
    assert!(matches!(waiting.remove(0).await.unwrap(), Err(InferenceError::Model(_))));
    assert_eq!(waiting.remove(0).await.unwrap().unwrap().logits, [6.0]);
    assert_eq!(*bench.seen.lock().unwrap(), [WAITS, WAITS, FAILS, 1, 6, 1, FAILS, 1, 6, 1]);
    assert_eq!(bench.counted(), [0, 1, 0, 0]);
}

/// While they wait, while their batch is formed, while it runs, when the answer is on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_callers_leave_the_others_are_answered_and_every_mail_is_accounted_for() {
    const MAILS: u32 = 900;
    let bench = bench();
    let mut mails = tokio::task::JoinSet::new();
    for number in 0..MAILS {
        let engine = Arc::clone(&bench.engine);
        mails.spawn(async move {
            let token = 100 + number;
            let answer = engine.run(WindowedEmail::of_tokens(vec![token]), KeepMaps::None, Caller::default());
            let leaves = async {
                for _ in 0..number % 13 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                // Every mail is sent, also where its caller leaves at once.
                biased;
                answer = answer => assert_eq!(answer.unwrap().logits, [token as f32]),
                () = leaves, if number % 3 == 0 => {}
            }
        });
    }
    while let Some(mail) = mails.join_next().await {
        mail.unwrap();
    }
    bench.run(5).await.unwrap();
    assert_eq!(bench.engine.waiting(), 0);
    let mut seen = bench.seen.lock().unwrap().clone();
    seen.retain(|token| *token >= 100);
    let run = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), run, "a mail was run twice");
    let [panicked, failed, expired, cancelled] = bench.counted();
    assert_eq!((panicked, failed, expired, run + cancelled), (0, 0, 0, MAILS as usize));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_is_answered_after_closing_and_nothing_new_is_taken() {
    let bench = bench();
    let held = bench.hold();
    bench.running.recv().unwrap();
    let waiting = tokio::spawn({
        let engine = Arc::clone(&bench.engine);
        async move { engine.run(WindowedEmail::of_tokens(vec![7]), KeepMaps::None, Caller::default()).await }
    });
    while bench.engine.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    bench.engine.close();
    assert!(matches!(bench.run(5).await, Err(InferenceError::Closed)));
    bench.go_on.send(()).unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().logits, [7.0]);
    held.await.unwrap().unwrap();
}
