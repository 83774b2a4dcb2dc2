//! Telling subscribers that a session changed: by `subscriptions/listen`, and to clients with a handshake by
//! `resources/subscribe`.
//!
//! Only changes that go through this process are seen.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::SubscriptionContext,
};
use tokio::sync::broadcast;

use crate::{mcp::resources, vocab::SessionId};

/// How many changes may wait for a slow subscriber before it misses some.
const WAITING: usize = 64;

/// Who wants to know what.
#[derive(Debug)]
pub(super) struct Updates {
    sender: broadcast::Sender<Change>,
    /// What the client with a handshake has subscribed to; a process has one client.
    subscribed: Mutex<BTreeSet<String>>,
}

/// A session that changed.
#[derive(Debug, Clone)]
struct Change {
    session: SessionId,
    is_new: bool,
}

impl Default for Updates {
    fn default() -> Self {
        Self { sender: broadcast::channel(WAITING).0, subscribed: Mutex::default() }
    }
}

impl Updates {
    /// Tells everybody who asked; `is_new` when the list of resources is longer now.
    pub(super) async fn changed(&self, session: &SessionId, is_new: bool, peer: &Peer<RoleServer>) {
        // Without subscribers there is nobody to tell.
        let _ = self.sender.send(Change { session: session.clone(), is_new });
        if peer.peer_info().is_none() {
            return;
        }
        let wanted: Vec<String> = {
            let subscribed = self.subscribed();
            resources::of_session(session)
                .into_iter()
                .filter(|uri| subscribed.contains(uri))
                .collect()
        };
        for uri in wanted {
            let update = ResourceUpdatedNotificationParam::new(uri);
            log_failure(peer.notify_resource_updated(update).await);
        }
        if is_new {
            log_failure(peer.notify_resource_list_changed().await);
        }
    }

    /// Passes changes on to one subscription, for as long as it is open.
    pub(super) async fn forward(&self, subscription: &SubscriptionContext) {
        let mut changes = self.sender.subscribe();
        let accepted = subscription.accepted();
        let wanted = accepted.resource_subscriptions.clone().unwrap_or_default();
        loop {
            let change = match changes.recv().await {
                Ok(change) => change,
                Err(broadcast::error::RecvError::Lagged(missed)) => {
                    tracing::warn!("a subscriber was too slow and missed {missed} changes");
                    continue;
                }
                Err(broadcast::error::RecvError::Closed) => return,
            };
            let uris = resources::of_session(&change.session);
            for uri in uris.into_iter().filter(|uri| wanted.contains(uri)) {
                log_failure(subscription.sink().notify_resource_updated(uri).await);
            }
            if change.is_new && accepted.resources_list_changed == Some(true) {
                log_failure(subscription.sink().notify_resource_list_changed().await);
            }
        }
    }

    /// Remembers a subscription of a client with a handshake.
    ///
    /// # Errors
    ///
    /// When nothing of that name ever changes.
    pub(super) fn subscribe(&self, uri: String) -> Result<(), ErrorData> {
        if !resources::changes(&uri) {
            return Err(ErrorData::resource_not_found(
                "only sessions change",
                Some(serde_json::json!({ "uri": uri })),
            ));
        }
        self.subscribed().insert(uri);
        Ok(())
    }

    /// Forgets one.
    pub(super) fn unsubscribe(&self, uri: &str) {
        self.subscribed().remove(uri);
    }

    fn subscribed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What of a request can be promised: the lists of tools and prompts never change while a server runs.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.resource_subscriptions = requested
        .resource_subscriptions
        .as_ref()
        .map(|uris| uris.iter().filter(|uri| resources::changes(uri)).cloned().collect());
    accepted
}

fn log_failure<E: std::fmt::Display>(sent: Result<(), E>) {
    if let Err(error) = sent {
        tracing::debug!("an update was not sent: {error}");
    }
}
