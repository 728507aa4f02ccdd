//! The one thing that every front end calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use candle_core::Device;
use serde::{Deserialize, Serialize};

use super::RoutingError;
use super::attention::{self, AttentionReply, AttentionRequest};
use super::decision::{Decision, InputFacts, MailFacts, ModelRef, Timing};
use super::policy::{self, PolicyConfig};
use crate::artifact::{Router, RouterInfo, word_logits};
use crate::collate::WindowedEmail;
use crate::email::{CleanEmail, CleanOptions, Fields, Posted, clean};
use crate::inference::{Engine, Inference, InferenceConfig};
use crate::lexical::Lexical;
use crate::model::KeepMaps;
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
    /// What the words add to the network's logits.
    word_logits: Vec<f32>,
    /// Whether there are word counts beside the network, which no map shows.
    pub counts_words: bool,
    pub model: ModelRef,
    started: Instant,
    parse: Duration,
    tokenize: Duration,
}

/// Mail larger than this is read on a thread of its own, so that probes and short mail are answered meanwhile.
const INLINE_BYTES: usize = 32 * 1024;

/// Routes mail with one router.
pub struct RoutingService {
    info: RouterInfo,
    tokenizer: Arc<EmailTokenizer>,
    lexical: Option<Lexical>,
    device: Device,
    engine: Engine,
    config: RoutingConfig,
}

impl RoutingService {
    /// Starts the model's thread for a router.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(router: Router, config: RoutingConfig) -> std::io::Result<Arc<Self>> {
        let device = router.classifier.device().clone();
        Ok(Arc::new(Self {
            info: router.info,
            tokenizer: Arc::new(router.tokenizer),
            lexical: router.lexical,
            device,
            engine: Engine::start(router.classifier, config.inference.clone())?,
            config,
        }))
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

    /// Takes no more mail and waits until all that was accepted is answered. Blocks.
    pub fn drain(&self) {
        self.engine.join();
    }

    /// Routes one mail.
    ///
    /// # Errors
    /// [`RoutingError::Inference`] where the network could not be asked or failed.
    pub async fn route(self: &Arc<Self>, mail: Mail) -> Result<Decision, RoutingError> {
        let id = mail.id.clone().unwrap_or_else(new_id);
        let prepared = self.prepare(mail).await?;
        let inference =
            if policy::readable(&prepared.encoded) { Some(self.infer(&prepared, KeepMaps::None).await?) } else { None };
        let logits = inference.as_ref().map(|inference| inference.logits.as_slice());
        let Prepared { email, encoded, .. } = &prepared;
        let verdict = policy::decide(&self.info, &self.config.policy, email, encoded, logits);
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Ok(Decision {
            id,
            decision: verdict.outcome,
            queue: verdict.queue,
            confidence: verdict.confidence,
            reasons: verdict.reasons,
            candidates: verdict.candidates,
            candidate_set: verdict.candidate_set,
            mail: MailFacts::of(email),
            input: InputFacts {
                tokens_total: encoded.tokens_total,
                tokens_used: encoded.tokens.len(),
                windows: prepared.windowed.windows.len(),
                truncated: encoded.truncated(),
            },
            timing_us: Timing {
                parse: micros(prepared.parse),
                tokenize: micros(prepared.tokenize),
                queue: micros(inference.as_ref().map_or(Duration::ZERO, |inference| inference.waited)),
                model: micros(inference.as_ref().map_or(Duration::ZERO, |inference| inference.ran)),
                total: micros(prepared.started.elapsed()),
            },
            model: prepared.model,
        })
    }

    /// Attention maps of one mail.
    ///
    /// # Errors
    /// [`RoutingError`] for layers, heads or rows that do not exist, maps too large to send, or as [`RoutingService::route`].
    pub async fn attend(
        self: &Arc<Self>,
        mail: Mail,
        request: AttentionRequest,
    ) -> Result<AttentionReply, RoutingError> {
        let prepared = self.prepare(mail).await?;
        if !policy::readable(&prepared.encoded) {
            return Err(RoutingError::NothingToRead);
        }
        let plan = attention::plan(&request, &self.info, &prepared)?;
        let keep = KeepMaps::Layers(plan.layers.clone());
        let inference = self.infer(&prepared, keep).await?;
        let this = Arc::clone(self);
        // Merging words over all heads and writing numbers takes milliseconds: not on a thread that serves others.
        tokio::task::spawn_blocking(move || attention::reply(&request, &this.info, &prepared, &plan, &inference))
            .await
            .map_err(|_| RoutingError::Panicked)?
    }

    /// Asks the network, and adds what the words say.
    async fn infer(&self, prepared: &Prepared, keep: KeepMaps) -> Result<Inference, RoutingError> {
        let mut inference = self.engine.run(prepared.windowed.clone(), keep).await?;
        inference.logits.iter_mut().zip(&prepared.word_logits).for_each(|(logit, word)| *logit += word);
        inference.logits = self.info.queue_logits(&inference.logits);
        Ok(inference)
    }

    async fn prepare(self: &Arc<Self>, mail: Mail) -> Result<Prepared, RoutingError> {
        if mail.content.bytes() <= INLINE_BYTES {
            return Ok(self.prepare_now(&mail));
        }
        let this = Arc::clone(self);
        tokio::task::spawn_blocking(move || this.prepare_now(&mail)).await.map_err(|_| RoutingError::Panicked)
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
        let word_logits = word_logits(self.lexical.as_ref(), &encoded, self.info.groups.n_logits());
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

/// An id that no other mail of this host has: the start of the process in nanoseconds and a count.
fn new_id() -> String {
    static START: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("mail-{:016x}-{:x}", *START, COUNT.fetch_add(1, Ordering::Relaxed))
}
