//! The one thing that every front end calls.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use candle_core::Device;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::RoutingError;
use super::attention::{self, AttentionReply, AttentionRequest};
use super::beside::Beside;
use super::decision::{Decision, InputFacts, MailFacts, ModelRef, Timing};
use super::explain::{
    self, CompareRequest, ExplainConfig, ExplainRequest, Explanation, HeadsRequest, MailFaithfulness, Method, Perturb,
};
use super::places::Places;
use super::policy::{self, PolicyConfig};
use crate::artifact::{Router, RouterInfo, gate, load_readable_encoder, word_logits};
use crate::collate::WindowedEmail;
use crate::email::{CleanEmail, CleanOptions, Fields, Posted, clean};
use crate::inference::{Caller, Client, Depth, Engine, Inference, InferenceConfig, InferenceError, Observer};
use crate::lexical::Lexical;
use crate::model::{Encoder, KeepMaps, ModelError};
use crate::tokenizer::{EmailTokenizer, EncodedEmail};

/// Settings of the service.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingConfig {
    /// When a mail is routed and when a person is asked.
    pub policy: PolicyConfig,
    /// How mail is read.
    pub email: CleanOptions,
    /// Bounds of the model's queue.
    pub inference: InferenceConfig,
    /// Bounds of explanations.
    pub explain: ExplainConfig,
}

/// A mail as a front end hands it over.
#[derive(Debug, Clone, PartialEq)]
pub struct Mail {
    /// The caller's id; one is made where it is absent.
    pub id: Option<String>,
    /// The mail itself.
    pub content: MailContent,
}

/// A raw message, or its fields.
#[derive(Debug, Clone, PartialEq)]
pub enum MailContent {
    /// RFC 5322.
    Mime(Vec<u8>),
    /// Fields that somebody else took out of a message.
    Fields(MailFields),
}

/// The fields of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailFields {
    /// Subject line.
    pub subject: Option<String>,
    /// Plain text; wins over `html` unless it is blank.
    pub text: Option<String>,
    /// HTML.
    pub html: Option<String>,
    /// Sender.
    pub from: Option<String>,
    /// Headers, for what they say of the mail's kind.
    pub headers: Vec<(String, String)>,
}

impl MailContent {
    fn bytes(&self) -> usize {
        match self {
            Self::Mime(raw) => raw.len(),
            Self::Fields(fields) => {
                [&fields.subject, &fields.text, &fields.html].into_iter().flatten().map(String::len).sum()
            }
        }
    }

    /// Reads the mail; total and without I/O.
    #[must_use]
    pub fn clean(&self, options: &CleanOptions) -> CleanEmail {
        match self {
            Self::Mime(raw) => clean(&Posted::Mime(raw), options),
            Self::Fields(fields) => clean(
                &Posted::Fields(Fields {
                    subject: fields.subject.as_deref(),
                    text: fields.text.as_deref(),
                    html: fields.html.as_deref(),
                    from: fields.from.as_deref(),
                    headers: &fields.headers,
                }),
                options,
            ),
        }
    }
}

/// A mail on its way to the network.
pub(super) struct Prepared {
    pub email: CleanEmail,
    pub encoded: EncodedEmail,
    pub windowed: WindowedEmail,
    /// What the words say, one number for each logit of the network.
    word_logits: Vec<f32>,
    /// Whether there are word counts beside the network, which no map shows.
    pub counts_words: bool,
    pub model: ModelRef,
    started: Instant,
    parse: Duration,
    tokenize: Duration,
}

/// What the network said, and the words.
pub(super) struct Answered {
    /// Its logits are those of the queues.
    pub inference: Inference,
    /// The logits of both legs, before those of merged queues were joined.
    pub sums: Vec<f32>,
    /// What the words have added to the network's, for this mail.
    pub added: Vec<f32>,
}

impl Prepared {
    /// How much of the mail the network sees.
    pub(super) fn input_facts(&self) -> InputFacts {
        InputFacts {
            tokens_total: self.encoded.tokens_total,
            tokens_used: self.encoded.tokens.len(),
            windows: self.windowed.windows.len(),
            truncated: self.encoded.truncated(),
        }
    }
}

/// Mail larger than this is read on a thread of its own, so that probes and short mail are answered meanwhile.
const INLINE_BYTES: usize = 32 * 1024;

/// Large mails that are read at a time: the rest waits, its clients in turn, so that a flood of them leaves time to the
/// network and places to others.
const LARGE_AT_A_TIME: usize = 4;

/// Routes mail with one router.
pub struct RoutingService {
    info: RouterInfo,
    tokenizer: Arc<EmailTokenizer>,
    lexical: Option<Lexical>,
    device: Device,
    engine: Engine,
    explanations: Semaphore,
    /// Where the router was read from.
    path: PathBuf,
    /// The readable network, read when gradients are first asked for.
    readable: OnceCell<Arc<Encoder>>,
    config: RoutingConfig,
    /// Places of large mails that are being read.
    reading: Places,
    decisions: OnceLock<Arc<DecisionObserver>>,
    /// Who is asked beside this router.
    beside: OnceLock<Arc<Beside>>,
}

/// Told of every decision, on the caller's task: must be quick.
pub type DecisionObserver = dyn Fn(&Decision) + Send + Sync;

impl RoutingService {
    /// Starts the model's thread for a router.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(router: Router, config: RoutingConfig) -> std::io::Result<Arc<Self>> {
        let device = router.classifier.device().clone();
        Ok(Arc::new(Self {
            info: router.info,
            path: router.path,
            readable: OnceCell::new(),
            tokenizer: Arc::new(router.tokenizer),
            lexical: router.lexical,
            device,
            engine: Engine::start(router.classifier, config.inference.clone())?,
            explanations: Semaphore::new(config.explain.max_running.min(Semaphore::MAX_PERMITS)),
            config,
            reading: Places::new(LARGE_AT_A_TIME),
            decisions: OnceLock::new(),
            beside: OnceLock::new(),
        }))
    }

    /// Puts a shadow or a canary beside this router. Only the first call counts.
    pub(super) fn set_beside(&self, beside: Arc<Beside>) {
        let _ = self.beside.set(beside);
    }

    /// The router that answers.
    #[must_use]
    pub fn router(&self) -> &RouterInfo {
        &self.info
    }

    /// Where the network runs.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &RoutingConfig {
        &self.config
    }

    /// Mails waiting for the model.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.engine.waiting()
    }

    /// What waits for the model, and the bounds.
    #[must_use]
    pub fn depth(&self) -> Depth {
        self.engine.depth()
    }

    /// Has what happens in the model's queue told to `observer` from now on. Only the first call counts.
    pub fn observe(&self, observer: Arc<Observer>) {
        self.engine.observe(observer);
    }

    /// Has every decision told to `observer` from now on. Only the first call counts.
    pub fn observe_decisions(&self, observer: Arc<DecisionObserver>) {
        // A second observer would count everything twice; it is dropped here.
        let _ = self.decisions.set(observer);
    }

    /// Takes no more mail and waits until all that was accepted is answered. Blocks.
    pub fn drain(&self) {
        self.engine.join();
    }

    /// Routes one mail of this process's own, which is in no hurry.
    ///
    /// # Errors
    /// As [`RoutingService::route_for`].
    pub async fn route(self: &Arc<Self>, mail: Mail) -> Result<Decision, RoutingError> {
        self.route_for(mail, Caller::default()).await
    }

    /// Routes one mail for a caller: by this router, or by the canary beside it where the mail is among its share.
    ///
    /// # Errors
    /// [`RoutingError::Inference`] where the network could not be asked or failed.
    pub async fn route_for(self: &Arc<Self>, mail: Mail, caller: Caller) -> Result<Decision, RoutingError> {
        let decision = match self.beside.get() {
            Some(beside) => beside.decide(self, mail, caller).await?,
            None => self.decide(mail, caller).await?,
        };
        self.tell(&decision);
        Ok(decision)
    }

    /// The router that made a decision of [`RoutingService::route_for`]: this one, or the canary beside it. `None` where the
    /// canary has been exchanged since.
    #[must_use]
    pub fn decided_by(self: &Arc<Self>, decision: &Decision) -> Option<Arc<Self>> {
        let version = &decision.model.version;
        if *version == self.info.version {
            return Some(Arc::clone(self));
        }
        self.beside.get()?.canary_live().filter(|canary| canary.info.version == *version)
    }

    /// Decides on one mail by this router, whoever stands beside it, and tells no observer.
    ///
    /// # Errors
    /// As [`RoutingService::route_for`].
    pub async fn decide(self: &Arc<Self>, mail: Mail, caller: Caller) -> Result<Decision, RoutingError> {
        let id = id_of(&mail);
        let prepared = self.prepare(mail, caller.client).await?;
        let inference = if policy::readable(&prepared.encoded) {
            Some(self.infer(&prepared, KeepMaps::None, caller).await?.inference)
        } else {
            None
        };
        Ok(self.judge(id, prepared, inference.as_ref()))
    }

    /// The decision on a mail that was read, and shown to the network where there was something to read.
    pub(super) fn judge(&self, id: String, prepared: Prepared, inference: Option<&Inference>) -> Decision {
        let logits = inference.map(|inference| inference.logits.as_slice());
        let Prepared { email, encoded, .. } = &prepared;
        let verdict = policy::decide(&self.info, &self.config.policy, email, encoded, logits);
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Decision {
            id,
            decision: verdict.outcome,
            queue: verdict.queue,
            confidence: verdict.confidence,
            reasons: verdict.reasons,
            candidates: verdict.candidates,
            candidate_set: verdict.candidate_set,
            mail: MailFacts::of(email),
            input: prepared.input_facts(),
            timing_us: Timing {
                parse: micros(prepared.parse),
                tokenize: micros(prepared.tokenize),
                queue: micros(inference.map_or(Duration::ZERO, |inference| inference.waited)),
                model: micros(inference.map_or(Duration::ZERO, |inference| inference.ran)),
                total: micros(prepared.started.elapsed()),
            },
            model: prepared.model,
        }
    }

    /// Tells whoever counts decisions of one that a caller gets.
    pub(super) fn tell(&self, decision: &Decision) {
        if let Some(observer) = self.decisions.get() {
            observer(decision);
        }
    }

    /// Attention maps of one mail, for a caller.
    ///
    /// # Errors
    /// [`RoutingError`] for layers, heads or rows that do not exist, maps too large to send, or as [`RoutingService::route`].
    pub async fn attend(
        self: &Arc<Self>,
        mail: Mail,
        request: AttentionRequest,
        caller: Caller,
    ) -> Result<AttentionReply, RoutingError> {
        Box::pin(attention::attend(self, mail, request, caller)).await
    }

    /// Why one mail is routed as it is.
    ///
    /// # Errors
    /// [`RoutingError`] for queues that do not exist, where too many explanations are being worked on, for mail that is too long
    /// to be explained, or as [`RoutingService::route`].
    pub async fn explain(
        self: &Arc<Self>,
        mail: Mail,
        request: &ExplainRequest,
        caller: Caller,
    ) -> Result<Explanation, RoutingError> {
        // Boxed: the future holds all that an explanation goes through, and most callers never ask for one.
        Box::pin(explain::explain(self, mail, request, caller)).await
    }

    /// What each attention head does in one mail, as `heads/1`.
    ///
    /// # Errors
    /// As [`RoutingService::explain`].
    pub async fn heads(
        self: &Arc<Self>,
        mail: Mail,
        request: &HeadsRequest,
        caller: Caller,
    ) -> Result<Value, RoutingError> {
        Box::pin(explain::heads(self, mail, request, caller)).await
    }

    /// Two mails side by side, as `compare/1`.
    ///
    /// # Errors
    /// As [`RoutingService::explain`].
    pub async fn compare(
        self: &Arc<Self>,
        mails: [Mail; 2],
        request: CompareRequest,
        caller: Caller,
    ) -> Result<Value, RoutingError> {
        Box::pin(explain::compare(self, mails, request, caller)).await
    }

    /// How faithful methods are on one mail.
    ///
    /// # Errors
    /// As [`RoutingService::explain`].
    pub async fn faithfulness(
        self: &Arc<Self>,
        mail: Mail,
        methods: &[Method],
        perturb: Perturb,
        seed: u64,
    ) -> Result<MailFaithfulness, RoutingError> {
        Box::pin(explain::faithfulness(self, mail, methods, perturb, seed)).await
    }

    /// A turn to explain, given back when it is dropped.
    pub(super) fn turn_to_explain(&self) -> Result<SemaphorePermit<'_>, RoutingError> {
        self.explanations.try_acquire().map_err(|_| RoutingError::TooManyExplanations {
            limit: self.config.explain.max_running,
            retry_after: self.engine.time_for(self.config.explain.max_tokens / 4),
        })
    }

    /// The network that has gradients. On the CPU another one routes, so it is read again, once; `None` where it is the one that
    /// routes.
    pub(super) async fn readable_encoder(self: &Arc<Self>) -> Result<Option<Arc<Encoder>>, RoutingError> {
        if !self.device.is_cpu() {
            return Ok(None);
        }
        let read = || async {
            let this = Arc::clone(self);
            let reading = tokio::task::spawn_blocking(move || load_readable_encoder(&this.path, &this.info));
            let encoder = reading.await.map_err(|_| RoutingError::Panicked)??;
            tracing::info!("the network was read once more, for gradients");
            Ok::<_, RoutingError>(Arc::new(encoder))
        };
        Ok(Some(Arc::clone(self.readable.get_or_try_init(read).await?)))
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn tokenizer(&self) -> &EmailTokenizer {
        &self.tokenizer
    }

    /// What the words of a mail add to the network's logits of it, both without the tokens for which `removed` is true; an empty
    /// list removes nothing.
    pub(super) fn added_by_words(&self, network: &[f32], encoded: &EncodedEmail, removed: &[bool]) -> Vec<f32> {
        let gone = |position: usize| removed.get(position).copied().unwrap_or(false);
        let tokens = encoded.tokens.iter().enumerate();
        let left = tokens.filter(|(position, _)| !gone(*position)).map(|(_, token)| token);
        let lexical = self.lexical.as_ref();
        gate(lexical).added(network, &word_logits(lexical, left, self.info.groups.n_logits()))
    }

    /// Asks the network, and adds what the words say.
    pub(super) async fn infer(
        &self,
        prepared: &Prepared,
        keep: KeepMaps,
        caller: Caller,
    ) -> Result<Answered, RoutingError> {
        let mut inference = self.engine.run(prepared.windowed.clone(), keep, caller).await?;
        let mut sums = std::mem::take(&mut inference.logits);
        let added = gate(self.lexical.as_ref()).added(&sums, &prepared.word_logits);
        sums.iter_mut().zip(&added).for_each(|(logit, word)| *logit += word);
        inference.logits = finite(self.info.queue_logits(&sums))?;
        Ok(Answered { inference, sums, added })
    }

    /// One mail of a client as the router would read it; the network is not asked.
    ///
    /// # Errors
    /// [`RoutingError::Panicked`] where reading it went wrong.
    pub async fn read(self: &Arc<Self>, mail: Mail, client: Client) -> Result<CleanEmail, RoutingError> {
        self.in_turn(mail, client, |this, mail| mail.content.clean(&this.config.email)).await
    }

    pub(super) async fn prepare(self: &Arc<Self>, mail: Mail, client: Client) -> Result<Prepared, RoutingError> {
        self.in_turn(mail, client, Self::prepare_now).await
    }

    /// Reads a mail by `read`: a small one at once, a large one on a thread of its own, when its client has a place
    /// there.
    async fn in_turn<T: Send + 'static>(
        self: &Arc<Self>,
        mail: Mail,
        client: Client,
        read: impl FnOnce(&Self, &Mail) -> T + Send + 'static,
    ) -> Result<T, RoutingError> {
        if mail.content.bytes() <= INLINE_BYTES {
            return Ok(read(self, &mail));
        }
        let place = self.reading.place(client).await;
        let this = Arc::clone(self);
        let read = move || {
            // Held by the thread, since it reads on though the caller leaves.
            let _place = place;
            read(&this, &mail)
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| RoutingError::Panicked)
    }

    fn prepare_now(&self, mail: &Mail) -> Prepared {
        let started = Instant::now();
        let email = mail.content.clean(&self.config.email);
        let parse = started.elapsed();
        let encoded = self.tokenizer.encode(&email, self.info.windows.max_tokens);
        let windowed = WindowedEmail::new(&encoded, &self.tokenizer, &self.info.windows, self.info.pooling);
        let model = ModelRef {
            router: self.info.name.clone(),
            version: self.info.version.clone(),
            encoder: self.info.encoder.clone(),
        };
        let word_logits = word_logits(self.lexical.as_ref(), encoded.tokens.iter(), self.info.groups.n_logits());
        let counts_words = self.lexical.is_some();
        Prepared {
            email,
            encoded,
            windowed,
            word_logits,
            counts_words,
            model,
            started,
            parse,
            tokenize: started.elapsed() - parse,
        }
    }
}

/// The network's own numbers are checked where they are made; the words' come on top.
pub(super) fn finite(logits: Vec<f32>) -> Result<Vec<f32>, RoutingError> {
    if logits.iter().all(|logit| logit.is_finite()) {
        return Ok(logits);
    }
    Err(InferenceError::Model(Arc::new(ModelError::NotFinite)).into())
}

/// The caller's id of a mail, or a new one.
pub(super) fn id_of(mail: &Mail) -> String {
    mail.id.clone().unwrap_or_else(new_id)
}

/// An id that no other mail of this host has: the start of the process in nanoseconds and a count.
fn new_id() -> String {
    static START: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("mail-{:016x}-{:x}", *START, COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;
    use crate::artifact::load_router;

    fn mail(bytes: usize) -> Mail {
        let fields = MailFields { text: Some("Where is it?\n".repeat(bytes / 13 + 1)), ..MailFields::default() };
        Mail { id: None, content: MailContent::Fields(fields) }
    }

    #[tokio::test]
    async fn a_large_mail_waits_for_its_turn_whatever_it_is_read_for() {
        let crumb = concat!(env!("CARGO_MANIFEST_DIR"), "/models/crumb");
        let router = load_router(crumb.as_ref(), candle_core::DType::F32, &Device::Cpu).unwrap();
        let service = RoutingService::start(router, RoutingConfig::default()).unwrap();
        let client = Client::default();
        let mut places = Vec::new();
        for _ in 0..LARGE_AT_A_TIME {
            places.push(service.reading.place(client).await);
        }
        let a_while = Duration::from_millis(200);
        assert!(timeout(a_while, service.read(mail(INLINE_BYTES), client)).await.is_err());
        assert!(timeout(a_while, service.prepare(mail(INLINE_BYTES), client)).await.is_err());
        assert_eq!(service.read(mail(0), client).await.unwrap().body.posted(), "Where is it?\n");
        // One client's large mails wait for a place; another's is the next that gets one.
        let flood: Vec<_> = (0..20)
            .map(|_| {
                let service = Arc::clone(&service);
                tokio::spawn(async move { service.reading.place(client).await })
            })
            .collect();
        tokio::task::yield_now().await;
        let other = tokio::spawn({
            let service = Arc::clone(&service);
            async move { service.read(mail(INLINE_BYTES), Client::of("other")).await.map(drop) }
        });
        tokio::task::yield_now().await;
        // The first goes to the one who has waited longest, and stays with it.
        places.truncate(LARGE_AT_A_TIME - 2);
        timeout(Duration::from_secs(60), other).await.unwrap().unwrap().unwrap();
        assert!(!flood.iter().all(tokio::task::JoinHandle::is_finished));
        flood.iter().for_each(tokio::task::JoinHandle::abort);
        drop((flood, places));
        let read = service.read(mail(INLINE_BYTES), client).await.unwrap();
        assert!(read.body.posted().len() > INLINE_BYTES);
    }
}
