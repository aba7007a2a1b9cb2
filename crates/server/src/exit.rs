//! A wrapper of the LSP service. It ends the server on `exit` even while stdin stays open, and it
//! accepts `params: null`, which some clients send instead of no parameters.

use std::task::{Context, Poll};

use tokio_util::sync::CancellationToken;
use tower::Service;
use tower_lsp::jsonrpc::Request;

use super::protocol::{MODELS, STATE};

/// Wraps the LSP service, and cancels a token after it passed `exit` to the service.
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
        let future = self.inner.call(without_null(request));
        if exit {
            self.exit.cancel();
        }
        future
    }
}

fn without_null(request: Request) -> Request {
    // These methods take no parameters. Clients that cannot omit parameters send an empty object.
    let takes_none = [STATE, MODELS].contains(&request.method());
    let is_nothing = |params: &serde_json::Value| params.is_null() || takes_none;
    if !request.params().is_some_and(is_nothing) {
        return request;
    }
    let (method, id, _) = request.into_parts();
    let plain = Request::build(method);
    match id {
        Some(id) => plain.id(id).finish(),
        None => plain.finish(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_and_empty_request_parameters_count_as_absent() {
        let request = |value| -> Request { serde_json::from_value(value).unwrap() };
        let shutdown = json!({"jsonrpc": "2.0", "id": 3, "method": "shutdown"});
        let mut with_null = shutdown.clone();
        with_null["params"] = json!(null);
        let built = Request::build("shutdown")
            .id(3)
            .params(json!(null))
            .finish();
        assert_eq!(without_null(built), request(shutdown.clone()));
        assert_eq!(without_null(request(with_null)), request(shutdown));
        let state = json!({"jsonrpc": "2.0", "id": 3, "method": "starling/state", "params": {}});
        assert_eq!(without_null(request(state)).params(), None);
        let open = json!({"jsonrpc": "2.0", "method": "x", "params": {"a": null}});
        assert_eq!(without_null(request(open.clone())), request(open));
    }
}
