//! The HTTP routes of the server.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::access::{check_host, check_key};
use crate::call::Call;
use crate::error::{ApiError, json_response};
use crate::parameters::{Settings, unknown_model};
use crate::reply::{Form, ReplyWriter};
use crate::server::{Phase, Server};
use crate::{chat, completion, native, stream};
use starling_core::{CALL_PATH, CallEvent, ChatRequest};

/// Maximum size of a request body in bytes.
pub const LONGEST_BODY: usize = 16 << 20;

type Shared = State<Arc<Server>>;
type Body = Result<Bytes, BytesRejection>;

/// Returns the router with all routes of the server.
pub fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/v1/models", get(models))
        .route("/v1/models/{model}", get(model))
        .route("/v1/chat/completions", post(chat_completion))
        .route("/v1/completions", post(text_completion))
        .route(CALL_PATH, post(call))
        .fallback(no_path)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(middleware::from_fn_with_state(server.clone(), guard))
        .with_state(server)
}

/// Checks the host and the API key of a request, and counts the response.
async fn guard(State(server): Shared, request: Request, next: Next) -> Response {
    let response = match admit(&server, request.headers(), request.uri().path()) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    server.metrics.answered(response.status().as_u16());
    response
}

fn admit(server: &Server, headers: &HeaderMap, path: &str) -> Result<(), ApiError> {
    if !server.options.remote {
        check_host(headers)?;
    }
    match (path, &server.options.key) {
        (CALL_PATH, _) => check_key(headers, &server.options.call_key),
        ("/health", _) | (_, None) => Ok(()),
        (_, Some(key)) => check_key(headers, key),
    }
}

async fn health(State(server): Shared) -> Response {
    if *server.phase.borrow() != Phase::Open {
        return ApiError::ending().into_response();
    }
    json_response(
        StatusCode::OK,
        &json!({ "status": "ok", "model": server.name() }),
    )
}

async fn metrics(State(server): Shared) -> Response {
    let text = server.metrics.render((server.options.resident)());
    let mut response = text.into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn described(server: &Server) -> Value {
    json!({
        "id": server.name(),
        "object": "model",
        "created": server.started(),
        "owned_by": "starling",
        "context_window": server.model.profile().context_window.0,
    })
}

async fn models(State(server): Shared) -> Response {
    let list = json!({ "object": "list", "data": [described(&server)] });
    json_response(StatusCode::OK, &list)
}

async fn model(State(server): Shared, Path(model): Path<String>) -> Response {
    match server.options.names.contains(&model) {
        true => json_response(StatusCode::OK, &described(&server)),
        false => unknown_model(&server, &model).into_response(),
    }
}

async fn chat_completion(State(server): Shared, headers: HeaderMap, body: Body) -> Response {
    let read = json_body(&headers, body).and_then(|body| chat::read(&server, body));
    answer(&server, Form::Chat, read).await
}

async fn text_completion(State(server): Shared, headers: HeaderMap, body: Body) -> Response {
    let read = json_body(&headers, body).and_then(|body| completion::read(&server, body));
    answer(&server, Form::Completion, read).await
}

async fn call(State(server): Shared, headers: HeaderMap, body: Body) -> Response {
    match json_body(&headers, body) {
        Ok(body) => native::answer(&server, body),
        Err(error) => error.into_response(),
    }
}

async fn no_path(request: Request) -> ApiError {
    let message = format!("there is no path {}", request.uri().path());
    ApiError::new(StatusCode::NOT_FOUND, message)
}

async fn no_method(request: Request) -> ApiError {
    let message = format!(
        "the method {} is not supported for {}",
        request.method(),
        request.uri().path()
    );
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

/// Parses a JSON body. Requires the content type `application/json`, which a web page of another
/// origin can send only after a CORS preflight request.
fn json_body(headers: &HeaderMap, body: Body) -> Result<Value, ApiError> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        return Err(ApiError::invalid(
            "the header `Content-Type` must be application/json",
        ));
    }
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the request is larger than {} MiB", LONGEST_BODY >> 20),
        ),
        _ => ApiError::invalid(rejection.body_text()),
    })?;
    serde_json::from_slice(&body)
        .map_err(|error| ApiError::invalid(format!("the request is not JSON: {error}")))
}

async fn answer(
    server: &Server,
    form: Form,
    read: Result<(ChatRequest, Settings), ApiError>,
) -> Response {
    match try_answer(server, form, read).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn try_answer(
    server: &Server,
    form: Form,
    read: Result<(ChatRequest, Settings), ApiError>,
) -> Result<Response, ApiError> {
    let (request, settings) = read?;
    let mut writer = ReplyWriter::new(server, form, &request, &settings);
    let mut call = Call::start(server, request)?;
    let mut event = call.first().await?;
    if settings.stream {
        return Ok(stream::events(call, event, writer));
    }
    loop {
        match event {
            CallEvent::Done(reply) => {
                return Ok(json_response(StatusCode::OK, &writer.whole(&(*reply)?)));
            }
            CallEvent::Delta(piece) => drop(writer.push(&piece)),
            CallEvent::Started | CallEvent::Notice(_) => {}
        }
        event = call.next().await?;
    }
}
