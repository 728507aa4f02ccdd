//! Mail that is for none of the queues: how well a router tells it from its own.

use serde::Serialize;

use super::JudgedMail;
use crate::artifact::RouterInfo;
use crate::metrics::{auroc, energy};

/// What a router did with mail for nobody.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nobody {
    /// Mails for nobody.
    pub mails: usize,
    /// Of these, called out of scope.
    pub out_of_scope: usize,
    /// Of these, routed without a person: all wrong.
    pub routed_alone: usize,
    /// How often a mail of a queue has more energy than a mail for nobody, 0.5 by chance; `None` without either.
    pub auroc: Option<f64>,
}

impl Nobody {
    /// Counts what a router said of mail for nobody, beside what it said of its own (`known`). `threshold` is that of the
    /// settings, in place of all of the router's.
    #[must_use]
    pub fn of(info: &RouterInfo, known: &[JudgedMail], nobodys: &[JudgedMail], threshold: Option<f64>) -> Self {
        let queue = |index: usize| info.queues.get(index);
        let answers: Vec<_> = nobodys.iter().map(|mail| mail.judge(&info.calibration, threshold, queue)).collect();
        let all = || known.iter().map(|mail| (mail, true)).chain(nobodys.iter().map(|mail| (mail, false)));
        let energies: Vec<f64> = all().map(|(mail, _)| energy(&mail.logits, info.calibration.temperature)).collect();
        Self {
            mails: nobodys.len(),
            out_of_scope: answers.iter().filter(|answer| answer.out_of_scope).count(),
            routed_alone: answers.iter().filter(|answer| answer.routed_alone()).count(),
            auroc: auroc(&energies, &all().map(|(_, known)| known).collect::<Vec<bool>>()),
        }
    }
}
