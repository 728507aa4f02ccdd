//! Work for the model's thread that is no mail to be routed: a part of an explanation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::InferenceError;
use crate::model::{Classifier, ModelError};

/// A job that is done.
pub(super) struct Done {
    /// What went wrong; the caller is told it as well.
    pub failed: Option<InferenceError>,
    /// Tells the caller.
    pub tell: Box<dyn FnOnce()>,
}

/// Something to be done with the network.
pub(super) trait Job: Send {
    /// Whether nobody waits for it any more.
    fn abandoned(&self) -> bool;

    /// Does it. The caller is told only when [`Done::tell`] is called.
    fn run(self: Box<Self>, classifier: &Classifier) -> Done;

    /// Tells the caller that it is not done.
    fn refuse(self: Box<Self>, why: InferenceError);
}

struct Asked<T, F> {
    work: F,
    reply: oneshot::Sender<Result<T, InferenceError>>,
}

impl<T, F> Job for Asked<T, F>
where
    T: Send + 'static,
    F: FnOnce(&Classifier) -> Result<T, ModelError> + Send,
{
    fn abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(self: Box<Self>, classifier: &Classifier) -> Done {
        let Self { work, reply } = *self;
        // The classifier holds no state that a panic could leave half changed.
        let done = match catch_unwind(AssertUnwindSafe(|| work(classifier))) {
            Ok(done) => done.map_err(|source| InferenceError::Model(Arc::new(source))),
            Err(_) => Err(InferenceError::Panicked),
        };
        let failed = done.as_ref().err().cloned();
        // An error here means that the caller has gone.
        Done { failed, tell: Box::new(|| drop(reply.send(done))) }
    }

    fn refuse(self: Box<Self>, why: InferenceError) {
        let _ = self.reply.send(Err(why));
    }
}

/// A job, and where its answer comes.
pub(super) fn job<T, F>(work: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T, InferenceError>>)
where
    T: Send + 'static,
    F: FnOnce(&Classifier) -> Result<T, ModelError> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Asked { work, reply }), answer)
}
