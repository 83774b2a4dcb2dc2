//! A transport that keeps rmcp's loop alive where it would give up, and ends it where it would linger.

use std::borrow::Cow;

use rmcp::{
    RoleServer,
    model::JsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio_util::sync::CancellationToken;

/// A transport between rmcp and standard input and output.
///
/// rmcp quits when anything but a request comes first, so until then everything else is dropped; and it
/// waits for open handlers at the end of the input, so those that wait for the client are told.
pub(super) struct Guarded<T> {
    inner: T,
    input_ended: CancellationToken,
    begun: bool,
}

impl<T> Guarded<T> {
    /// Wraps a transport; the token fires when its input ends.
    pub(super) fn new(inner: T, input_ended: CancellationToken) -> Self {
        Self { inner, input_ended, begun: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Guarded<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        "guarded-stdio".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.input_ended.cancel();
                return None;
            };
            self.begun |= matches!(message, JsonRpcMessage::Request(_));
            if self.begun {
                return Some(message);
            }
            tracing::warn!("dropped a message that came before the first request");
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
