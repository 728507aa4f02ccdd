//! Labelled mail and the queues that its labels name.

use super::TrainingError;
use crate::dataset::Example;
use crate::queues::{Queue, QueueSet, slug};

/// What is trained on.
#[derive(Debug, Clone)]
pub struct Labelled<'a> {
    pub(super) examples: &'a [Example],
    /// Sorted by id.
    pub(super) queues: Vec<Queue>,
    /// The queue of each mail.
    pub(super) targets: Vec<usize>,
}

impl<'a> Labelled<'a> {
    /// Mails of a queue that are needed to judge by.
    const LEAST: usize = 2;

    /// Takes the queues from the labels.
    ///
    /// # Errors
    /// Labels that make no set of queues, and queues with too few mails to judge by.
    pub fn new(examples: &'a [Example]) -> Result<Self, TrainingError> {
        let mut queues: Vec<Queue> = Vec::new();
        for example in examples {
            let id = slug(&example.queue);
            if !queues.iter().any(|queue| queue.id == id) {
                queues.push(Queue::new(&id, &name_of(&example.queue)));
            }
        }
        queues.sort_by(|a, b| a.id.cmp(&b.id));
        let set = QueueSet::new(queues.clone())?;
        let targets: Vec<usize> =
            examples.iter().map(|example| set.index_of(&slug(&example.queue)).unwrap_or_default()).collect();
        for (index, queue) in queues.iter().enumerate() {
            let judged = examples.iter().zip(&targets).filter(|(example, _)| !example.only_trained_on);
            let mails = judged.filter(|(_, target)| **target == index).count();
            if mails < Self::LEAST {
                return Err(TrainingError::TooFew { queue: queue.id.clone(), mails, least: Self::LEAST });
            }
        }
        Ok(Self { examples, queues, targets })
    }

    /// Takes over names and descriptions.
    ///
    /// # Errors
    /// A queue that no mail is labelled with: a slip in its id, not a silent gap.
    pub fn described(mut self, descriptions: Vec<Queue>) -> Result<Self, TrainingError> {
        for description in descriptions {
            match self.queues.iter_mut().find(|queue| queue.id == description.id) {
                Some(queue) => *queue = description,
                None => return Err(TrainingError::NoMail(description.id)),
            }
        }
        Ok(self)
    }

    /// Mails of a queue, on average.
    pub(super) fn mails_per_queue(&self) -> f64 {
        self.examples.len() as f64 / self.queues.len().max(1) as f64
    }

    /// What each queue says of itself, as a mail of its own that nothing is judged by.
    pub(super) fn descriptions(&self) -> impl Iterator<Item = Example> + '_ {
        self.queues.iter().map(|queue| Example { only_trained_on: true, ..as_mail(queue) })
    }
}

/// What a queue says of itself, as a mail.
pub(super) fn as_mail(queue: &Queue) -> Example {
    Example { subject: queue.name.clone(), text: queue.description.clone(), ..Example::default() }
}

/// A name for people: a slug gets blanks and a capital, anything else stays as written.
fn name_of(label: &str) -> String {
    if slug(label) != label {
        return label.to_owned();
    }
    let words = label.replace(['-', '_'], " ");
    let mut characters = words.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(queue: &str) -> Example {
        Example { text: "t".into(), queue: queue.into(), ..Example::default() }
    }

    fn error(examples: &[Example]) -> TrainingError {
        Labelled::new(examples).unwrap_err()
    }

    #[test]
    fn labels_that_differ_only_in_case_are_one_queue() {
        let examples = [example("Refunds"), example("refunds"), example("late-deliveries"), example("late-deliveries")];
        let labelled = Labelled::new(&examples).unwrap();
        assert_eq!(labelled.queues.len(), 2);
        assert_eq!(labelled.targets, [1, 1, 0, 0]);
        assert_eq!(labelled.queues[0].name, "Late deliveries");
        assert_eq!(labelled.mails_per_queue(), 2.0);
    }

    #[test]
    fn a_queue_with_one_mail_is_refused_with_a_remedy() {
        let error = error(&[example("a"), example("a"), example("b")]);
        assert!(error.to_string().contains("merge the queue"), "{error}");
    }

    #[test]
    fn a_queue_that_only_written_mail_is_labelled_with_cannot_be_judged() {
        let taught = |queue| Example { only_trained_on: true, ..example(queue) };
        let examples = [example("a"), example("a"), example("b"), taught("b"), taught("b")];
        assert!(matches!(error(&examples), TrainingError::TooFew { mails: 1, .. }));
    }

    #[test]
    fn one_queue_is_refused() {
        assert!(matches!(error(&[example("a")]), TrainingError::Queues(crate::queues::QueueError::TooFew(1))));
    }

    #[test]
    fn a_queue_says_of_itself_what_its_description_says() {
        let examples = [example("a"), example("a"), example("b"), example("b")];
        let b = Queue { description: "Bees.".into(), ..Queue::new("b", "Bs") };
        let labelled = Labelled::new(&examples).unwrap().described(vec![b.clone()]).unwrap();
        let said: Vec<Example> = labelled.descriptions().collect();
        assert!(said.iter().all(|mail| mail.only_trained_on));
        let words: Vec<(&str, &str)> = said.iter().map(|mail| (mail.subject.as_str(), mail.text.as_str())).collect();
        assert_eq!(words, [("A", ""), ("Bs", "Bees.")]);

        let unknown = Queue { id: "bs".into(), ..b };
        let error = Labelled::new(&examples).unwrap().described(vec![unknown]).unwrap_err().to_string();
        assert!(error.contains("`bs`") && error.contains("no mail is labelled"), "{error}");
    }
}
