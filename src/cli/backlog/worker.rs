//! Batches of mails through the service, side by side.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::mails::Item;
use super::row::Row;
use crate::inference::InferenceError;
use crate::routing::{Mail, RoutingError, RoutingService};

/// Mails on their way at a time: enough for full batches of the network.
const IN_FLIGHT: usize = 64;

/// Routes batches.
pub(super) struct Worker {
    service: Arc<RoutingService>,
    runtime: Runtime,
}

impl Worker {
    pub(super) fn new(service: Arc<RoutingService>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
        Ok(Self { service, runtime })
    }

    pub(super) fn service(&self) -> &RoutingService {
        &self.service
    }

    /// One row for each mail, in their order. A mail that cannot be answered is a row with the reason.
    pub(super) fn route(&self, items: Vec<Item>) -> anyhow::Result<Vec<Row>> {
        self.runtime.block_on(async {
            let places = Arc::new(Semaphore::new(IN_FLIGHT));
            let (mut tasks, mut rows) = (JoinSet::new(), Vec::new());
            rows.resize_with(items.len(), || None);
            for (index, item) in items.into_iter().enumerate() {
                let (service, places) = (Arc::clone(&self.service), Arc::clone(&places));
                tasks.spawn(async move {
                    let _place = places.acquire().await;
                    (index, row(&service, item).await)
                });
            }
            while let Some(finished) = tasks.join_next().await {
                let (index, row) = finished?;
                rows[index] = Some(row?);
            }
            Ok(rows.into_iter().flatten().collect())
        })
    }
}

async fn row(service: &Arc<RoutingService>, item: Item) -> anyhow::Result<Row> {
    let place = item.place.to_string();
    let mail = match item.mail {
        Ok(mail) => mail,
        Err(error) => return Ok(Row::failed(place, None, &error)),
    };
    let id = mail.id.clone();
    Ok(match decide(service, mail).await {
        Ok(decision) => Row::of(place, id, decision, item.cut),
        // The others would fail the same way.
        Err(error @ RoutingError::Inference(InferenceError::Closed)) => return Err(error.into()),
        Err(error) => Row::failed(place, id, &error),
    })
}

/// Waits where the model's queue is full: nobody is in a hurry here.
async fn decide(service: &Arc<RoutingService>, mail: Mail) -> Result<crate::routing::Decision, RoutingError> {
    loop {
        match service.route(mail.clone()).await {
            Err(RoutingError::Inference(InferenceError::Full { .. })) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            decided => return decided,
        }
    }
}
