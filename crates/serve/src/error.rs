//! Errors in OpenAI's format.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use starling_core::ModelError;

/// Number of seconds after which a refused client should try again.
const RETRY_AFTER: u64 = 2;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    pub status: StatusCode,
    pub message: String,
    /// The invalid field of the request, if the error is about one field.
    pub param: Option<&'static str>,
    pub code: Option<&'static str>,
}

impl ApiError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            param: None,
            code: None,
        }
    }

    /// Creates an error about the request as a whole.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Creates an error about the value of one field.
    pub fn unsupported(param: &'static str, message: impl Into<String>) -> Self {
        Self {
            param: Some(param),
            code: Some("unsupported_value"),
            ..Self::invalid(message)
        }
    }

    pub fn queue_full(limit: usize) -> Self {
        let message = format!(
            "the queue is full: {limit} requests wait for the model. Try again later, or start the \
             server with a larger --queue"
        );
        Self {
            code: Some("queue_full"),
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, message)
        }
    }

    pub fn ending() -> Self {
        Self {
            code: Some("server_ending"),
            ..Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the server is shutting down",
            )
        }
    }

    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// Returns the body of the response.
    pub fn body(&self) -> Value {
        json!({ "error": {
            "message": self.message,
            "type": self.kind(),
            "param": self.param,
            "code": self.code,
        }})
    }
}

impl From<ModelError> for ApiError {
    fn from(error: ModelError) -> Self {
        let message = error.to_string();
        match error {
            ModelError::TooLong { .. } => Self {
                param: Some("messages"),
                code: Some("context_length_exceeded"),
                ..Self::invalid(message)
            },
            ModelError::Refused { status: 400, .. } => Self::invalid(message),
            _ => Self::new(StatusCode::SERVICE_UNAVAILABLE, message),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = json_response(self.status, &self.body());
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER));
        }
        response
    }
}

/// Returns a response with a JSON body.
pub fn json_response(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
