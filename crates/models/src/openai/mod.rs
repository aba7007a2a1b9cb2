//! An adapter for endpoints with OpenAI's streaming chat completions API. Retries, deadlines and
//! fallbacks are handled by the outer layers.

mod answer;
mod events;
mod failure;
mod probe;
mod secret;
mod surrogates;
mod transport;
mod wire;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

pub use self::probe::{ProbeResult, probe};

use self::answer::StreamedAnswer;
use self::failure::ErrorMapper;
use self::transport::{Endpoint, HttpFailure, Transport};
use super::usage::credible;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Dollars, ModelError, ModelProfile, Tokens,
    ToolCalling, WorstCase,
};

/// How long the stream may stay open after the model has stopped.
const AFTER_FINISH: Duration = Duration::from_secs(1);

/// An API key. Its debug output does not show the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(pub String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The name of the request field that limits the answer. A server accepts one or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    MaxTokens,
    MaxCompletionTokens,
}

/// The configuration of one model at one endpoint.
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    pub profile: ModelProfile,
    /// The model's name at the server.
    pub model: String,
    /// The base URL of the API, for example `https://api.openai.com/v1`.
    pub base_url: String,
    pub key: Option<ApiKey>,
    pub output_limit: OutputLimit,
    /// Overrides the temperature of every request.
    pub temperature: Option<f32>,
    /// Request fields to leave out because the server does not accept them.
    pub omit: Vec<String>,
}

/// A chat model behind an OpenAI-compatible endpoint.
pub struct OpenAiModel {
    options: OpenAiOptions,
    /// The same options, but with text tool calling.
    as_text: OpenAiOptions,
    /// Whether the server has refused requests with tools.
    has_no_tools: AtomicBool,
    transport: Transport,
    failures: ErrorMapper,
}

impl OpenAiModel {
    /// Prepares the model without connecting.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if the URL or the key is invalid.
    pub fn new(options: OpenAiOptions) -> Result<Self, ModelError> {
        let name = &options.profile.name;
        let endpoint = Endpoint::new(name, &options.base_url, options.key.as_ref())?;
        let secrets = endpoint.secrets(options.key.as_ref());
        let mut as_text = options.clone();
        as_text.profile.tool_calling = ToolCalling::Text;
        Ok(OpenAiModel {
            as_text,
            has_no_tools: AtomicBool::new(false),
            failures: ErrorMapper::new(&options.profile, endpoint.address(), secrets),
            transport: Transport::new(name, endpoint, "/chat/completions")?,
            options,
        })
    }

    /// Checks whether [`OpenAiModel::new`] would succeed.
    ///
    /// # Errors
    /// The same as for [`OpenAiModel::new`].
    pub fn check(options: &OpenAiOptions) -> Result<(), ModelError> {
        let name = &options.profile.name;
        Endpoint::new(name, &options.base_url, options.key.as_ref()).map(drop)
    }

    fn options(&self) -> &OpenAiOptions {
        if self.has_no_tools.load(Ordering::Relaxed) {
            &self.as_text
        } else {
            &self.options
        }
    }

    async fn read(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<StreamedAnswer, ModelError> {
        let body =
            wire::body(self.options(), request).map_err(|error| ModelError::Unavailable {
                model: self.options.profile.name.clone(),
                message: format!("the request cannot be serialized: {error}"),
            })?;
        let events = self.transport.post(&body).await;
        let mut events = events.map_err(|failure| self.failures.of(failure))?;
        let mut answer = StreamedAnswer::default();
        let most = most_bytes(request.max_output.min(self.options.profile.max_output));
        loop {
            let next = if answer.is_finished() {
                tokio::time::timeout(AFTER_FINISH, events.next())
                    .await
                    .unwrap_or(Ok(None))
            } else {
                events.next().await
            };
            let next = next.map_err(|failure| match failure {
                // An incomplete event also costs tokens.
                HttpFailure::TooLarge(_) if events.waiting() as u64 > most => {
                    let waiting = Tokens(events.waiting() as u64);
                    self.failures.endless(answer.received() + waiting)
                }
                other => self.failures.of(other),
            });
            let Some(piece) = next? else {
                return Ok(answer);
            };
            let chunk = surrogates::parse(&piece)
                .map_err(|error| self.failures.unreadable(&error, &piece))?;
            if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
                return Err(self.failures.in_stream(error));
            }
            answer.take(&chunk, watch);
            if answer.received_bytes() > most {
                return Err(self.failures.endless(answer.received()));
            }
        }
    }
}

/// Returns the maximum size of an answer in bytes. Text and code have about four bytes per token,
/// so 8 bytes per token never cut an answer that respects its limit, except one made of long runs
/// of one character.
fn most_bytes(max_output: Tokens) -> u64 {
    max_output.0.saturating_mul(8).saturating_add(8 << 10)
}

#[async_trait]
impl ChatModel for OpenAiModel {
    fn profile(&self) -> &ModelProfile {
        &self.options().profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let worst = WorstCase::of(request, self.profile());
        let mut answer = self
            .read(request, watch)
            .await
            .map_err(|error| failure::with_prompt(error, worst.prompt))
            .inspect_err(|error| {
                if let ModelError::NoTools { .. } = error {
                    self.has_no_tools.store(true, Ordering::Relaxed);
                }
            })?;
        let Some(finish) = answer.finish() else {
            return Err(self.failures.cut());
        };
        let usage = credible(answer.usage(), &worst, answer.received());
        Ok(ChatReply {
            model: self.options.profile.name.clone(),
            finish,
            usage,
            cost: self
                .options
                .profile
                .price
                .map_or(Dollars(0.0), |price| price.cost(usage)),
            calls: 1,
            tool_calls: answer.take_calls(),
            text: answer.take_text(),
        })
    }
}
