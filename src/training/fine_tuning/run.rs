//! One run: a network trained on some mails and judged on others after every epoch.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::adamw::{Moments, Rate, clip_factor, schedule};
use super::checkpoint::{CheckpointError, State};
use super::network::{Layout, Network};
use super::sampler::Pick;
use super::side_by_side::Teller;
use super::undecided::without_decisive;
use super::{FineTuningConfig, Head, Material, TokenPooling, sampler};
use crate::artifact::EncoderChange;
use crate::collate::{Pooling, WindowedEmail, batches, pack};
use crate::metrics::calibrated_loss;
use crate::model::trainable::{Dropout, Gradients, Objective};
use crate::random::SplitMix64;
use crate::tokenizer::EncodedEmail;
use crate::training::TrainingError;
use crate::training::held_out::judged;

/// Tokens that go through the network at a time: what a step's mails are cut into, and what memory must hold.
const TOKENS_AT_ONCE: usize = 1024;

/// What a run gives. The network itself is gone: all runs' results are kept to the end, and that many networks need not fit.
pub(super) struct Finished {
    layout: Layout,
    /// Logits of the judged mails after each of the last epochs.
    pub judged: Vec<Vec<Vec<f32>>>,
    /// All values after each of these epochs, where no mail is judged.
    kept: Vec<Vec<Vec<f32>>>,
}

impl Finished {
    /// What changed in the encoder, and the head, as they were at one of the kept epochs.
    pub(super) fn taken(mut self, config: &FineTuningConfig, kept: usize) -> (EncoderChange, Head) {
        self.layout.taken_apart(config, self.kept.swap_remove(kept))
    }
}

/// A network that is trained on some mails and judged by others.
pub(super) struct Run<'a> {
    pub name: String,
    pub material: &'a Material<'a>,
    pub config: &'a FineTuningConfig,
    pub mails: Vec<usize>,
    /// Empty for the run whose network is wanted: it keeps its values wherever the others are judged, who decide which.
    pub judged: Vec<usize>,
}

impl Run<'_> {
    /// Trains, from the last checkpoint on where there is one.
    pub(super) fn go(&self, teller: &Teller) -> Result<Finished, TrainingError> {
        let head = (self.material.head)(&self.mails);
        let (mut network, start) = Network::new(self.material, self.config, &head)?;
        let sizes: Vec<usize> = start.iter().map(Vec::len).collect();
        let checkpoint = self.material.checkpoints.map(|folder| folder.join(format!("{}.safetensors", self.name)));
        let fingerprint = self.fingerprint();
        let found = match &checkpoint {
            Some(path) => State::load(path, &fingerprint, &sizes, self.material.n_queues)?
                .map(|state| self.with_all_results(state, path))
                .transpose()?,
            None => None,
        };
        let mut state = found.unwrap_or_else(|| State {
            epochs: 0,
            steps: 0,
            moments: sizes.iter().map(|&size| Moments::zeros(size)).collect(),
            values: start,
            judged: Vec::new(),
            kept: Vec::new(),
        });
        teller.add(state.epochs * self.tokens_of_epoch())?;
        while state.epochs < self.config.epochs {
            self.epoch(&mut network, &mut state, teller)?;
            state.epochs += 1;
            if self.results_after(state.epochs) > 0 {
                if self.judged.is_empty() {
                    state.kept.push(state.values.clone());
                } else {
                    let logits = self.judge(&mut network, &state.values, teller)?;
                    teller.note(format!("{}, {}", self.name, self.said(&logits, state.epochs)))?;
                    state.judged.push(logits);
                }
            }
            if let Some(path) = &checkpoint {
                state.save(path, &fingerprint)?;
            }
        }
        Ok(Finished { layout: network.into_layout(), judged: state.judged, kept: state.kept })
    }

    /// How many epochs of so many give a result: logits of the judged mails, or values that are kept.
    fn results_after(&self, epochs: usize) -> usize {
        (epochs + self.config.judgements()).saturating_sub(self.config.epochs)
    }

    /// Programs of before kept no values.
    fn with_all_results(&self, state: State, path: &Path) -> Result<State, CheckpointError> {
        let results = if self.judged.is_empty() { state.kept.len() } else { state.judged.len() };
        if results == self.results_after(state.epochs) {
            return Ok(state);
        }
        let reason = format!("it has the results of {results} epochs, not of {}", self.results_after(state.epochs));
        Err(CheckpointError::Foreign { path: path.to_owned(), reason })
    }

    /// Tokens of the whole run, about: what the progress counts.
    pub(super) fn tokens(&self) -> usize {
        self.tokens_of_epoch() * self.config.epochs
    }

    fn tokens_of_epoch(&self) -> usize {
        self.mails.iter().chain(&self.judged).map(|&mail| self.material.mails[mail].tokens.len()).sum()
    }

    /// What must be the same for a checkpoint to fit: the encoder, the settings, the mail, which of it this run sees, and the
    /// sentences put into it.
    fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.material.encoder_identity);
        hash.update(format!("{:?} {} {:?}", self.config, self.material.seed, self.material.windows));
        hash.update(format!("{:?} {:?}", self.mails, self.judged));
        hash.update(self.material.background_sentences.to_le_bytes());
        self.material.background.tokens().for_each(|token| hash.update(token.id.to_le_bytes()));
        for &mail in self.mails.iter().chain(&self.judged) {
            hash.update(self.material.targets[mail].to_le_bytes());
            self.material.mails[mail].tokens.iter().for_each(|token| hash.update(token.id.to_le_bytes()));
            self.material.decisive[mail].iter().for_each(|&decides| hash.update([u8::from(decides)]));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn epoch(&self, network: &mut Network, state: &mut State, teller: &Teller) -> Result<(), TrainingError> {
        let Material { targets, n_queues, seed, .. } = *self.material;
        let mut random = SplitMix64::stream(seed, state.epochs as u64);
        let mut dropout = Dropout::new(self.config.dropout, random.next_u64());
        let order = sampler::order(&self.mails, targets, n_queues, &mut random);
        let nobodys = if self.material.background.is_empty() { 0.0 } else { self.config.background_mails };
        let marked: Vec<usize> = self.marked().collect();
        let order = sampler::with_others(order, nobodys, (self.config.undecided_mails, &marked), &mut random);
        let steps = order.len().div_ceil(self.config.batch) * self.config.epochs;
        let mut gradients = Gradients::zeros(state.values.iter().map(Vec::len));
        for chosen in order.chunks(self.config.batch) {
            let (mails, marks): (Vec<WindowedEmail>, Vec<Vec<bool>>) =
                chosen.iter().map(|&pick| self.changed(pick, &mut random)).unzip();
            gradients.clear();
            for part in batches(&mails, TOKENS_AT_ONCE) {
                let batch = pack(part.iter().map(|&place| &mails[place]));
                let queue = |&place: &usize| chosen[place].mail().map(|mail| targets[mail]);
                let wanted: Vec<Option<usize>> = part.iter().map(queue).collect();
                let smoothing: Vec<f32> = part.iter().map(|&place| self.smoothing(chosen[place])).collect();
                let decisive: Vec<bool> = part.iter().flat_map(|&place| mails[place].marked(&marks[place])).collect();
                let objective = Objective {
                    targets: &wanted,
                    label_smoothing: &smoothing,
                    decisive: &decisive,
                    evidence: if self.config.pooling == TokenPooling::Mean { 0.0 } else { self.config.evidence as f32 },
                    scale: 1.0 / chosen.len() as f32,
                };
                network.loss(&state.values, &batch, &objective, &mut dropout, &mut gradients)?;
                // Other mails are not counted, here and in the sum: how long they are is drawn.
                let mails = part.iter().filter_map(|&place| match chosen[place] {
                    Pick::Mail(mail) => Some(mail),
                    Pick::Undecided(_) | Pick::Background => None,
                });
                teller.add(mails.map(|mail| self.material.mails[mail].tokens.len()).sum())?;
            }
            self.step(network, state, gradients.sums(), steps)?;
        }
        Ok(())
    }

    fn step(
        &self,
        network: &Network,
        state: &mut State,
        gradients: &[Vec<f32>],
        steps: usize,
    ) -> Result<(), TrainingError> {
        let factor = clip_factor(gradients.iter().map(Vec::as_slice), self.config.clip);
        if !factor.is_finite() {
            return Err(TrainingError::Diverged { step: state.steps + 1 });
        }
        let share = schedule(state.steps, steps, self.config.warm_up);
        state.steps += 1;
        let parameters = state.values.iter_mut().zip(&mut state.moments).zip(gradients);
        for (((values, moments), gradient), kind) in parameters.zip(network.kinds()) {
            if kind.query && self.config.pooling == TokenPooling::Mean {
                continue;
            }
            let highest = if kind.of_head { self.config.head_learning_rate } else { self.config.learning_rate };
            let weight_decay = if kind.matrix { self.config.weight_decay as f32 } else { 0.0 };
            let rate = Rate { step: state.steps, learning_rate: (highest * share) as f32, weight_decay };
            moments.step(values, gradient, factor, rate);
        }
        Ok(())
    }

    fn judge(
        &self,
        network: &mut Network,
        values: &[Vec<f32>],
        teller: &Teller,
    ) -> Result<Vec<Vec<f32>>, TrainingError> {
        let mails: Vec<WindowedEmail> =
            self.judged.iter().map(|&mail| self.windowed(&self.material.mails[mail])).collect();
        let mut logits = vec![Vec::new(); mails.len()];
        for part in batches(&mails, TOKENS_AT_ONCE) {
            let batch = pack(part.iter().map(|&place| &mails[place]));
            let rows = network.logits(values, &batch)?;
            teller.add(part.iter().map(|&place| self.material.mails[self.judged[place]].tokens.len()).sum())?;
            let rows = rows.chunks_exact(self.material.n_queues);
            part.into_iter().zip(rows).for_each(|(place, row)| logits[place] = row.to_vec());
        }
        Ok(logits)
    }

    /// How the judged mails fared, in a line.
    fn said(&self, logits: &[Vec<f32>], epochs: usize) -> String {
        let targets: Vec<usize> = self.judged.iter().map(|&mail| self.material.targets[mail]).collect();
        let (_, correct) = judged(logits, &targets, 1.0);
        let wrong = correct.iter().filter(|&&correct| !correct).count();
        let loss = calibrated_loss(logits, &targets);
        format!("after epoch {epochs}: {wrong} of {} held-out mails wrong, loss {loss:.4}", targets.len())
    }

    fn windowed(&self, mail: &EncodedEmail) -> WindowedEmail {
        WindowedEmail::new(mail, self.material.tokenizer, self.material.windows, Pooling::Mean)
    }

    /// A mail as training sees it, and which of its tokens decide: some get background put in.
    fn changed(&self, pick: Pick, random: &mut SplitMix64) -> (WindowedEmail, Vec<bool>) {
        let Material { mails, seams, decisive, background, background_sentences: most, .. } = *self.material;
        match pick {
            Pick::Background => (self.windowed(&background.mail(most, random)), Vec::new()),
            Pick::Undecided(mail) => (self.windowed(&self.undecided(mail).unwrap_or_default()), Vec::new()),
            Pick::Mail(mail) if random.uniform() < self.config.background => {
                let (changed, marks) = background.insert((&mails[mail], &decisive[mail]), &seams[mail], most, random);
                (self.windowed(&changed), marks)
            }
            Pick::Mail(mail) => (self.windowed(&mails[mail]), decisive[mail].clone()),
        }
    }

    fn smoothing(&self, pick: Pick) -> f32 {
        let undecided = matches!(pick, Pick::Undecided(_));
        (if undecided { self.config.undecided_smoothing } else { self.config.label_smoothing }) as f32
    }

    /// The mails from which the deciding sentence can be taken.
    fn marked(&self) -> impl Iterator<Item = usize> + '_ {
        self.mails.iter().copied().filter(|&mail| self.undecided(mail).is_some())
    }

    fn undecided(&self, mail: usize) -> Option<EncodedEmail> {
        let Material { mails, seams, decisive, .. } = self.material;
        without_decisive(&mails[mail], &seams[mail], &decisive[mail])
    }
}
