//! Handles [`starling_core::CALL_PATH`]: gives other Starling processes the complete interface of
//! the model.

use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::call::Call;
use crate::parameters::parse;
use crate::server::Server;
use crate::stream;

/// Handles one request.
pub fn answer(server: &Server, body: Value) -> Response {
    match parse(body).and_then(|request| Call::start(server, request)) {
        Ok(call) => stream::lines(call),
        Err(error) => error.into_response(),
    }
}
