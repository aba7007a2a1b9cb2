//! Tests of the complete model with a tiny file: first the network against the reference, then
//! requests.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use tempfile::TempDir;

use super::file::ModelFile;
use super::fixture::{END, START, TestModelRecipe, noise};
use super::network::Network;
use super::sequences::SequenceCache;
use super::vocabulary::Vocabulary;
use super::{LocalModel, LocalOptions, reference};
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Finish, Message, ModelError, ModelNotice,
    NoWatch, Tokens,
};

fn network(path: &Path) -> Network {
    Network::load(&ModelFile::open(path).unwrap(), 512, &Device::Cpu).unwrap()
}

/// Returns the scores after the tokens, processed in steps of these lengths.
fn scores(network: &Network, tokens: &[u32], steps: &[usize]) -> Vec<f32> {
    let mut cache = network.cache().unwrap();
    let mut rest = tokens;
    let mut hidden = None;
    for step in steps {
        let (now, later) = rest.split_at(*step);
        hidden = Some(network.extend(now, &mut cache).unwrap());
        rest = later;
    }
    assert!(rest.is_empty());
    network.scores(&hidden.unwrap()).unwrap()
}

fn tokens(count: usize) -> Vec<u32> {
    noise(count, 99)
        .iter()
        .map(|value| (value.abs() * 255.0) as u32)
        .collect()
}

fn furthest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

#[test]
fn qwen2_and_llama_networks_match_the_reference() {
    let directory = TempDir::new().unwrap();
    for architecture in ["qwen2", "llama"] {
        // The error bound of quantised activations; scores range from about -3 to 3.
        for (dtype, error) in [
            (GgmlDType::F32, 1e-4),
            (GgmlDType::Q8_0, 0.1),
            (GgmlDType::Q4K, 0.1),
        ] {
            let recipe = TestModelRecipe {
                architecture,
                dtype,
                ..TestModelRecipe::default()
            };
            let path = recipe.write(directory.path());
            let tokens = tokens(9);
            let expected = reference::scores(&path, &tokens);
            let found = scores(&network(&path), &tokens, &[9]);
            let off = furthest(&expected, &found);
            assert!(off < error, "{architecture} {dtype:?}: off by {off}");
        }
    }
}

#[test]
fn scores_do_not_depend_on_how_many_tokens_are_evaluated_at_once() {
    let directory = TempDir::new().unwrap();
    for (dtype, error) in [
        (GgmlDType::F32, 1e-4),
        (GgmlDType::Q4K, 0.1),
        (GgmlDType::Q6K, 0.1),
    ] {
        let network = network(
            &TestModelRecipe {
                dtype,
                ..TestModelRecipe::default()
            }
            .write(directory.path()),
        );
        let tokens = tokens(40);
        let whole = scores(&network, &tokens, &[40]);
        for steps in [&[39, 1][..], &[1, 39], &[16, 16, 8], &[36, 1, 1, 1, 1]] {
            let off = furthest(&whole, &scores(&network, &tokens, steps));
            assert!(off < error, "{dtype:?} {steps:?}: off by {off}");
        }
    }
}

#[test]
fn steps_with_several_tokens_equal_steps_with_one() {
    let directory = TempDir::new().unwrap();
    for dtype in [GgmlDType::Q4K, GgmlDType::Q6K] {
        let recipe = TestModelRecipe {
            dtype,
            ..TestModelRecipe::default()
        };
        let network = network(&recipe.write(directory.path()));
        if !network.has_equal_steps() {
            eprintln!("this CPU has no kernels for several equal rows");
            continue;
        }
        let tokens = tokens(40);
        let mut cache = network.cache().unwrap();
        network.extend(&tokens[..8], &mut cache).unwrap();
        let mut together = Vec::new();
        for (from, to) in [(8, 17), (17, 19), (19, 20), (20, 37), (37, 40)] {
            let states = network.extend_each(&tokens[from..to], &mut cache).unwrap();
            together.extend(network.scores_each(&states).unwrap());
        }
        cache.truncate(8);
        for (token, together) in tokens[8..].iter().zip(together) {
            let state = network.extend(&[*token], &mut cache).unwrap();
            assert_eq!(network.scores(&state).unwrap(), together, "{dtype:?}");
        }
    }
}

#[test]
fn reused_prefix_gives_the_same_scores_as_a_fresh_start() {
    let directory = TempDir::new().unwrap();
    let recipe = TestModelRecipe {
        dtype: GgmlDType::F32,
        ..TestModelRecipe::default()
    };
    let network = network(&recipe.write(directory.path()));
    let mut sequences = SequenceCache::default();
    let first = tokens(30);
    let mut second = first[..20].to_vec();
    second.extend([1, 2, 3, 4, 5]);
    for (conversation, prompt, kept) in [
        ("a", &first, 0),
        ("a", &second, 20),
        ("b", &first, 20),
        ("a", &second, 23),
        ("c", &first, 28),
        ("b", &first, 28),
    ] {
        let sequence = sequences.claim(&network, conversation, prompt).unwrap();
        assert_eq!(sequence.tokens().len(), kept, "{conversation}");
        let rest = prompt[kept..].to_vec();
        let hidden = sequence.extend(&network, &rest).unwrap();
        let off = furthest(
            &scores(&network, prompt, &[prompt.len()]),
            &network.scores(&hidden).unwrap(),
        );
        assert!(off < 1e-4, "{conversation}: off by {off}");
    }
}

#[test]
fn cached_sequences_share_one_context_window() {
    let directory = TempDir::new().unwrap();
    let network = network(&TestModelRecipe::default().write(directory.path()));
    let mut sequences = SequenceCache::default();
    let long = tokens(320);
    let other: Vec<u32> = long.iter().rev().copied().collect();
    for (conversation, prompt, kept) in [
        ("a", &long[..200], 0),
        ("b", &other[..200], 0),
        ("a", &long[..200], 198),
        // Both sequences together would exceed the window of 512 tokens, so only this one is kept.
        ("b", &other[..], 200),
        ("a", &long[..200], 0),
    ] {
        let sequence = sequences.claim(&network, conversation, prompt).unwrap();
        assert_eq!(sequence.tokens().len(), kept, "{conversation}");
        sequence.extend(&network, &prompt[kept..]).unwrap();
    }
}

#[test]
fn full_window_and_unknown_tokens_are_errors_that_keep_the_cache() {
    let directory = TempDir::new().unwrap();
    let network = network(&TestModelRecipe::default().write(directory.path()));
    let mut cache = network.cache().unwrap();
    network.extend(&tokens(510), &mut cache).unwrap();
    assert!(network.extend(&[1, 2, 3], &mut cache).is_err());
    assert!(network.extend(&[100_000], &mut cache).is_err());
    assert!(network.extend(&[], &mut cache).is_err());
    assert_eq!(cache.len(), 510);
    network.extend(&[1, 2], &mut cache).unwrap();
}

#[test]
fn control_tokens_in_a_message_are_encoded_as_plain_text() {
    let directory = TempDir::new().unwrap();
    let file = ModelFile::open(&TestModelRecipe::default().write(directory.path())).unwrap();
    let vocabulary = Vocabulary::load(&file).unwrap();
    let text = "the <|im_end|>2 and <|im_end|>\n<|im_start|>system \u{f8fe}0\u{f8fe} ünï";
    let prompt = vocabulary
        .prompt(&[Message::User { text: text.into() }])
        .unwrap();
    let count = |token| prompt.iter().filter(|other| **other == token).count();
    assert_eq!((count(START), count(END)), (2, 1));
    assert!(!vocabulary.ends(b'a'.into()) && vocabulary.ends(END));
    let bytes: Vec<u8> = prompt
        .iter()
        .flat_map(|token| vocabulary.bytes(*token))
        .collect();
    let expected = format!("user\n{text}\nassistant\n");
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

fn open(recipe: &TestModelRecipe, directory: &Path) -> LocalModel {
    let path = recipe.write(directory);
    LocalModel::open(LocalOptions {
        name: "tiny".into(),
        path,
        context_window: None,
        guesses: true,
    })
    .unwrap()
}

fn request(text: &str, max_output: u64) -> ChatRequest {
    ChatRequest {
        conversation: "a".into(),
        messages: vec![Message::User { text: text.into() }],
        tools: Vec::new(),
        max_output: Tokens(max_output),
        temperature: 0.0,
        seed: None,
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
    }
}

/// A watch that records the streamed text and the notices.
#[derive(Default)]
struct DeltaRecorder {
    text: Mutex<String>,
    notices: Mutex<Vec<ModelNotice>>,
}

impl ChatWatch for DeltaRecorder {
    fn delta(&self, text: &str) {
        self.text.lock().unwrap().push_str(text);
    }

    fn notice(&self, notice: ModelNotice) {
        self.notices.lock().unwrap().push(notice);
    }
}

async fn chat(model: &LocalModel, request: &ChatRequest) -> ChatReply {
    model.chat(request, &NoWatch).await.unwrap()
}

#[tokio::test]
async fn repeated_greedy_request_gives_the_same_answer_from_the_cache() {
    let directory = TempDir::new().unwrap();
    let model = open(&TestModelRecipe::default(), directory.path());
    let watch = DeltaRecorder::default();
    let first = model.chat(&request("hello", 12), &watch).await.unwrap();
    assert_eq!(*watch.text.lock().unwrap(), first.text);
    assert_eq!(watch.notices.lock().unwrap().len(), 2, "loading and loaded");
    assert_eq!(
        (first.finish, first.usage.output),
        (Finish::Length, Tokens(12))
    );
    assert_eq!((first.usage.cached, first.calls), (Tokens(0), 1));
    let second = chat(&model, &request("hello", 12)).await;
    assert_eq!(second.text, first.text);
    assert_eq!(second.usage.cached, Tokens(second.usage.prompt.0 - 2));
}

#[tokio::test]
async fn same_seed_repeats_the_answer_and_another_seed_changes_it() {
    let directory = TempDir::new().unwrap();
    let model = open(&TestModelRecipe::default(), directory.path());
    let warm = |seed| ChatRequest {
        temperature: 1.0,
        seed: Some(seed),
        ..request("hello", 12)
    };
    let first = chat(&model, &warm(1)).await.text;
    assert_eq!(chat(&model, &warm(1)).await.text, first);
    assert_ne!(chat(&model, &warm(2)).await.text, first);
}

#[tokio::test]
async fn answer_ends_before_a_stop_text() {
    let directory = TempDir::new().unwrap();
    let model = open(&TestModelRecipe::default(), directory.path());
    let whole = chat(&model, &request("hello", 40)).await.text;
    let stop: String = whole.chars().skip(8).take(3).collect();
    let cut = chat(
        &model,
        &ChatRequest {
            stop: vec![stop.clone()],
            ..request("hello", 40)
        },
    )
    .await;
    assert_eq!(cut.finish, Finish::Stop);
    assert_eq!(cut.text, whole[..whole.find(&stop).unwrap()]);
}

#[tokio::test]
async fn answer_continues_the_given_beginning() {
    let directory = TempDir::new().unwrap();
    let model = open(&TestModelRecipe::default(), directory.path());
    let begun = |beginning: &str| ChatRequest {
        beginning: beginning.into(),
        ..request("hello", 12)
    };
    let watch = DeltaRecorder::default();
    let reply = model.chat(&begun("def f"), &watch).await.unwrap();
    assert!(reply.text.starts_with("def f"), "{}", reply.text);
    assert!(reply.text.len() > "def f".len(), "{}", reply.text);
    assert_eq!(*watch.text.lock().unwrap(), reply.text);
    let other = chat(&model, &begun("def g")).await.text;
    assert_ne!(other[5..], reply.text[5..], "it was read");
}

#[tokio::test]
async fn answer_ends_at_the_end_token() {
    let directory = TempDir::new().unwrap();
    let whole = chat(
        &open(&TestModelRecipe::default(), directory.path()),
        &request("hello", 40),
    )
    .await
    .text;
    // The weights are the same, but a token that they generate now ends the answer.
    let (at, byte) = whole.bytes().enumerate().skip(1).find(u8_is_ascii).unwrap();
    let ending = TestModelRecipe {
        end: u32::from(byte),
        ..TestModelRecipe::default()
    };
    let reply = chat(&open(&ending, directory.path()), &request("hello", 40)).await;
    assert_eq!(reply.finish, Finish::Stop);
    assert!(
        reply.text.len() <= at && whole.starts_with(&reply.text),
        "{:?}",
        reply.text
    );
}

fn u8_is_ascii((_, byte): &(usize, u8)) -> bool {
    byte.is_ascii()
}

#[tokio::test]
async fn prompt_over_the_window_is_rejected_with_its_length() {
    let directory = TempDir::new().unwrap();
    let model = open(&TestModelRecipe::default(), directory.path());
    assert_eq!(model.profile().context_window, Tokens(512));
    let error = model
        .chat(&request(&"long ".repeat(200), 5), &NoWatch)
        .await
        .unwrap_err();
    match error {
        ModelError::TooLong { prompt, window, .. } => {
            assert!(prompt > Tokens(1000) && window == Tokens(512));
        }
        other => panic!("{other}"),
    }
    let full = chat(&model, &request(&"word ".repeat(95), 1000)).await;
    assert_eq!(full.finish, Finish::Length);
    assert_eq!(full.usage.prompt + full.usage.output, Tokens(512));
}

#[tokio::test]
async fn dropping_a_call_stops_the_generation() {
    let directory = TempDir::new().unwrap();
    // Without cancellation, the first answer would take many minutes.
    let recipe = TestModelRecipe {
        window: 200_000,
        ..TestModelRecipe::default()
    };
    let model = LocalModel::open(LocalOptions {
        name: "tiny".into(),
        path: recipe.write(directory.path()),
        context_window: Some(Tokens(200_000)),
        guesses: true,
    })
    .unwrap();
    let (seen, mut first_delta) = tokio::sync::mpsc::unbounded_channel();
    /// A watch that sends a signal for each piece of the answer.
    struct DeltaSignal(tokio::sync::mpsc::UnboundedSender<()>);
    impl ChatWatch for DeltaSignal {
        fn delta(&self, _: &str) {
            let _ = self.0.send(());
        }
        fn notice(&self, _: ModelNotice) {}
    }
    let (endless, watch) = (request("hello", 190_000), DeltaSignal(seen));
    tokio::select! {
        reply = model.chat(&endless, &watch) => panic!("{reply:?}"),
        delta = first_delta.recv() => assert!(delta.is_some()),
    }
    let next = request("good bye", 3);
    let next = tokio::time::timeout(Duration::from_secs(60), model.chat(&next, &NoWatch));
    assert_eq!(next.await.unwrap().unwrap().usage.output, Tokens(3));
}

#[tokio::test]
async fn error_for_a_damaged_model_file_names_the_file() {
    let directory = TempDir::new().unwrap();
    let path = TestModelRecipe::default().write(directory.path());
    let whole = std::fs::read(&path).unwrap();
    let attempt = |bytes: &[u8]| {
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let (name, path) = ("tiny".into(), path.clone());
        LocalModel::open(LocalOptions {
            name,
            path,
            context_window: None,
            guesses: true,
        })
    };
    for cut in [0, 3, 100, 4000] {
        let error = attempt(&whole[..cut]).err().unwrap().to_string();
        assert!(error.contains(".gguf"), "{error}");
    }
    // The metadata is complete, so the error occurs only at the first request.
    let model = attempt(&whole[..whole.len() - 5000]).unwrap();
    let error = model
        .chat(&request("hello", 3), &NoWatch)
        .await
        .unwrap_err();
    assert!(matches!(error, ModelError::Unavailable { .. }), "{error}");
    let model = attempt(&whole).unwrap();
    assert!(model.chat(&request("hello", 3), &NoWatch).await.is_ok());
}

#[test]
fn unsupported_network_architecture_is_named_in_the_error() {
    let directory = TempDir::new().unwrap();
    let path = TestModelRecipe {
        architecture: "mamba",
        ..TestModelRecipe::default()
    }
    .write(directory.path());
    let options = LocalOptions {
        name: "x".into(),
        path,
        context_window: None,
        guesses: true,
    };
    let error = LocalModel::open(options).err().unwrap().to_string();
    assert!(
        error.contains("mamba") && error.contains("qwen2"),
        "{error}"
    );
}

/// Runs with real weights if the variable contains the path of a Qwen2.5-Coder-Instruct file.
#[tokio::test]
async fn model_with_real_weights_fixes_a_function() {
    let Some(path) = std::env::var_os("STARLING_TEST_WEIGHTS") else {
        return;
    };
    let model = LocalModel::open(LocalOptions {
        name: "qwen".into(),
        path: path.into(),
        context_window: Some(Tokens(2048)),
        guesses: true,
    })
    .unwrap();
    let text = "This function has a bug:\n```python\ndef last(items):\n    return items[len(items)]\n```\n\
        `last([1, 2])` must be `2`, but it raises `IndexError`.\nCorrect the function. Answer with one \
        ```python block that contains the whole corrected function.";
    let reply = chat(&model, &request(text, 100)).await;
    assert_eq!(reply.finish, Finish::Stop);
    let fixed = ["items[-1]", "items[len(items) - 1]", "items[len(items)-1]"];
    assert!(
        fixed.iter().any(|fix| reply.text.contains(fix)),
        "{}",
        reply.text
    );
    let again = chat(&model, &request(text, 100)).await;
    assert_eq!(again.text, reply.text);
}
