//! Waiting for work while the client can see that something goes on, and can take its request back.

use std::{pin::pin, time::Duration};

use rmcp::{RoleServer, model::ProgressNotificationParam, service::RequestContext};

/// Work that takes no longer than this is not worth a word.
const FIRST: Duration = Duration::from_millis(500);

/// Clients count a call without progress as dead after 30 seconds or more.
const LATER: Duration = Duration::from_secs(5);

/// The outcome of the work; `None` when the client cancelled its request first.
pub(super) async fn watched<T>(
    context: &RequestContext<RoleServer>,
    doing: &str,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let token = context.meta.get_progress_token();
    let (mut ticks, mut pause) = (0_u32, FIRST);
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            () = context.ct.cancelled() => return None,
            () = tokio::time::sleep(pause) => {
                ticks += 1;
                pause = LATER;
                if let Some(token) = &token {
                    let progress = ProgressNotificationParam::new(token.clone(), f64::from(ticks))
                        .with_message(doing);
                    if let Err(error) = context.peer.notify_progress(progress).await {
                        tracing::debug!("progress was not sent: {error}");
                    }
                }
            }
        }
    }
}
