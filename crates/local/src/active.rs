//! An answer to a request while it is being generated.

use super::answer::{AnswerState, AnswerText};
use super::generate::TokenGenerator;
use super::request::EncodedRequest;
use super::sequences::CachedSequence;
use super::vocabulary::Vocabulary;
use starling_core::{ChatReply, Dollars, Finish, Tokens, Usage};

/// The marker that opens and closes a code block.
const FENCE: &str = "```";

/// A request whose prompt was processed, and the answer so far.
pub struct ActiveAnswer {
    request: EncodedRequest,
    sequence: CachedSequence,
    /// Number of prompt tokens that came from the cache.
    cached: usize,
    generator: TokenGenerator,
    text: AnswerText,
    /// The text that closes the code block which the given beginning of the answer opened.
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
    /// Creates an answer with the given beginning. The generator has already selected the first
    /// token.
    pub fn new(
        request: EncodedRequest,
        sequence: CachedSequence,
        cached: usize,
        generator: TokenGenerator,
    ) -> Self {
        let asked = &request.job.request;
        // The answer to a conversation includes the given beginning. A completion does not repeat
        // it.
        let is_reply = !asked.messages.is_empty() && asked.following.is_empty();
        let beginning = if is_reply { &asked.beginning } else { "" };
        // The backticks that open a code block in the given beginning.
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

    /// Returns whether the caller no longer waits for the answer.
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

    /// Returns the tokens to run in the next step. At most `guesses` of them are guessed.
    pub fn next_tokens(&mut self, guesses: usize) -> Vec<u32> {
        let more = self.request.limit - self.written - 1;
        self.generator.next_tokens(guesses.min(more))
    }

    /// Selects tokens with the scores of the last step, and streams them. Returns how the answer
    /// ended, or `None` if it continues.
    ///
    /// # Errors
    /// A token violates the output format of the answer.
    pub fn select(
        &mut self,
        vocabulary: &Vocabulary,
        tokens: &[u32],
        scores: &[Vec<f32>],
    ) -> candle_core::Result<Option<AnswerEnd>> {
        let selected = self.generator.select(tokens, scores)?.len();
        // The last selected token was not run yet, so it is not in the sequence.
        let known = self.generator.text().len() - 1;
        self.sequence.truncate(known);
        Ok(self.stream(vocabulary, selected))
    }

    /// Streams the last `count` selected tokens. Returns how the answer ended, or `None` if it
    /// continues.
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

    /// Sends the reply to the caller, and returns the sequence for reuse.
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
