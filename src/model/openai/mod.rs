//! Any endpoint that speaks OpenAI's chat completions, streamed. Retries, deadlines and fallbacks are
//! the business of the layers above.

mod answer;
mod failure;
mod probe;
mod transport;
mod wire;

#[cfg(test)]
mod server;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_trait::async_trait;
use futures::StreamExt;
use serde_json::Value;

pub use self::probe::{Probe, probe};

use self::answer::Answer;
use self::failure::Failures;
use self::transport::{Endpoint, Transport};
use super::price::Price;
use crate::ports::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Dollars, ModelError, ModelProfile,
};

/// How long a server may leave the stream open after it said why it stopped.
const AFTER_FINISH: Duration = Duration::from_secs(1);

/// A key, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(pub String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The name of the field that limits an answer; servers know one or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputLimit {
    MaxTokens,
    MaxCompletionTokens,
}

impl OutputLimit {
    fn field(self) -> &'static str {
        match self {
            OutputLimit::MaxTokens => "max_tokens",
            OutputLimit::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// One model behind one endpoint.
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    pub profile: ModelProfile,
    /// The name that the server knows.
    pub model: String,
    /// For example `https://api.openai.com/v1`.
    pub base_url: String,
    pub key: Option<ApiKey>,
    pub output_limit: OutputLimit,
    /// Used in place of the temperature of a request.
    pub temperature: Option<f32>,
    /// Fields that the server does not accept and that are left out.
    pub omit: Vec<String>,
    /// `None`: unknown, and counted as nothing.
    pub price: Option<Price>,
}

/// The adapter.
pub struct OpenAiModel {
    options: OpenAiOptions,
    client: Client<OpenAIConfig>,
    failures: Failures,
}

impl OpenAiModel {
    /// Makes ready to call; connects to nothing yet.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] for an URL or key that cannot be sent.
    pub fn new(options: OpenAiOptions) -> Result<Self, ModelError> {
        let name = &options.profile.name;
        let endpoint = Endpoint::new(name, &options.base_url, options.key.as_ref())?;
        let (config, address) = (endpoint.config(), endpoint.address());
        let transport = Transport::new(name, endpoint)?;
        Ok(OpenAiModel {
            failures: Failures::new(&options.profile, address),
            client: Client::build(transport.client(), config).with_http_service(transport),
            options,
        })
    }

    /// Whether [`OpenAiModel::new`] would have what it needs.
    ///
    /// # Errors
    /// As there.
    pub fn check(options: &OpenAiOptions) -> Result<(), ModelError> {
        let name = &options.profile.name;
        Endpoint::new(name, &options.base_url, options.key.as_ref()).map(drop)
    }

    async fn read(&self, body: Value, watch: &dyn ChatWatch) -> Result<Answer, ModelError> {
        let mut stream = self
            .client
            .chat()
            .create_stream_byot::<_, Value>(body)
            .await
            .map_err(|error| self.failures.of(error))?;
        let mut answer = Answer::default();
        loop {
            let next = if answer.is_finished() {
                tokio::time::timeout(AFTER_FINISH, stream.next())
                    .await
                    .unwrap_or_default()
            } else {
                stream.next().await
            };
            match next {
                None => return Ok(answer),
                Some(chunk) => {
                    let chunk = chunk.map_err(|error| self.failures.of(error))?;
                    if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
                        return Err(self.failures.in_stream(error));
                    }
                    answer.take(&chunk, watch);
                }
            }
        }
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    fn profile(&self) -> &ModelProfile {
        &self.options.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let prompt = wire::prompt_estimate(request);
        let mut answer = self
            .read(wire::body(&self.options, request), watch)
            .await
            .map_err(|error| failure::with_prompt(error, prompt))?;
        let Some(finish) = answer.finish() else {
            return Err(self.failures.cut());
        };
        let usage = answer.usage(prompt);
        Ok(ChatReply {
            model: self.options.profile.name.clone(),
            finish,
            usage,
            cost: self
                .options
                .price
                .map_or(Dollars(0.0), |price| price.cost(usage)),
            calls: 1,
            tool_calls: answer.take_calls(),
            text: answer.take_text(),
        })
    }
}
