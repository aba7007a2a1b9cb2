//! Performs single HTTP requests without retries or redirects. Error responses keep their headers;
//! a complete JSON answer becomes a stream with one event.

use std::time::{Duration, SystemTime};

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Response, Url};
use serde_json::{Map, Value};

use super::ApiKey;
use super::events::{EventStream, MOST_BYTES, too_large};
use super::failure::causes;
use super::secret::SecretMasker;
use super::surrogates;
use crate::http;
use starling_core::ModelError;

/// Maximum number of bytes to read of an error's body.
const ERROR_BYTES: usize = 64 << 10;
/// Maximum length of a list of models in bytes.
const LIST_BYTES: usize = 4 << 20;
const CONNECT: Duration = Duration::from_secs(20);

/// The address of an API and the authorization for it.
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
                    "base_url {base_url:?} is not a valid URL: write it in the form https://host/v1"
                ))
            })?;
        let authorization = key
            .map(|ApiKey(key)| {
                let mut value =
                    HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| {
                        unavailable(
                            "the API key contains characters that are not allowed in a key".into(),
                        )
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

    /// Returns the URL of one of the API's paths.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    /// Returns the address for display, without password and query, which may contain a key.
    pub fn address(&self) -> String {
        let mut shown = self.base.clone();
        // Both calls only fail for a URL without a host.
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        shown.set_query(None);
        shown.set_fragment(None);
        shown.as_str().trim_end_matches('/').to_owned()
    }

    /// Returns the secrets that must not be shown: the key, and a user name or password in the URL.
    pub fn secrets(&self, key: Option<&ApiKey>) -> SecretMasker {
        let key = key.map(|ApiKey(key)| key.as_str());
        let password = self.base.password();
        SecretMasker::new(
            key.into_iter()
                .chain(password)
                .chain([self.base.username()]),
        )
    }

    /// Whether the server is on this machine. Such a server is never reached through a proxy.
    fn is_local(&self) -> bool {
        match self.base.host_str() {
            Some(host) => host == "localhost" || host == "[::1]" || host.starts_with("127."),
            None => false,
        }
    }
}

/// Why a request returned no stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    #[error("HTTP {status}")]
    Status {
        status: u16,
        retry_after: Option<Duration>,
        body: String,
    },
    /// The server redirects to another address.
    #[error("HTTP {status}")]
    Redirect { status: u16, location: String },
    /// The connection failed before anything was sent.
    #[error("{0}")]
    NoConnection(String),
    /// The connection broke after the request was sent.
    #[error("{0}")]
    Connection(String),
    #[error("not a chat completion")]
    NotChat(String),
    #[error("{0}")]
    TooLarge(String),
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

/// An HTTP client for one URL. It never follows redirects.
pub(super) struct Transport {
    client: reqwest::Client,
    url: String,
    authorization: Option<HeaderValue>,
}

impl Transport {
    /// Creates a client for one path of an endpoint.
    pub fn new(model: &str, endpoint: Endpoint, path: &str) -> Result<Self, ModelError> {
        let mut builder = http::client()
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
            url: endpoint.url(path),
            authorization: endpoint.authorization,
        })
    }

    /// Performs a GET request. Returns the status and the body, which is cut at the size limit.
    pub async fn get(&self) -> Result<(u16, String), HttpFailure> {
        let response = self.send(self.client.get(&self.url)).await?;
        let status = response.status().as_u16();
        let (body, _) = read(response, LIST_BYTES).await.unwrap_or_default();
        Ok((status, body))
    }

    /// Requests a chat completion.
    pub async fn post(&self, body: &Map<String, Value>) -> Result<EventStream, HttpFailure> {
        let response = self.send(self.client.post(&self.url).json(body)).await?;
        as_events(response).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, HttpFailure> {
        // Send no empty authorization header, because servers without keys may reject it.
        let request = match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        };
        Ok(request.send().await?)
    }
}

async fn as_events(response: Response) -> Result<EventStream, HttpFailure> {
    let status = response.status();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        return Err(HttpFailure::Redirect {
            status: status.as_u16(),
            location: location.unwrap_or_default().to_owned(),
        });
    }
    if !status.is_success() {
        let retry_after = retry_after(response.headers());
        let (body, _) = read(response, ERROR_BYTES).await.unwrap_or_default();
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
        return Ok(EventStream::of(response));
    }
    let (body, rest) = read(response, MOST_BYTES).await?;
    if rest == UnreadRest::Unread {
        return Err(too_large("an answer", MOST_BYTES));
    }
    let is_events = ["data:", "event:", "id:", "retry:", ":"]
        .iter()
        .any(|start| body.trim_start().starts_with(start));
    if is_events {
        return Ok(EventStream::whole(&body));
    }
    match surrogates::parse(&body) {
        Ok(whole) if whole.is_object() => Ok(EventStream::whole(&format!("data: {whole}\n\n"))),
        Ok(_) | Err(_) => Err(HttpFailure::NotChat(body)),
    }
}

/// Whether a body was read completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum UnreadRest {
    #[default]
    Nothing,
    Unread,
}

/// Reads a body up to `limit` bytes.
async fn read(mut response: Response, limit: usize) -> Result<(String, UnreadRest), HttpFailure> {
    let mut bytes = Vec::new();
    let mut rest = UnreadRest::Nothing;
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            bytes.truncate(limit);
            rest = UnreadRest::Unread;
            break;
        }
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), rest))
}

/// Returns the seconds from the date of a response to the date in one of its headers; 0 if that has passed.
fn seconds_until(headers: &HeaderMap, name: &str) -> Option<f64> {
    let date = |name: &str| {
        let text = headers.get(name)?.to_str().ok()?;
        httpdate::parse_http_date(text.trim()).ok()
    };
    let now = date("date").unwrap_or_else(SystemTime::now);
    let wait = date(name)?.duration_since(now);
    Some(wait.unwrap_or_default().as_secs_f64())
}

/// Maximum wait that is accepted from a server; longer ones are capped.
const LONGEST_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Returns the wait that a server requests, capped at [`LONGEST_WAIT`]: milliseconds if the server
/// gives them, otherwise seconds, otherwise the time from the server's own date to the requested one.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.trim().parse::<f64>().ok())
    };
    let seconds = number("retry-after-ms")
        .map(|millis| millis / 1000.0)
        .or_else(|| number("retry-after"))
        .or_else(|| seconds_until(headers, "retry-after"))?;
    Duration::try_from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64())).ok()
}
