//! A new queue for a finished router, learnt in seconds: only its own row is fitted, the other rows stay as they are.
//!
//! With examples the row is fitted on them, on the queue's description as one more example, and on mail of the other queues.
//! With a description alone the row is its direction, and the queue is only suggested.

use super::examples::{Conflict, LeftOut, Standing};
use super::row::NewRow;
use super::seen::{Seen, look};
use super::{QueueChangeError, card, check, ids};
use crate::artifact::{Memory, Remembered, Router, StoredRouter};
use crate::dataset::Example;
use crate::email::CleanOptions;
use crate::queues::Queue;
use crate::random::SplitMix64;
use crate::training::labelled::as_mail;

/// The queue to add and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct NewQueue<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it is for; counts as one more example.
    pub description: &'a str,
    /// Mail of it.
    pub examples: &'a [Example],
    /// Labelled mail of the other queues; `None`: what the router remembers.
    pub others: Option<&'a [Example]>,
}

/// Settings of the fit.
#[derive(Debug, Clone, PartialEq)]
pub struct AddConfig {
    /// Inverse strength of the L2 penalty on the new row. Much larger than a head's: the row has to reach logits that are already
    /// there. The larger, the less of the others' unseen mail moves, and the less of the new queue's is found (docs/queues.md).
    pub c: f64,
    /// Most mails of each other queue that are read where they do not come from the memory.
    pub others_per_queue: usize,
    /// Seed of that draw.
    pub seed: u64,
    /// How mail is read.
    pub email: CleanOptions,
}

impl Default for AddConfig {
    fn default() -> Self {
        Self { c: 1000.0, others_per_queue: 64, seed: 0, email: CleanOptions::default() }
    }
}

/// What adding a queue did, on the mail at hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Added {
    /// Mails of the new queue that it was learnt from.
    pub examples: usize,
    /// Mails of the other queues that went to the right one before.
    pub others_right: usize,
    /// Those of them that go to the new queue now.
    pub others_moved: usize,
    /// How the row does on examples that it was not fitted on; `None` for fewer than two.
    pub left_out: Option<LeftOut>,
    /// Examples that look like mail of another queue.
    pub conflicts: Vec<Conflict>,
}

/// Adds a queue behind the others. `network` is the same router, loaded. `progress` is told mails done and mails in all.
///
/// # Errors
/// [`QueueChangeError`], with the remedy; the router is then as it was.
pub fn add(
    router: &mut StoredRouter,
    network: &Router,
    new: &NewQueue<'_>,
    config: &AddConfig,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Added, QueueChangeError> {
    let queue = checked(router, new)?;
    let own = look(network, &[as_mail(&queue)], &config.email, &mut |_, _| ())?;
    let own: Vec<Seen> = own.into_iter().chain(look(network, new.examples, &config.email, progress)?).collect();
    let others = others(router, network, new, config, progress)?;
    let scale = Scale::of(router, own.iter().map(|seen| &seen.pooled).chain(others.iter().map(|mail| &mail.pooled)));
    let standing = Standing {
        network: &network.info,
        temperature: router.manifest.calibration.temperature,
        own: own.iter().map(|seen| (scale.features(&seen.pooled), seen.logits.clone())).collect(),
        others: others.iter().map(|mail| (scale.features(&mail.pooled), mail.logits.clone(), mail.queue)).collect(),
    };
    // The description is the first of the new queue's own mails; without examples it is all there is.
    let described = !queue.description.is_empty();
    let row = if queue.suggest_only { standing.direction() } else { standing.fit(config.c, described, None) };
    let left_out = (new.examples.len() >= 2).then(|| standing.leave_one_out(config.c, described));
    let (left_out, judged) = left_out.map_or((None, Vec::new()), |(left_out, judged)| (Some(left_out), judged));
    let (others_right, others_moved) = standing.moved(&row);
    let added = Added {
        examples: new.examples.len(),
        others_right,
        others_moved,
        left_out,
        conflicts: standing.conflicts(&judged, new.examples, &ids(router)),
    };
    put(router, queue, &row, &scale, &own[1..]);
    Ok(added)
}

/// The new queue, if the router can have it.
fn checked(router: &StoredRouter, new: &NewQueue<'_>) -> Result<Queue, QueueChangeError> {
    if router.index_of(new.id).is_some() {
        return Err(QueueChangeError::Exists(new.id.to_owned()));
    }
    if let Some(queue) = router.manifest.aliases.get(new.id) {
        return Err(QueueChangeError::Retired { old: new.id.to_owned(), queue: queue.clone() });
    }
    let (name, description) = (new.name.trim(), new.description.trim());
    if description.is_empty() && new.examples.is_empty() {
        return Err(QueueChangeError::NothingToKnowItBy);
    }
    let queue = Queue {
        description: description.to_owned(),
        suggest_only: new.examples.is_empty(),
        ..Queue::new(new.id, name)
    };
    check(router.manifest.queues.iter().cloned().chain([queue.clone()]).collect())?;
    Ok(queue)
}

/// Mail of the other queues as the network sees it: what was given, what the router remembers, or for a queue that is only
/// suggested the descriptions of the others.
fn others(
    router: &StoredRouter,
    network: &Router,
    new: &NewQueue<'_>,
    config: &AddConfig,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Remembered>, QueueChangeError> {
    let queues = &network.info.queues;
    let (mails, targets): (Vec<Example>, Vec<usize>) = match (new.others, &router.memory) {
        (Some(mails), _) => drawn(router, network, mails, config)?,
        (None, Some(memory)) if !memory.mails.is_empty() => return Ok(memory.mails.clone()),
        _ if new.examples.is_empty() => (queues.iter().map(as_mail).collect(), (0..queues.len()).collect()),
        _ => return Err(QueueChangeError::NoMemory),
    };
    let seen = look(network, &mails, &config.email, progress)?;
    let remembered = |(Seen { pooled, logits }, queue)| Remembered { queue, pooled, logits };
    Ok(seen.into_iter().zip(targets).map(remembered).collect())
}

/// At most so many mails of each queue as the settings say, with their queues.
fn drawn(
    router: &StoredRouter,
    network: &Router,
    mails: &[Example],
    config: &AddConfig,
) -> Result<(Vec<Example>, Vec<usize>), QueueChangeError> {
    let mut order: Vec<usize> = (0..mails.len()).collect();
    SplitMix64::seeded(config.seed).shuffle(&mut order);
    let mut room = vec![config.others_per_queue; network.info.queues.len()];
    let (mut drawn, mut targets) = (Vec::new(), Vec::new());
    for mail in order.into_iter().map(|mail| &mails[mail]) {
        let target = network.info.index_of_label(&mail.queue).ok_or_else(|| QueueChangeError::UnknownLabel {
            mail: mail.id.clone(),
            label: mail.queue.clone(),
            queues: ids(router),
        })?;
        if room[target] > 0 {
            room[target] -= 1;
            drawn.push(mail.clone());
            targets.push(target);
        }
    }
    Ok((drawn, targets))
}

/// From pooled vectors to what the row is fitted on, and back.
struct Scale {
    /// The head scales each vector to length 1.
    unit: bool,
    /// Else all are divided by their mean length, so that one penalty fits every encoder.
    mean_length: f64,
}

impl Scale {
    fn of<'v>(router: &StoredRouter, vectors: impl Iterator<Item = &'v Vec<f32>>) -> Self {
        let (sum, count) = vectors.fold((0.0, 0usize), |(sum, count), vector| (sum + length(vector), count + 1));
        let mean_length = (sum / count.max(1) as f64).max(1e-12);
        Self { unit: router.head.query.is_empty(), mean_length }
    }

    fn features(&self, pooled: &[f32]) -> Vec<f32> {
        let length = if self.unit { length(pooled).max(1e-12) } else { self.mean_length };
        pooled.iter().map(|x| x / length as f32).collect()
    }
}

fn length(vector: &[f32]) -> f64 {
    vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

/// Puts the queue, its row, and what is to be remembered of its mail behind the others.
fn put(router: &mut StoredRouter, queue: Queue, row: &NewRow, scale: &Scale, examples: &[Seen]) {
    let temperature = router.manifest.calibration.temperature;
    let factor = if scale.unit { temperature } else { temperature / scale.mean_length };
    router.head.weight.extend(row.weight.iter().map(|weight| (weight * factor) as f32));
    router.head.bias.push((row.bias * temperature) as f32);
    if !router.head.query.is_empty() {
        // A query of zeros weighs all tokens alike: mean pooling.
        router.head.query.resize(router.head.weight.len(), 0.0);
    }
    if let Some(lexical) = &mut router.lexical {
        lexical.weight.resize(lexical.weight.len() + lexical.vocabulary.len(), 0.0);
        lexical.bias.push(0.0);
    }
    if let Some(memory) = &mut router.memory {
        let own = router.manifest.queues.len();
        let fresh = examples.iter().take(Memory::MAILS_PER_QUEUE);
        let fresh = fresh.map(|Seen { pooled, logits }| (own, pooled.clone(), logits.clone()));
        memory.mails.extend(fresh.map(|(queue, pooled, logits)| Remembered { queue, pooled, logits }));
        for mail in &mut memory.mails {
            mail.logits.push((row.logit(&scale.features(&mail.pooled)) * temperature) as f32);
        }
    }
    router.groups = router.groups.clone().with_one_more();
    let known_by = match examples.len() {
        0 => "its description; it is only suggested".to_owned(),
        mails => format!("{mails} mails"),
    };
    if queue.suggest_only {
        // The figures of an evaluation, too, must not count it as routed alone.
        router.manifest.calibration.queue_thresholds.insert(queue.id.clone(), 1.0);
    }
    let line = format!("`{}` was added by {known_by}. The other queues' weights are those of the training.", queue.id);
    router.manifest.queues.push(queue);
    card::tell(router, &line);
}
