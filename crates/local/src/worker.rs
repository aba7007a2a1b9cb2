//! The thread that owns a loaded network and answers one request after another.

use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::mpsc::{Receiver, UnboundedSender};

use super::answer::{AnswerState, AnswerText};
use super::device;
use super::file::ModelFile;
use super::generate::TokenGenerator;
use super::network::Network;
use super::sampler::Sampler;
use super::sequences::SequenceCache;
use super::vocabulary::Vocabulary;
use starling_core::{
    ChatReply, ChatRequest, Dollars, Finish, ModelError, ModelNotice, Tokens, Usage,
};

/// Number of prompt tokens per step. Between two steps, the worker checks whether the caller still
/// waits.
const STEP: usize = 128;

/// The mark that opens and closes a code block.
const FENCE: &str = "```";

/// A request and the channel for its answer. A closed channel means that the caller gave up.
pub struct WorkerJob {
    pub request: ChatRequest,
    pub events: UnboundedSender<WorkerEvent>,
}

/// A message from the worker to the caller.
pub enum WorkerEvent {
    Notice(ModelNotice),
    Delta(String),
    Done(Box<Result<ChatReply, ModelError>>),
}

/// The model file that the worker loads, and how it is run.
#[derive(Debug, Clone)]
pub struct ModelSource {
    pub name: String,
    pub path: PathBuf,
    /// The context window in tokens.
    pub window: usize,
    /// See [`super::LocalOptions::guesses`].
    pub guesses: bool,
}

/// Why a request ended without a reply.
enum RequestEnd {
    /// The caller no longer waits.
    Abandoned,
    Refused(ModelError),
    /// Loading or running the network failed.
    Broken(candle_core::Error),
}

impl From<candle_core::Error> for RequestEnd {
    fn from(error: candle_core::Error) -> Self {
        RequestEnd::Broken(error)
    }
}

/// The loaded network with its vocabulary and cached sequences.
struct LoadedModel {
    network: Network,
    vocabulary: Vocabulary,
    sequences: SequenceCache,
}

/// Processes jobs until the last sender is dropped.
pub fn run(source: &ModelSource, mut jobs: Receiver<WorkerJob>) {
    let mut engine = None;
    while let Some(job) = jobs.blocking_recv() {
        if job.events.is_closed() {
            continue;
        }
        let outcome = match &mut engine {
            Some(engine) => answer(source, engine, &job),
            None => load(source, &job.events)
                .and_then(|loaded| answer(source, engine.insert(loaded), &job)),
        };
        let reply = match outcome {
            Ok(reply) => Ok(reply),
            Err(RequestEnd::Refused(error)) => Err(error),
            Err(RequestEnd::Broken(error)) => Err(source.unavailable("failed", &error)),
            Err(RequestEnd::Abandoned) => continue,
        };
        // The caller may have given up at this moment, which is not an error.
        let _ = job.events.send(WorkerEvent::Done(Box::new(reply)));
    }
}

fn load(
    source: &ModelSource,
    events: &UnboundedSender<WorkerEvent>,
) -> Result<LoadedModel, RequestEnd> {
    let notice = |message: String| {
        let model = source.name.clone();
        events
            .send(WorkerEvent::Notice(ModelNotice::Preparing {
                model,
                message,
            }))
            .map_err(|_| RequestEnd::Abandoned)
    };
    let started = Instant::now();
    let file = ModelFile::open(&source.path)?;
    notice(format!(
        "loading {:.2} GB of weights",
        file.bytes() as f64 / 1e9
    ))?;
    let (device, place) = device::open();
    let network = Network::load(&file, source.window, &device)?;
    let vocabulary = Vocabulary::load(&file)?;
    // The prompt kernels repack all weights on first use, so do this before the first answer.
    let mut cache = network.cache()?;
    network.extend(&[0, 0], &mut cache)?;
    let seconds = started.elapsed().as_secs_f64();
    notice(format!("loaded on {place} in {seconds:.1} s"))?;
    Ok(LoadedModel {
        network,
        vocabulary,
        sequences: SequenceCache::default(),
    })
}

fn answer(
    source: &ModelSource,
    engine: &mut LoadedModel,
    job: &WorkerJob,
) -> Result<ChatReply, RequestEnd> {
    let LoadedModel {
        network,
        vocabulary,
        sequences,
    } = engine;
    let request = &job.request;
    let known = known(source, vocabulary, request)?;
    source.check(&known)?;
    let sequence = sequences.claim(network, &request.conversation, &known)?;
    let cached = sequence.tokens().len();
    let mut hidden = None;
    let mut rest = &known[cached..];
    while !rest.is_empty() {
        job.check()?;
        // Avoid a last step with a single token, because it would use other kernels with different
        // rounding.
        let step = if rest.len() > STEP + 1 {
            STEP
        } else {
            rest.len()
        };
        let (now, later) = rest.split_at(step);
        hidden = Some(sequence.extend(network, now)?);
        rest = later;
    }
    let hidden = hidden.expect("a claimed sequence leaves at least one token to run");
    let room = source.window - known.len();
    let limit = usize::try_from(request.max_output.0)
        .unwrap_or(room)
        .clamp(1, room);
    let sampler = Sampler::new(request.temperature, request.seed);
    let generator = TokenGenerator::new(network, sequence, &hidden, sampler, source.guesses)?;
    let written = write(vocabulary, generator, job, limit)?;
    let count = |tokens: usize| Tokens(tokens as u64);
    Ok(ChatReply {
        model: source.name.clone(),
        text: written.text,
        tool_calls: Vec::new(),
        finish: written.finish,
        usage: Usage {
            prompt: count(known.len()),
            cached: count(cached),
            output: count(written.tokens),
        },
        cost: Dollars(0.0),
        calls: 1,
    })
}

/// Encodes the prompt of a request.
fn known(
    source: &ModelSource,
    vocabulary: &Vocabulary,
    request: &ChatRequest,
) -> Result<Vec<u32>, RequestEnd> {
    if request.following.is_empty() {
        let mut known = vocabulary.prompt(&request.messages)?;
        source.check(&known)?;
        known.extend(vocabulary.plain(&request.beginning)?);
        return Ok(known);
    }
    let texts: Vec<&str> = request.messages.iter().map(|one| one.text()).collect();
    let hole = vocabulary.hole(&texts.join("\n"), &request.beginning, &request.following)?;
    hole.ok_or_else(|| {
        let error = source.unavailable(
            "cannot fill a gap in a text",
            &"its file has no tokens for this",
        );
        RequestEnd::Refused(error)
    })
}

/// The generated text, its number of tokens, and why it ended.
struct GeneratedAnswer {
    text: String,
    tokens: usize,
    finish: Finish,
}

/// Generates an answer of at most `limit` tokens.
fn write(
    vocabulary: &Vocabulary,
    mut generator: TokenGenerator<'_>,
    job: &WorkerJob,
    limit: usize,
) -> Result<GeneratedAnswer, RequestEnd> {
    let request = &job.request;
    let fills = !request.following.is_empty();
    let beginning = if fills { "" } else { &request.beginning };
    // The backticks with which the given beginning opens a code block.
    let plain = beginning.trim_start_matches('`');
    let fence = &beginning[..beginning.len() - plain.len()];
    let opens_block = fence.len() >= FENCE.len();
    let mut stops = request.stop.clone();
    stops.extend(opens_block.then(|| format!("\n{fence}")));
    let mut text = AnswerText::new(&stops, beginning);
    job.delta(beginning)?;
    let mut tokens = 0;
    let (finish, flow) = loop {
        let token = generator.next(limit - tokens - 1)?;
        tokens += 1;
        if vocabulary.ends(token) {
            break (Finish::Stop, AnswerState::Open);
        }
        let (certain, flow) = text.push(&vocabulary.bytes(token));
        job.delta(certain)?;
        match flow {
            AnswerState::Stopped => break (Finish::Stop, flow),
            AnswerState::Open if tokens >= limit => break (Finish::Length, flow),
            AnswerState::Open => {}
        }
    };
    drop(generator);
    let (mut text, mut rest) = text.finish(flow);
    if opens_block && flow == AnswerState::Stopped {
        let closing = format!("\n{fence}");
        text.push_str(&closing);
        rest.push_str(&closing);
    }
    job.delta(&rest)?;
    Ok(GeneratedAnswer {
        text,
        tokens,
        finish,
    })
}

impl WorkerJob {
    fn check(&self) -> Result<(), RequestEnd> {
        match self.events.is_closed() {
            true => Err(RequestEnd::Abandoned),
            false => Ok(()),
        }
    }

    fn delta(&self, text: &str) -> Result<(), RequestEnd> {
        if text.is_empty() {
            return self.check();
        }
        self.events
            .send(WorkerEvent::Delta(text.to_owned()))
            .map_err(|_| RequestEnd::Abandoned)
    }
}

impl ModelSource {
    /// Checks that the prompt leaves room for an answer.
    fn check(&self, prompt: &[u32]) -> Result<(), RequestEnd> {
        if prompt.is_empty() {
            let error = self.unavailable(
                "received an empty prompt",
                &"the messages and the chat template are empty",
            );
            return Err(RequestEnd::Refused(error));
        }
        if prompt.len() < self.window {
            return Ok(());
        }
        Err(RequestEnd::Refused(ModelError::TooLong {
            model: self.name.clone(),
            prompt: Tokens(prompt.len() as u64),
            window: Tokens(self.window as u64),
            message: String::new(),
        }))
    }

    /// Returns the error for a model that cannot be used.
    pub fn unavailable(&self, what: &str, error: &dyn std::fmt::Display) -> ModelError {
        let path = self.path.display();
        ModelError::Unavailable {
            model: self.name.clone(),
            message: format!("the local model in {path} {what}: {error}"),
        }
    }
}
