//! Changes that need no mail: rename, switch on and off, merge, remove.

use super::{QueueChangeError, card, check, known};
use crate::artifact::{HeadTensors, StoredRouter};
use crate::lexical::Gate;

/// Gives a queue another name, and another description where there is one. Its id and its weights stay.
///
/// # Errors
/// [`QueueChangeError`] for an unknown id and a blank name.
pub fn rename(
    router: &mut StoredRouter,
    id: &str,
    name: &str,
    description: Option<&str>,
) -> Result<(), QueueChangeError> {
    let index = known(router, id)?;
    let queue = &mut router.manifest.queues[index];
    let old = std::mem::replace(&mut queue.name, name.trim().to_owned());
    if let Some(description) = description {
        description.trim().clone_into(&mut queue.description);
    }
    check(router.manifest.queues.clone())?;
    card::tell(router, &format!("`{id}` was called {old} before."));
    Ok(())
}

/// Switches a queue on or off. The network still knows a queue that is off; mail for it goes to a person.
///
/// # Errors
/// [`QueueChangeError::Unknown`].
pub fn set_enabled(router: &mut StoredRouter, id: &str, enabled: bool) -> Result<(), QueueChangeError> {
    let index = known(router, id)?;
    router.manifest.queues[index].enabled = enabled;
    card::tell(router, &format!("`{id}` was switched {}.", if enabled { "on" } else { "off" }));
    Ok(())
}

/// Makes queues parts of another: their probabilities add up, those of the other queues stay. Their ids live on as aliases.
///
/// What was promised of the parts holds for the whole: it takes the strictest of their thresholds and the most watchful of
/// their guards. With a part that is only suggested, the whole is only suggested.
///
/// # Errors
/// [`QueueChangeError`] for unknown ids and where fewer than two queues would be left.
pub fn merge(router: &mut StoredRouter, from: &[String], into: &str) -> Result<(), QueueChangeError> {
    known(router, into)?;
    for (place, id) in from.iter().enumerate() {
        known(router, id)?;
        if id == into {
            return Err(QueueChangeError::IntoItself(id.clone()));
        }
        if from[..place].contains(id) {
            return Err(crate::queues::QueueError::Twice(id.clone()).into());
        }
    }
    let left = |queue: &&crate::queues::Queue| !from.contains(&queue.id);
    check(router.manifest.queues.iter().filter(left).cloned().collect())?;
    for id in from {
        merge_one(router, id, into)?;
    }
    card::tell(router, &format!("`{}` became part of `{into}`.", from.join("`, `")));
    Ok(())
}

fn merge_one(router: &mut StoredRouter, from: &str, into: &str) -> Result<(), QueueChangeError> {
    let (part, whole) = (known(router, from)?, known(router, into)?);
    router.groups = router.groups.clone().merged(part, whole);
    let manifest = &mut router.manifest;
    manifest.queues[whole].suggest_only |= manifest.queues[part].suggest_only;
    manifest.queues.remove(part);
    manifest.aliases.values_mut().filter(|id| *id == from).for_each(|id| into.clone_into(id));
    manifest.aliases.insert(from.to_owned(), into.to_owned());

    let calibration = &mut manifest.calibration;
    let own = [from, into].map(|id| calibration.queue_thresholds.remove(id));
    if own.iter().any(Option::is_some) {
        let strictest = own.map(|own| own.unwrap_or(calibration.threshold)).into_iter().fold(0.0, f64::max);
        calibration.queue_thresholds.insert(into.to_owned(), strictest);
    }
    let guards = [from, into].map(|id| calibration.guards.remove(id));
    if let Some(guard) = guards.into_iter().flatten().reduce(f64::min) {
        calibration.guards.insert(into.to_owned(), guard);
    }
    manifest.figures.queues.retain(|id, _| id != from && id != into);
    let behind = usize::from(whole > part);
    for mail in router.memory.iter_mut().flat_map(|memory| &mut memory.mails) {
        mail.queue = if mail.queue == part { whole - behind } else { mail.queue - usize::from(mail.queue > part) };
    }
    Ok(())
}

/// Takes a queue out: its logits leave the softmax, and what the router remembers of its mail goes.
///
/// # Errors
/// [`QueueChangeError`] for an unknown id and where fewer than two queues would be left.
pub fn remove(router: &mut StoredRouter, id: &str) -> Result<(), QueueChangeError> {
    let index = known(router, id)?;
    let mut queues = router.manifest.queues.clone();
    queues.remove(index);
    check(queues.clone())?;
    let gone = router.groups.of_queue(index).to_vec();
    let width = router.head.d_model;
    let HeadTensors { query, weight, bias, .. } = &mut router.head;
    [query, weight].into_iter().for_each(|matrix| drop_rows(matrix, width, &gone));
    drop_rows(bias, 1, &gone);
    if let Some(lexical) = &mut router.lexical {
        drop_rows(&mut lexical.weight, lexical.vocabulary.len(), &gone);
        drop_rows(&mut lexical.bias, 1, &gone);
        lexical.gate.logits -= gone.iter().filter(|&&logit| logit < lexical.gate.logits).count();
        if lexical.gate.logits < 2 {
            // Of one queue alone the encoder is always sure.
            lexical.gate = Gate::default();
        }
    }
    if let Some(memory) = &mut router.memory {
        // Where the words stand behind a gate, the share that they had beside the queue that goes stays in the remembered logits:
        // a little less than they have now, for mail that the encoder was unsure of because of that queue.
        memory.mails.retain(|mail| mail.queue != index);
        for mail in &mut memory.mails {
            mail.queue -= usize::from(mail.queue > index);
            drop_rows(&mut mail.logits, 1, &gone);
        }
    }
    router.groups = router.groups.clone().without(index);
    let manifest = &mut router.manifest;
    manifest.queues = queues;
    manifest.aliases.retain(|_, queue| queue != id);
    manifest.calibration.queue_thresholds.remove(id);
    manifest.calibration.guards.remove(id);
    manifest.figures.queues.remove(id);
    card::tell(router, &format!("`{id}` was removed."));
    Ok(())
}

fn drop_rows(matrix: &mut Vec<f32>, width: usize, gone: &[usize]) {
    let mut at = 0;
    matrix.retain(|_| {
        at += 1;
        !gone.contains(&((at - 1) / width.max(1)))
    });
}
