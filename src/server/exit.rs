//! `exit` ends the server even while stdin stays open.

use std::task::{Context, Poll};

use tokio_util::sync::CancellationToken;
use tower::Service;
use tower_lsp::jsonrpc::Request;

/// Stands in front of the LSP service and fires a token once `exit` was passed on.
#[derive(Debug)]
pub struct ExitGate<S> {
    pub inner: S,
    pub exit: CancellationToken,
}

impl<S: Service<Request>> Service<Request> for ExitGate<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> S::Future {
        let exit = request.method() == "exit";
        let future = self.inner.call(request);
        if exit {
            self.exit.cancel();
        }
        future
    }
}
