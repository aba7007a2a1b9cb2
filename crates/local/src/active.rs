//! An answer that is being written.

use super::answer::{AnswerState, AnswerText};
use super::generate::TokenGenerator;
use super::request::EncodedRequest;
use super::sequences::CachedSequence;
use super::vocabulary::Vocabulary;
use starling_core::{ChatReply, Dollars, Finish, Tokens, Usage};

/// The mark that opens and closes a code block.
const FENCE: &str = "```";

/// A request whose prompt was read, and its answer so far.
pub struct ActiveAnswer {
    request: EncodedRequest,
    sequence: CachedSequence,
    /// Number of prompt tokens that were not processed for this request.
    cached: usize,
    generator: TokenGenerator,
    text: AnswerText,
    /// What closes the code block that the given beginning opened.
    closing: Option<String>,
    /// Number of tokens in the answer.
    written: usize,
}

/// How an answer ended.
pub struct AnswerEnd {
    finish: Finish,
    state: AnswerState,
}

impl ActiveAnswer {
    /// Begins an answer after its prompt, whose first token was selected.
    pub fn new(
        request: EncodedRequest,
        sequence: CachedSequence,
        cached: usize,
        generator: TokenGenerator,
    ) -> Self {
        let asked = &request.job.request;
        // An answer after messages begins with the given text; others do not repeat it.
        let is_reply = !asked.messages.is_empty() && asked.following.is_empty();
        let beginning = if is_reply { &asked.beginning } else { "" };
        // The backticks with which the given beginning opens a code block.
        let plain = beginning.trim_start_matches('`');
        let fence = &beginning[..beginning.len() - plain.len()];
        let closing = (fence.len() >= FENCE.len()).then(|| format!("\n{fence}"));
        let mut stops = asked.stop.clone();
        stops.extend(closing.clone());
        let text = AnswerText::new(stops, beginning);
        request.job.delta(beginning);
        Self {
            request,
            sequence,
            cached,
            generator,
            text,
            closing,
            written: 0,
        }
    }

    /// Whether the caller gave up.
    pub fn is_abandoned(&self) -> bool {
        self.request.job.is_abandoned()
    }

    pub fn request(&self) -> &EncodedRequest {
        &self.request
    }

    pub fn sequence(&self) -> &CachedSequence {
        &self.sequence
    }

    pub fn sequence_mut(&mut self) -> &mut CachedSequence {
        &mut self.sequence
    }

    pub fn into_sequence(self) -> CachedSequence {
        self.sequence
    }

    /// Returns the tokens to be run in the next step, at most `guesses` of them guessed.
    pub fn next_tokens(&mut self, guesses: usize) -> Vec<u32> {
        let more = self.request.limit - self.written - 1;
        self.generator.next_tokens(guesses.min(more))
    }

    /// Selects and streams tokens from the scores after each token that was run. Returns how the
    /// answer ended, if it did.
    ///
    /// # Errors
    /// The constraint of the answer fails.
    pub fn select(
        &mut self,
        vocabulary: &Vocabulary,
        tokens: &[u32],
        scores: &[Vec<f32>],
    ) -> candle_core::Result<Option<AnswerEnd>> {
        let selected = self.generator.select(tokens, scores)?.len();
        // The last selected token is not in the sequence.
        let known = self.generator.text().len() - 1;
        self.sequence.truncate(known);
        Ok(self.stream(vocabulary, selected))
    }

    /// Streams the last `count` selected tokens. Returns how the answer ended, if it did.
    pub fn stream(&mut self, vocabulary: &Vocabulary, count: usize) -> Option<AnswerEnd> {
        let end = |finish, state| Some(AnswerEnd { finish, state });
        let text = self.generator.text();
        for token in &text[text.len() - count..] {
            self.written += 1;
            if vocabulary.ends(*token) {
                return end(Finish::Stop, AnswerState::Open);
            }
            let (certain, state) = self.text.push(&vocabulary.bytes(*token));
            self.request.job.delta(certain);
            match state {
                AnswerState::Stopped => return end(Finish::Stop, state),
                AnswerState::Open if self.written >= self.request.limit => {
                    return end(Finish::Length, state);
                }
                AnswerState::Open => {}
            }
        }
        None
    }

    /// Sends the reply. Returns the sequence.
    pub fn end(self, model: &str, end: &AnswerEnd) -> CachedSequence {
        let (mut text, mut rest) = self.text.finish(end.state);
        if let (Some(closing), AnswerState::Stopped) = (&self.closing, end.state) {
            text.push_str(closing);
            rest.push_str(closing);
        }
        let EncodedRequest { job, prompt, .. } = self.request;
        job.delta(&rest);
        let count = |tokens: usize| Tokens(tokens as u64);
        job.end(Ok(ChatReply {
            model: model.to_owned(),
            text,
            tool_calls: Vec::new(),
            finish: end.finish,
            usage: Usage {
                prompt: count(prompt.len()),
                cached: count(self.cached),
                output: count(self.written),
            },
            cost: Dollars(0.0),
            calls: 1,
        }));
        self.sequence
    }
}
