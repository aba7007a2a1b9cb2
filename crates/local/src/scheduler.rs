//! Answers several requests at once. Each round runs one step that adds tokens to all active
//! answers. Only one prompt is processed at a time, in parts between these steps, so that the next
//! prompt can copy the shared prefix of its cache.

use std::time::{Duration, Instant};

use candle_core::Result;

use super::active::ActiveAnswer;
use super::constraint::{self, ConstraintFactory, OutputConstraint};
use super::generate::{TokenChoice, TokenGenerator};
use super::network::Network;
use super::request::{EncodedRequest, ModelSource, WorkerJob};
use super::sampler::Sampler;
use super::sequences::{CachedSequence, SequenceCache};
use super::threads::ThreadPacer;
use super::vocabulary::Vocabulary;
use starling_core::ChatRequest;

/// Number of prompt tokens in one part.
const STEP: usize = 128;
/// Maximum number of tokens in one step of the answers. Each answer has at least one token; the
/// rest is shared by guesses. More guesses would cost more time than they save.
const MOST_ROWS: usize = 16;

/// Limits of the requests that are answered at once. At least one request is always answered.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of requests.
    pub requests: usize,
    /// Maximum number of tokens in all prompts and answers together.
    pub tokens: usize,
}

/// A loaded network with its vocabulary, and the requests in progress.
pub struct Scheduler {
    source: ModelSource,
    network: Network,
    vocabulary: Vocabulary,
    /// Created for the first request that restricts its answer.
    constraints: Option<ConstraintFactory>,
    limits: Limits,
    sequences: SequenceCache,
    /// The admitted request whose prompt will be processed next.
    next: Option<EncodedRequest>,
    reading: Option<PromptReader>,
    active: Vec<ActiveAnswer>,
    pace: ThreadPacer,
    /// How much more time was spent on the prompt than on the answers since the last part of the
    /// prompt.
    ahead: Duration,
}

/// A prompt that is being processed.
struct PromptReader {
    request: EncodedRequest,
    sequence: CachedSequence,
    cached: usize,
}

impl Scheduler {
    pub fn new(
        source: ModelSource,
        network: Network,
        vocabulary: Vocabulary,
        limits: Limits,
    ) -> Self {
        Self {
            source,
            network,
            vocabulary,
            constraints: None,
            limits,
            sequences: SequenceCache::default(),
            next: None,
            reading: None,
            active: Vec::new(),
            pace: ThreadPacer::default(),
            ahead: Duration::ZERO,
        }
    }

    /// Returns whether there is no request.
    pub fn is_idle(&self) -> bool {
        self.next.is_none() && self.reading.is_none() && self.active.is_empty()
    }

    /// Returns whether another request can be admitted.
    pub fn has_room(&self) -> bool {
        self.next.is_none()
    }

    /// Admits a request, whose prompt waits until the limits allow it.
    pub fn admit(&mut self, job: WorkerJob) {
        if job.is_abandoned() {
            return;
        }
        let Some(mut request) = EncodedRequest::new(&self.source, &self.vocabulary, job) else {
            return;
        };
        match self.constraint(&request.job.request) {
            Ok(constraint) => {
                request.constraint = constraint;
                self.next = Some(request);
            }
            Err(error) => request.job.end(Err(self.source.refused(&error))),
        }
    }

    fn constraint(&mut self, request: &ChatRequest) -> Result<Option<OutputConstraint>> {
        if !self.source.constraints || !constraint::is_possible(request) {
            return Ok(None);
        }
        let constraints = match &self.constraints {
            Some(constraints) => constraints,
            None => {
                let created = ConstraintFactory::new(&self.vocabulary)?;
                self.constraints.insert(created)
            }
        };
        constraints.of(request)
    }

    /// Drops abandoned requests, processes a part of a prompt, and runs a step of all answers.
    ///
    /// While a prompt is processed, the answers get half of the time.
    pub fn round(&mut self) {
        self.retire();
        if self.reading.is_none()
            && let Some(request) = self
                .next
                .take_if(|next| self.limits.fit(&self.active, next))
        {
            self.claim(request);
        }
        if self.active.is_empty() || self.ahead.is_zero() {
            let began = Instant::now();
            self.pace.pause();
            self.read();
            self.ahead = began.elapsed();
        }
        if !self.active.is_empty() {
            let began = Instant::now();
            self.write();
            self.ahead = self.ahead.saturating_sub(began.elapsed());
        }
        if self.active.is_empty() {
            self.pace = ThreadPacer::default();
        }
    }

    /// Removes the requests whose caller no longer waits.
    fn retire(&mut self) {
        self.next.take_if(|next| next.job.is_abandoned());
        if let Some(reader) = (self.reading).take_if(|reader| reader.request.job.is_abandoned()) {
            self.sequences.give_back(&self.network, reader.sequence);
        }
        for answer in self.active.extract_if(.., |one| one.is_abandoned()) {
            (self.sequences).give_back(&self.network, answer.into_sequence());
        }
    }

    /// Takes a cached sequence for a request, and begins to process the prompt.
    fn claim(&mut self, request: EncodedRequest) {
        let conversation = &request.job.request.conversation;
        let active: Vec<_> = self.active.iter().map(ActiveAnswer::sequence).collect();
        let sequence = self
            .sequences
            .claim(&self.network, conversation, &request.prompt, &active);
        match sequence {
            Ok(sequence) => {
                request.job.started();
                self.reading = Some(PromptReader {
                    cached: sequence.tokens().len(),
                    request,
                    sequence,
                });
            }
            Err(error) => request.job.end(Err(self.source.failed(&error))),
        }
    }

    /// Processes the next part of the prompt, if there is one. After the last part, the answer
    /// begins.
    fn read(&mut self) {
        let Some(mut reader) = self.reading.take() else {
            return;
        };
        match reader.read(&self.network) {
            Ok(None) => self.reading = Some(reader),
            Ok(Some(scores)) => {
                let PromptReader {
                    mut request,
                    sequence,
                    cached,
                } = reader;
                let guesses = self.source.guesses && self.network.has_equal_steps();
                let choice = TokenChoice {
                    sampler: Sampler::of(&request.job.request),
                    constraint: request.constraint.take(),
                };
                let begun = TokenGenerator::new(&request.prompt, &scores, choice, guesses);
                let generator = match begun {
                    Ok(generator) => generator,
                    Err(error) => {
                        request.job.end(Err(self.source.failed(&error)));
                        self.sequences.give_back(&self.network, sequence);
                        return;
                    }
                };
                let mut answer = ActiveAnswer::new(request, sequence, cached, generator);
                match answer.stream(&self.vocabulary, 1) {
                    Some(end) => (self.sequences)
                        .give_back(&self.network, answer.end(&self.source.name, &end)),
                    None => self.active.push(answer),
                }
            }
            Err(error) => {
                reader.request.job.end(Err(self.source.failed(&error)));
                self.sequences.give_back(&self.network, reader.sequence);
            }
        }
    }

    /// Runs one step of all active answers.
    fn write(&mut self) {
        let guesses = (MOST_ROWS / self.active.len()).saturating_sub(1);
        let next = |answer: &mut ActiveAnswer| answer.next_tokens(guesses);
        let tokens: Vec<Vec<u32>> = self.active.iter_mut().map(next).collect();
        let rows = tokens.iter().map(Vec::len).sum();
        let began = Instant::now();
        self.pace.begin();
        let scores = self.scores(&tokens);
        self.pace.end(began.elapsed(), rows);
        let answers = std::mem::take(&mut self.active);
        let mut scores = match scores {
            Ok(scores) => scores.into_iter(),
            Err(error) => {
                for answer in answers {
                    let job = &answer.request().job;
                    job.end(Err(self.source.failed(&error)));
                }
                return;
            }
        };
        for (mut answer, tokens) in answers.into_iter().zip(&tokens) {
            let scores: Vec<Vec<f32>> = scores.by_ref().take(tokens.len()).collect();
            let sequence = match answer.select(&self.vocabulary, tokens, &scores) {
                Ok(None) => {
                    self.active.push(answer);
                    continue;
                }
                Ok(Some(end)) => answer.end(&self.source.name, &end),
                Err(error) => {
                    answer.request().job.end(Err(self.source.failed(&error)));
                    answer.into_sequence()
                }
            };
            self.sequences.give_back(&self.network, sequence);
        }
    }

    /// Returns the scores after each token of each answer.
    fn scores(&mut self, tokens: &[Vec<u32>]) -> Result<Vec<Vec<f32>>> {
        let sequences = self.active.iter_mut().map(ActiveAnswer::sequence_mut);
        let parts = sequences.zip(tokens.iter().map(Vec::as_slice)).collect();
        let states = CachedSequence::extend_all(&self.network, parts)?;
        self.network.scores_each(&states)
    }
}

impl PromptReader {
    /// Processes one part. After the last part, returns the scores of the next token.
    fn read(&mut self, network: &Network) -> Result<Option<Vec<f32>>> {
        let rest = &self.request.prompt[self.sequence.tokens().len()..];
        // Avoid a last step with a single token, because it would use other kernels with different
        // rounding.
        if rest.len() > STEP + 1 {
            self.sequence.extend(network, &rest[..STEP])?;
            return Ok(None);
        }
        let state = self.sequence.extend(network, rest)?;
        network.scores(&state).map(Some)
    }
}

impl Limits {
    fn fit(self, active: &[ActiveAnswer], next: &EncodedRequest) -> bool {
        let held: usize = active.iter().map(|one| one.request().longest()).sum();
        active.is_empty() || active.len() < self.requests && held + next.longest() <= self.tokens
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use tempfile::TempDir;
    use tokio::sync::mpsc::{self, UnboundedReceiver};

    use super::super::file::ModelFile;
    use super::super::fixture::TestModelRecipe;
    use super::*;
    use starling_core::{
        AnswerFormat, CallEvent, ChatReply, Message, ModelError, Tokens, ToolSpec,
    };

    type Answer = UnboundedReceiver<CallEvent>;

    fn scheduler(directory: &TempDir, limits: Limits) -> Scheduler {
        let path = TestModelRecipe::default().write(directory.path());
        let file = ModelFile::open(&path).unwrap();
        let source = ModelSource {
            name: "tiny".into(),
            path,
            window: 512,
            guesses: true,
            constraints: true,
        };
        let network = Network::load(&file, 512, &Device::Cpu).unwrap();
        Scheduler::new(source, network, Vocabulary::load(&file).unwrap(), limits)
    }

    fn job(conversation: &str, text: &str, max_output: u64) -> (WorkerJob, Answer) {
        let (events, answer) = mpsc::unbounded_channel();
        let request = ChatRequest {
            conversation: conversation.into(),
            messages: vec![Message::User { text: text.into() }],
            tools: Vec::new(),
            max_output: Tokens(max_output),
            temperature: 0.0,
            top_p: None,
            seed: None,
            beginning: String::new(),
            following: String::new(),
            stop: Vec::new(),
            format: starling_core::AnswerFormat::Free,
        };
        (WorkerJob { request, events }, answer)
    }

    fn reply(answer: &mut Answer) -> Option<ChatReply> {
        while let Ok(event) = answer.try_recv() {
            if let CallEvent::Done(reply) = event {
                return Some(reply.unwrap());
            }
        }
        None
    }

    #[test]
    fn answer_is_a_valid_tool_call_if_one_is_required() {
        let directory = TempDir::new().unwrap();
        let mut scheduler = scheduler(&directory, MANY);
        let mut answers = Vec::new();
        for seed in 0..6 {
            let (mut job, answer) = job("a", "call it", 300);
            job.request.tools = vec![ToolSpec {
                name: "read".into(),
                description: String::new(),
                parameters: serde_json::json!({
                    "type": "object",
                    "properties": {"line": {"type": "integer", "maximum": 99, "minimum": 0}},
                    "required": ["line"],
                    "additionalProperties": false,
                }),
            }];
            job.request.format = AnswerFormat::ToolCalls;
            job.request.temperature = 1.0;
            job.request.seed = Some(seed);
            scheduler.admit(job);
            while !scheduler.has_room() {
                scheduler.round();
            }
            answers.push(answer);
        }
        while !scheduler.is_idle() {
            scheduler.round();
        }
        for mut answer in answers {
            let text = reply(&mut answer).unwrap().text;
            let call = text.strip_prefix("<tool_call>\n").unwrap();
            let (call, _) = call.split_once("\n</tool_call>").unwrap();
            let call: serde_json::Value = serde_json::from_str(call).unwrap();
            assert_eq!(call["name"], "read");
            assert!(call["arguments"]["line"].as_u64().unwrap() < 100, "{call}");
        }
    }

    #[test]
    fn format_that_cannot_be_enforced_is_refused() {
        let directory = TempDir::new().unwrap();
        let mut scheduler = scheduler(&directory, MANY);
        let (mut job, mut answer) = job("a", "x", 5);
        job.request.format = AnswerFormat::Json(serde_json::json!({"type": "nothing"}));
        scheduler.admit(job);
        assert!(scheduler.is_idle());
        let Ok(CallEvent::Done(reply)) = answer.try_recv() else {
            panic!("no answer");
        };
        let refused = matches!(*reply, Err(ModelError::Refused { status: 400, .. }));
        assert!(refused, "{reply:?}");
    }

    const MANY: Limits = Limits {
        requests: 8,
        tokens: usize::MAX,
    };

    #[test]
    fn abandoned_requests_are_gone_after_one_round() {
        let directory = TempDir::new().unwrap();
        let mut scheduler = scheduler(&directory, MANY);
        let (writing, mut answer) = job("a", "hello", 400);
        scheduler.admit(writing);
        while scheduler.active.is_empty() {
            scheduler.round();
        }
        let (reading, other) = job("b", &"long ".repeat(80), 10);
        scheduler.admit(reading);
        while scheduler.reading.is_none() {
            scheduler.round();
        }
        let (waiting, third) = job("c", "hello", 10);
        scheduler.admit(waiting);
        assert!(!scheduler.is_idle() && reply(&mut answer).is_none());
        drop((answer, other, third));
        scheduler.round();
        assert!(scheduler.is_idle());
    }

    #[test]
    fn requests_beyond_the_limits_wait_for_the_end_of_others() {
        let directory = TempDir::new().unwrap();
        let two = Limits {
            requests: 2,
            ..MANY
        };
        let few_tokens = Limits {
            tokens: 152,
            ..MANY
        };
        for limits in [two, few_tokens] {
            let mut scheduler = scheduler(&directory, limits);
            let mut waiting: Vec<_> = (0..4)
                .map(|number| job(&number.to_string(), "hello", 48))
                .collect();
            let mut answers = Vec::new();
            let mut most = 0;
            while !(waiting.is_empty() && scheduler.is_idle()) {
                while scheduler.has_room()
                    && let Some((job, answer)) = waiting.pop()
                {
                    scheduler.admit(job);
                    answers.push(answer);
                }
                scheduler.round();
                most = most.max(scheduler.active.len());
            }
            assert_eq!(most, 2, "{limits:?}");
            for answer in &mut answers {
                assert_eq!(reply(answer).unwrap().usage.output, Tokens(48));
            }
        }
    }

    #[test]
    fn prompt_reuses_the_prefix_of_an_answer_in_progress() {
        let directory = TempDir::new().unwrap();
        let mut scheduler = scheduler(&directory, MANY);
        // Keep the receiver, because a closed channel cancels the request.
        let (first, _first_answer) = job("a", "the same words", 30);
        let (second, mut second_answer) = job("a", "the same words", 5);
        scheduler.admit(first);
        scheduler.round();
        assert_eq!(scheduler.active.len(), 1, "it is being answered");
        scheduler.admit(second);
        let second = loop {
            scheduler.round();
            if let Some(reply) = reply(&mut second_answer) {
                break reply;
            }
        };
        assert_eq!(second.usage.cached, Tokens(second.usage.prompt.0 - 2));
        while !scheduler.is_idle() {
            scheduler.round();
        }
        assert_eq!(scheduler.sequences.kept_count(), 1, "of one conversation");
    }
}
