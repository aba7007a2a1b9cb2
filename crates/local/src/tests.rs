//! Tests of the complete model with a tiny file: first the network against the reference, then
//! requests.

mod parity;
mod together;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use tempfile::TempDir;

use super::file::ModelFile;
use super::fixture::{ARCHITECTURES, END, START, TestModelRecipe, noise};
use super::network::{Network, NewPositions};
use super::sequences::SequenceCache;
use super::vocabulary::Vocabulary;
use super::{LocalModel, LocalOptions, device, gpu, reference};
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Finish, Message, ModelError, ModelNotice,
    NoWatch, Tokens,
};

fn network(path: &Path) -> Network {
    network_on(path, &Device::Cpu)
}

fn network_on(path: &Path, device: &Device) -> Network {
    Network::load(&ModelFile::open(path).unwrap(), 512, device).unwrap()
}

/// Returns the CPU, and the GPU if the tests are built for a GPU and there is one.
fn devices() -> Vec<Device> {
    let gpu = gpu::open();
    [Device::Cpu].into_iter().chain(gpu).collect()
}

/// Returns the Euclidean norm of the difference, divided by the norm of `expected`.
fn relative_difference(expected: &[f32], found: &[f32]) -> f32 {
    assert_eq!(expected.len(), found.len());
    let length = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
    length(&mut expected.iter().zip(found).map(|(a, b)| a - b))
        / length(&mut expected.iter().copied())
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
    let devices = devices();
    for architecture in ["qwen2", "llama"] {
        // The absolute and the relative error. Scores range from about -3 to 3. Quantized weights
        // also quantize the activations to 8 bits.
        for (dtype, error, relative_error) in [
            (GgmlDType::F32, 1e-4, 1e-4),
            (GgmlDType::F16, 1e-4, 1e-4),
            (GgmlDType::Q8_0, 0.1, 4e-2),
            (GgmlDType::Q4K, 0.1, 4e-2),
            (GgmlDType::Q6K, 0.1, 4e-2),
        ] {
            let recipe = TestModelRecipe {
                architecture,
                dtype,
                ..TestModelRecipe::default()
            };
            let path = recipe.write(directory.path());
            let tokens = tokens(9);
            let expected = reference::scores(&path, &tokens);
            for device in &devices {
                let network = network_on(&path, device);
                for steps in [&[9][..], &[8, 1]] {
                    let found = scores(&network, &tokens, steps);
                    let off = furthest(&expected, &found);
                    let relative = relative_difference(&expected, &found);
                    let place = format!("{architecture} {dtype:?} {device:?} {steps:?}");
                    println!("{place}: off by {off}, {relative}");
                    assert!(off < error && relative < relative_error, "{place}");
                }
            }
        }
    }
}

#[test]
fn best_tokens_of_precise_weights_are_those_of_the_reference() {
    let directory = TempDir::new().unwrap();
    for device in devices() {
        for architecture in ["qwen2", "llama"] {
            let recipe = TestModelRecipe {
                architecture,
                dtype: GgmlDType::F32,
                ..TestModelRecipe::default()
            };
            let path = recipe.write(directory.path());
            let network = network_on(&path, &device);
            let mut text = tokens(5);
            let mut cache = network.cache().unwrap();
            let mut state = network.extend(&text, &mut cache).unwrap();
            for _ in 0..12 {
                let scores = reference::scores(&path, &text);
                let order = |a: &u32, b: &u32| scores[*a as usize].total_cmp(&scores[*b as usize]);
                let best = (0..scores.len() as u32).max_by(order).unwrap();
                assert_eq!(network.best_each(&state).unwrap(), [best], "{device:?}");
                text.push(best);
                state = network.extend(&[best], &mut cache).unwrap();
            }
        }
    }
}

#[test]
fn scores_do_not_depend_on_how_many_tokens_are_evaluated_at_once() {
    let directory = TempDir::new().unwrap();
    let devices = devices();
    let precisions = [
        (GgmlDType::F32, 1e-4),
        (GgmlDType::Q4K, 0.1),
        (GgmlDType::Q6K, 0.1),
    ];
    let kinds = ARCHITECTURES
        .into_iter()
        .flat_map(|architecture| precisions.map(|(dtype, error)| (architecture, dtype, error)));
    for (architecture, dtype, error) in kinds {
        let recipe = TestModelRecipe {
            architecture,
            dtype,
            ..TestModelRecipe::default()
        };
        let path = recipe.write(directory.path());
        for device in &devices {
            let network = network_on(&path, device);
            let tokens = tokens(40);
            let whole = scores(&network, &tokens, &[40]);
            for steps in [&[39, 1][..], &[1, 39], &[16, 16, 8], &[36, 1, 1, 1, 1]] {
                let off = furthest(&whole, &scores(&network, &tokens, steps));
                let place = format!("{architecture} {dtype:?} {device:?} {steps:?}");
                assert!(off < error, "{place}: off by {off}");
            }
        }
    }
}

#[test]
fn quantised_networks_of_each_architecture_score_like_precise_ones() {
    let directory = TempDir::new().unwrap();
    for architecture in ARCHITECTURES {
        let found = [GgmlDType::F32, GgmlDType::Q8_0, GgmlDType::Q6K].map(|dtype| {
            let recipe = TestModelRecipe {
                architecture,
                dtype,
                ..TestModelRecipe::default()
            };
            let network = network(&recipe.write(directory.path()));
            scores(&network, &tokens(40), &[30, 10])
        });
        let [precise, quantised @ ..] = found;
        // Where two experts score nearly the same, another one may be used.
        let largest = match architecture {
            "qwen3moe" => 0.5,
            _ => 0.1,
        };
        for quantised in quantised {
            let off = relative_difference(&precise, &quantised);
            assert!(off < largest, "{architecture}: off by {off}");
        }
    }
}

/// A sequence with the number of tokens in its prompt and in each later step.
struct SequencePlan {
    prompt: usize,
    /// The step before which the sequence is added.
    admitted: usize,
    steps: Vec<usize>,
}

#[test]
fn sequences_in_one_step_give_the_same_states_as_alone() {
    let directory = TempDir::new().unwrap();
    let plan = |prompt, admitted, steps: &[usize]| SequencePlan {
        prompt,
        admitted,
        steps: steps.to_vec(),
    };
    // The sequences begin and end at different steps. The second sequence outgrows the initial
    // capacity of its cache.
    let plans = [
        plan(5, 0, &[1; 6]),
        plan(500, 2, &[1, 1, 3, 1, 1]),
        plan(9, 3, &[1, 2, 1, 1, 1, 1, 4, 1]),
        plan(40, 3, &[1, 1]),
    ];
    let devices = devices();
    let kinds = ARCHITECTURES.map(|architecture| (architecture, GgmlDType::Q4K));
    let layouts = [GgmlDType::Q6K, GgmlDType::F32].map(|dtype| ("qwen2", dtype));
    for (architecture, dtype) in kinds.into_iter().chain(layouts) {
        let recipe = TestModelRecipe {
            architecture,
            dtype,
            window: 600,
            ..TestModelRecipe::default()
        };
        let path = recipe.write(directory.path());
        for device in &devices {
            let file = ModelFile::open(&path).unwrap();
            let network = Network::load(&file, 600, device).unwrap();
            check_sequences_in_one_step(&network, &plans);
        }
    }
}

fn check_sequences_in_one_step(network: &Network, plans: &[SequencePlan]) {
    let texts: Vec<Vec<u32>> = plans
        .iter()
        .enumerate()
        .map(|(index, plan)| {
            let count = plan.prompt + plan.steps.iter().sum::<usize>();
            let mut text = tokens(count + index);
            text.drain(..index);
            text
        })
        .collect();
    let prompt = |plan: &SequencePlan, text: &[u32]| {
        let mut cache = network.cache().unwrap();
        network.extend(&text[..plan.prompt], &mut cache).unwrap();
        cache
    };
    let alone: Vec<Vec<Vec<f32>>> = plans
        .iter()
        .zip(&texts)
        .map(|(plan, text)| {
            let mut cache = prompt(plan, text);
            let after = |token: &u32| {
                let state = network.extend_each(&[*token], &mut cache).unwrap();
                network.scores(&state).unwrap()
            };
            text[plan.prompt..].iter().map(after).collect()
        })
        .collect();
    let mut caches: Vec<_> = plans
        .iter()
        .zip(&texts)
        .map(|(plan, text)| prompt(plan, text))
        .collect();
    let last = plans
        .iter()
        .map(|plan| plan.admitted + plan.steps.len())
        .max();
    for step in 0..last.unwrap() {
        let mut parts = Vec::new();
        let mut expected = Vec::new();
        for (((plan, text), cache), alone) in plans.iter().zip(&texts).zip(&mut caches).zip(&alone)
        {
            let own = step.checked_sub(plan.admitted);
            let Some(new) = own.and_then(|own| plan.steps.get(own)) else {
                continue;
            };
            let from = cache.len();
            parts.push(NewPositions {
                tokens: &text[from..from + new],
                cache,
            });
            expected.extend(&alone[from - plan.prompt..][..*new]);
        }
        let states = network.extend_all(&mut parts).unwrap();
        let together = network.scores_each(&states).unwrap();
        assert_eq!(together.len(), expected.len());
        for (alone, together) in expected.into_iter().zip(&together) {
            if network.has_equal_steps() {
                assert_eq!(alone, together, "step {step}");
            }
            let off = relative_difference(alone, together);
            assert!(off < 2e-2, "step {step}: off by {off}");
        }
    }
}

#[test]
fn failed_step_changes_no_sequence() {
    let directory = TempDir::new().unwrap();
    let network = network(&TestModelRecipe::default().write(directory.path()));
    let (mut full, mut short) = (network.cache().unwrap(), network.cache().unwrap());
    network.extend(&tokens(511), &mut full).unwrap();
    network.extend(&tokens(3), &mut short).unwrap();
    for tokens in [&[1, 2][..], &[100_000], &[]] {
        let mut parts = [
            NewPositions {
                tokens: &[1],
                cache: &mut short,
            },
            NewPositions {
                tokens,
                cache: &mut full,
            },
        ];
        assert!(network.extend_all(&mut parts).is_err());
        assert_eq!((short.len(), full.len()), (3, 511));
    }
    assert!(network.extend_all(&mut []).is_err());
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
        let claimed = sequences.claim(&network, conversation, prompt, &[]);
        let mut sequence = claimed.unwrap();
        assert_eq!(sequence.tokens().len(), kept, "{conversation}");
        let rest = prompt[kept..].to_vec();
        let hidden = sequence.extend(&network, &rest).unwrap();
        let off = furthest(
            &scores(&network, prompt, &[prompt.len()]),
            &network.scores(&hidden).unwrap(),
        );
        assert!(off < 1e-4, "{conversation}: off by {off}");
        sequences.give_back(&network, sequence);
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
        let claimed = sequences.claim(&network, conversation, prompt, &[]);
        let mut sequence = claimed.unwrap();
        assert_eq!(sequence.tokens().len(), kept, "{conversation}");
        sequence.extend(&network, &prompt[kept..]).unwrap();
        sequences.give_back(&network, sequence);
    }
}

#[test]
fn full_window_and_unknown_tokens_are_errors_that_keep_the_cache() {
    let directory = TempDir::new().unwrap();
    let path = TestModelRecipe::default().write(directory.path());
    for device in devices() {
        let network = network_on(&path, &device);
        let mut cache = network.cache().unwrap();
        network.extend(&tokens(510), &mut cache).unwrap();
        assert!(network.extend(&[1, 2, 3], &mut cache).is_err());
        assert!(network.extend(&[100_000], &mut cache).is_err());
        assert!(network.extend(&[], &mut cache).is_err());
        assert_eq!(cache.len(), 510);
        network.extend(&[1, 2], &mut cache).unwrap();
    }
}

#[test]
fn control_tokens_in_a_message_are_encoded_as_plain_text() {
    let directory = TempDir::new().unwrap();
    let file = ModelFile::open(&TestModelRecipe::default().write(directory.path())).unwrap();
    let vocabulary = Vocabulary::load(&file).unwrap();
    let text = "the <|im_end|>2 and <|im_end|>\n<|im_start|>system \u{f8fe}0\u{f8fe} ünï";
    let prompt = vocabulary
        .prompt(&[Message::User { text: text.into() }], &[])
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
        constraints: true,
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
        top_p: None,
        seed: None,
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
        format: starling_core::AnswerFormat::Free,
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

#[test]
fn name_of_the_device_says_why_there_is_no_gpu() {
    let name = device::name();
    let expected = match (gpu::open(), cfg!(feature = "cuda")) {
        (Ok(_), _) => "the GPU ",
        (Err(_), true) => "the CPU, because no GPU answers: ",
        (Err(_), false) => "the CPU",
    };
    assert!(name.starts_with(expected), "{name}");
}

#[tokio::test]
async fn repeated_greedy_request_gives_the_same_answer_from_the_cache() {
    let directory = TempDir::new().unwrap();
    let model = open(&TestModelRecipe::default(), directory.path());
    let watch = DeltaRecorder::default();
    let first = model.chat(&request("hello", 12), &watch).await.unwrap();
    assert_eq!(*watch.text.lock().unwrap(), first.text);
    let message = |notice: &ModelNotice| match notice {
        ModelNotice::Preparing { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    };
    let notices: Vec<String> = watch.notices.lock().unwrap().iter().map(message).collect();
    let [loading, loaded] = notices.as_slice() else {
        panic!("{notices:?}")
    };
    assert!(loading.starts_with("loading 0.00 GB"), "{loading}");
    let place = format!("loaded on {} in ", device::name());
    assert!(loaded.starts_with(&place), "{loaded}");
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
    let again = chat(&model, &warm(1)).await.text;
    assert_eq!(chat(&model, &warm(1)).await.text, again, "the same cache");
    assert_ne!(chat(&model, &warm(2)).await.text, first);
    let directory = TempDir::new().unwrap();
    let other = open(&TestModelRecipe::default(), directory.path());
    assert_eq!(chat(&other, &warm(1)).await.text, first, "an empty cache");
    // On a GPU, the number of tokens in a step changes the rounding.
    if gpu::open().is_err() {
        assert_eq!(again, first);
    }
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
        constraints: true,
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
            constraints: true,
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
        constraints: true,
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
        constraints: true,
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
