//! One HTTP exchange: no retries, errors with their headers, and a server's whole answer turned into a
//! stream of one piece.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use serde_json::Value;

use super::ApiKey;
use super::failure::causes;
use crate::ports::ModelError;

/// Both bounds guard against a server that is none.
const ERROR_BYTES: usize = 64 << 10;
const WHOLE_BYTES: usize = 32 << 20;
const CONNECT: Duration = Duration::from_secs(20);

/// Where requests go, and with which key.
pub(super) struct Endpoint {
    base: Url,
    authorization: Option<HeaderValue>,
}

impl Endpoint {
    pub fn new(model: &str, base_url: &str, key: Option<&ApiKey>) -> Result<Self, ModelError> {
        let unavailable = |message: String| ModelError::Unavailable {
            model: model.to_owned(),
            message,
        };
        let base = Url::parse(base_url.trim_end_matches('/'))
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| {
                unavailable(format!(
                    "base_url {base_url:?} is no address: write it like https://host/v1"
                ))
            })?;
        let authorization = key
            .map(|ApiKey(key)| {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| {
                        unavailable("the API key holds characters that no key has".into())
                    })?;
                value.set_sensitive(true);
                Ok(value)
            })
            .transpose()?;
        Ok(Endpoint {
            base,
            authorization,
        })
    }

    /// The address of one of its services.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    /// The address as it may be shown: a URL can hold a password or a key.
    pub fn address(&self) -> String {
        let mut shown = self.base.clone();
        // Neither can fail where there is a host.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        shown.set_query(None);
        shown.set_fragment(None);
        shown.as_str().trim_end_matches('/').to_owned()
    }

    /// The client library's own view. It would read the environment for whatever is not said here.
    pub fn config(&self) -> OpenAIConfig {
        OpenAIConfig::new()
            .with_api_base(self.url(""))
            .with_api_key("")
            .with_org_id("")
            .with_project_id("")
    }

    /// A server on this machine is never reached through a proxy.
    fn is_local(&self) -> bool {
        match self.base.host_str() {
            Some(host) => host == "localhost" || host == "[::1]" || host.starts_with("127."),
            None => false,
        }
    }
}

/// Why there is no stream to read.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    #[error("HTTP {status}")]
    Status {
        status: u16,
        retry_after: Option<Duration>,
        body: String,
    },
    /// Nothing was sent.
    #[error("{0}")]
    NoConnection(String),
    /// It broke on the way.
    #[error("{0}")]
    Connection(String),
    #[error("not a chat completion")]
    NotChat(String),
}

impl From<HttpFailure> for OpenAIError {
    fn from(failure: HttpFailure) -> Self {
        OpenAIError::Boxed(Box::new(failure))
    }
}

impl From<reqwest::Error> for HttpFailure {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        match error.is_connect() {
            true => HttpFailure::NoConnection(causes(&error)),
            false => HttpFailure::Connection(causes(&error)),
        }
    }
}

/// Sends each request once.
#[derive(Clone)]
pub(super) struct Transport {
    client: reqwest::Client,
    authorization: Option<HeaderValue>,
}

impl Transport {
    pub fn new(model: &str, endpoint: Endpoint) -> Result<Self, ModelError> {
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .user_agent(concat!("starling/", env!("CARGO_PKG_VERSION")));
        if endpoint.is_local() {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ModelError::Unavailable {
            model: model.to_owned(),
            message: format!("no HTTP client: {}", causes(&error)),
        })?;
        Ok(Transport {
            client,
            authorization: endpoint.authorization,
        })
    }

    pub fn client(&self) -> reqwest::Client {
        self.client.clone()
    }

    /// The status of a plain request.
    pub async fn get(&self, url: &str) -> Result<u16, HttpFailure> {
        let mut request = self.client.get(url);
        if let Some(value) = &self.authorization {
            request = request.header(AUTHORIZATION, value);
        }
        Ok(request.send().await?.status().as_u16())
    }
}

impl tower::Service<HttpRequestFactory> for Transport {
    type Response = Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let client = self.client.clone();
        let authorization = self.authorization.clone();
        Box::pin(async move {
            let mut request = factory.build().await?;
            // A server without keys may take offence at an empty one.
            match authorization {
                Some(value) => request.headers_mut().insert(AUTHORIZATION, value),
                None => request.headers_mut().remove(AUTHORIZATION),
            };
            let response = client.execute(request).await.map_err(HttpFailure::from)?;
            Ok(as_stream(response).await?)
        })
    }
}

async fn as_stream(response: Response) -> Result<Response, HttpFailure> {
    let status = response.status();
    if !status.is_success() {
        let retry_after = retry_after(response.headers());
        let body = read(response, ERROR_BYTES).await.unwrap_or_default();
        return Err(HttpFailure::Status {
            status: status.as_u16(),
            retry_after,
            body,
        });
    }
    let kind = response.headers().get(CONTENT_TYPE);
    let streams = kind
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("text/event-stream"));
    if streams {
        return Ok(response);
    }
    let body = read(response, WHOLE_BYTES).await?;
    let is_events = ["data:", "event:", "id:", "retry:", ":"]
        .iter()
        .any(|start| body.trim_start().starts_with(start));
    if is_events {
        return Ok(Response::from(http::Response::new(body)));
    }
    match serde_json::from_str::<Value>(&body) {
        Ok(whole) if whole.is_object() => Ok(Response::from(http::Response::new(format!(
            "data: {whole}\n\n"
        )))),
        Ok(_) | Err(_) => Err(HttpFailure::NotChat(body)),
    }
}

/// The body up to `limit` bytes; what is beyond is left unread.
async fn read(mut response: Response, limit: usize) -> Result<String, HttpFailure> {
    let mut bytes = Vec::new();
    while bytes.len() < limit {
        match response.chunk().await? {
            Some(chunk) => bytes.extend_from_slice(&chunk),
            None => break,
        }
    }
    bytes.truncate(limit);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Seconds, or milliseconds where the server gives them. The form with a date is not read: it needs
/// two clocks that agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.trim().parse::<f64>().ok())
    };
    let seconds = number("retry-after-ms")
        .map(|millis| millis / 1000.0)
        .or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}
