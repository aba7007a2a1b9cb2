//! Compares the time for requests that are sent together with the time for the same requests one after
//! another.
//!
//! ```sh
//! cargo bench -p starling-local --bench together -- WEIGHTS.gguf [COUNT] [TOKENS] [ROUNDS]
//! ```
//!
//! Each request asks for a sample of the given number of tokens, after the same prompt. Each round measures
//! one request, then all requests one after another, then all together. The prompt is already cached when a
//! round begins. Prints how many answers are equal; all must be. Guesses are disabled, because their success
//! depends on the text.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use starling_core::{ChatModel, ChatRequest, Message, NoWatch, Tokens};
use starling_local::{LocalModel, LocalOptions};

const TASK: &str = "Write a Python class for a library that lends books, with methods to add a book, to lend it, \
                    to take it back, and to list what is late. Explain each method in a comment.";

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).filter(|one| one != "--bench");
    let Some(weights) = arguments.next() else {
        eprintln!(
            "usage: cargo bench -p starling-local --bench together -- WEIGHTS.gguf [COUNT] [TOKENS] [ROUNDS]"
        );
        std::process::exit(2);
    };
    let mut number = |default: u64| {
        let given = arguments.next().map(|one| one.parse().unwrap());
        given.unwrap_or(default)
    };
    let (count, tokens, rounds) = (number(8), number(64), number(3));
    let model = LocalModel::open(LocalOptions {
        name: "local".to_owned(),
        path: weights.into(),
        context_window: None,
        guesses: false,
        constraints: true,
    })
    .unwrap();
    model.chat(&request(0, 1), &NoWatch).await.unwrap();
    for _ in 0..rounds {
        let (alone, _) = timed(in_turn(&model, 1, tokens)).await;
        let (turn, expected) = timed(in_turn(&model, count, tokens)).await;
        let samples: Vec<_> = (0..count).map(|seed| request(seed, tokens)).collect();
        let (once, found) = timed(futures::future::join_all(
            samples.iter().map(|sample| text(&model, sample)),
        ))
        .await;
        let equal = expected.iter().zip(&found).filter(|(a, b)| a == b).count();
        println!(
            "one {:.2} s; {count} in turn {:.2} s; at once {:.2} s, {:.2} times one; {equal} equal",
            alone.as_secs_f64(),
            turn.as_secs_f64(),
            once.as_secs_f64(),
            once.as_secs_f64() / alone.as_secs_f64(),
        );
    }
}

async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let began = Instant::now();
    let found = work.await;
    (began.elapsed(), found)
}

async fn in_turn(model: &LocalModel, count: u64, tokens: u64) -> Vec<String> {
    let mut texts = Vec::new();
    for seed in 0..count {
        texts.push(text(model, &request(seed, tokens)).await);
    }
    texts
}

async fn text(model: &LocalModel, request: &ChatRequest) -> String {
    model.chat(request, &NoWatch).await.unwrap().text
}

fn request(seed: u64, tokens: u64) -> ChatRequest {
    ChatRequest {
        conversation: format!("sample {seed}"),
        messages: vec![Message::User { text: TASK.into() }],
        tools: Vec::new(),
        max_output: Tokens(tokens),
        temperature: 0.8,
        top_p: None,
        seed: Some(seed),
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
        format: starling_core::AnswerFormat::Free,
    }
}
