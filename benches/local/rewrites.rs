//! Compares the local model with and without guesses on rewrites of whole functions.
//!
//! ```sh
//! cargo bench -p starling-local --bench rewrites -- WEIGHTS.gguf DIRECTORY [COUNT] [SEED]
//! ```
//!
//! Functions of 40 to 200 lines are drawn from the Python files of the directory. The model is asked to
//! write each again with one change. For each function, the benchmark prints the tokens of the answer,
//! the tokens a second with one token in each step and with guesses, and their ratio. The two answers
//! must be equal. The prompt is evaluated before the time is taken.

#![allow(clippy::unwrap_used)]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

use starling_core::{ChatModel, ChatRequest, Finish, Message, NoWatch, Tokens};
use starling_local::{LocalModel, LocalOptions};

const LINES: std::ops::RangeInclusive<usize> = 40..=200;
/// Maximum length of an answer in tokens.
const LONGEST: u64 = 3000;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).filter(|one| one != "--bench");
    let (Some(weights), Some(directory)) = (arguments.next(), arguments.next()) else {
        eprintln!(
            "usage: cargo bench -p starling-local --bench rewrites -- WEIGHTS.gguf DIRECTORY [COUNT] [SEED]"
        );
        std::process::exit(2);
    };
    let mut number = |default: usize| {
        let given = arguments.next().map(|one| one.parse().unwrap());
        given.unwrap_or(default)
    };
    let (count, seed) = (number(30), number(1));
    let open = |guesses| {
        LocalModel::open(LocalOptions {
            name: "local".to_owned(),
            path: weights.clone().into(),
            context_window: None,
            guesses,
            constraints: true,
        })
        .unwrap()
    };
    let functions = drawn(Path::new(&directory), count, seed);
    let mut ratios = Vec::new();
    let mut spent = [Duration::ZERO; 2];
    let mut equal = 0;
    // One model at a time, so that their weights do not fill the memory twice.
    let mut answers = Vec::new();
    for guesses in [false, true] {
        let model = open(guesses);
        for function in &functions {
            answers.push(timed(&model, &request(function)).await);
        }
    }
    let (plain, guessed) = answers.split_at(functions.len());
    for (function, (plain, guessed)) in functions.iter().zip(plain.iter().zip(guessed)) {
        let speed = |answer: &Answer| answer.tokens as f64 / answer.took.as_secs_f64();
        let ratio = speed(guessed) / speed(plain);
        spent[0] += plain.took;
        spent[1] += guessed.took;
        equal += usize::from(plain.text == guessed.text);
        ratios.push(ratio);
        println!(
            "{:40} {:3} lines, {:4} tokens: {:5.1} and {:5.1} tokens/s, {ratio:.2}{}{}",
            function.lines().next().unwrap().trim(),
            function.lines().count(),
            guessed.tokens,
            speed(plain),
            speed(guessed),
            if plain.text == guessed.text {
                ""
            } else {
                ", DIFFERENT"
            },
            if guessed.finish == Finish::Stop {
                ""
            } else {
                ", cut"
            },
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{} functions, {equal} equal answers; {:.0} and {:.0} s, {:.2}; ratio in the median {:.2}, least {:.2}",
        functions.len(),
        spent[0].as_secs_f64(),
        spent[1].as_secs_f64(),
        spent[0].as_secs_f64() / spent[1].as_secs_f64(),
        ratios[ratios.len() / 2],
        ratios[0],
    );
}

struct Answer {
    text: String,
    tokens: u64,
    finish: Finish,
    took: Duration,
}

/// Returns the answer to a request, and the time from the end of its prompt.
async fn timed(model: &LocalModel, request: &ChatRequest) -> Answer {
    let first = ChatRequest {
        max_output: Tokens(1),
        ..request.clone()
    };
    model.chat(&first, &NoWatch).await.unwrap();
    let began = Instant::now();
    let reply = model.chat(request, &NoWatch).await.unwrap();
    Answer {
        text: reply.text,
        tokens: reply.usage.output.0,
        finish: reply.finish,
        took: began.elapsed(),
    }
}

fn request(function: &str) -> ChatRequest {
    let text = format!(
        "```python\n{function}```\nWrite this function again with one change: its first parameter after \
         `self` gets another, clearer name. Answer with the whole function in one ```python block and \
         nothing else."
    );
    ChatRequest {
        conversation: "rewrite".to_owned(),
        messages: vec![Message::User { text }],
        tools: Vec::new(),
        max_output: Tokens(LONGEST),
        temperature: 0.0,
        top_p: None,
        seed: None,
        beginning: "```python\n".to_owned(),
        following: String::new(),
        stop: Vec::new(),
        format: starling_core::AnswerFormat::Free,
    }
}

/// Draws functions from the Python files of a directory and its subdirectories.
fn drawn(directory: &Path, count: usize, seed: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "py") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                found.extend(functions(&text));
            }
        }
    }
    found.sort_by_key(|function| {
        let mut hasher = DefaultHasher::new();
        (seed, function).hash(&mut hasher);
        hasher.finish()
    });
    found.truncate(count);
    found
}

/// Returns the functions of a module and the methods of its classes that have the right length.
fn functions(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        if !body.starts_with("def ") || !body.contains('(') {
            continue;
        }
        let own = indent(line);
        let is_inside = |line: &&&str| {
            line.trim().is_empty() || indent(line) > own || line.trim_start().starts_with(')')
        };
        let rest = lines[start + 1..].iter().take_while(is_inside).count();
        let mut lines = lines[start..=start + rest].to_vec();
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
        if LINES.contains(&lines.len()) {
            let dedented = lines.iter().map(|line| line.get(own..).unwrap_or(""));
            found.push(dedented.map(|line| format!("{line}\n")).collect());
        }
    }
    found
}
