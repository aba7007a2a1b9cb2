//! Compares the networks and the tokenizers with independent implementations. `tests/parity/run` creates
//! the files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use candle_core::Device;
use serde_json::Value;

use super::super::file::ModelFile;
use super::super::network::Network;
use super::super::tokenizer::{self, FileTokens};
use super::{relative_difference, scores};

/// Maximum relative difference of the scores, for 16-bit weights.
const LARGEST_DIFFERENCE: f32 = 2e-2;
/// Separates the texts, and the lines of their tokens, in llama.cpp's files for testing vocabularies.
const SEPARATOR: &str = "\n__ggml_vocab_test__\n";

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    files.sort();
    files
}

fn whole_numbers(value: &Value) -> Vec<u32> {
    let numbers = value.as_array().unwrap().iter();
    numbers
        .map(|number| number.as_u64().unwrap() as u32)
        .collect()
}

#[test]
fn networks_give_the_scores_and_tokens_of_transformers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths = files(&root.join("../../fixtures/networks"), "gguf");
    assert_eq!(paths.len(), 7, "{paths:?}");
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path.with_extension("json")).unwrap();
        let results: Value = serde_json::from_str(&text).unwrap();
        let tokens = whole_numbers(&results["tokens"]);
        let expected = results["scores"].as_array().unwrap().iter();
        let expected: Vec<f32> = expected.map(|x| x.as_f64().unwrap() as f32).collect();
        let network = Network::load(&ModelFile::open(&path).unwrap(), 512, &Device::Cpu).unwrap();
        let mut worst = 0f32;
        for steps in [&[tokens.len()][..], &[1, tokens.len() - 2, 1]] {
            let found = scores(&network, &tokens, steps);
            worst = worst.max(relative_difference(&expected, &found));
        }
        let greedy = whole_numbers(&results["greedy"]);
        let mut cache = network.cache().unwrap();
        let mut state = network.extend(&tokens, &mut cache).unwrap();
        let mut same = 0;
        for token in &greedy {
            if network.best_each(&state).unwrap() != [*token] {
                break;
            }
            same += 1;
            state = network.extend(&[*token], &mut cache).unwrap();
        }
        let total = greedy.len();
        println!("| {name} | {worst:.1e} | {same} of {total} |");
        assert!(worst < LARGEST_DIFFERENCE, "{name}: off by {worst}");
        assert_eq!(same, total, "{name}: the tokens differ");
    }
}

#[test]
#[ignore = "needs files: tests/parity/run creates them and runs this test"]
fn tokenizers_give_the_tokens_of_the_original_ones() {
    let directory = std::env::var_os("STARLING_VOCABULARIES").expect("run tests/parity/run");
    let mut names = HashSet::new();
    for path in files(Path::new(&directory), "inp") {
        let file = ModelFile::open(&path.with_extension("")).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let tokens = FileTokens::read(&file).unwrap();
        let special = tokens.never_text().collect();
        let tokenizer = match tokenizer::load(&file, &tokens, &special) {
            Ok((tokenizer, _)) => tokenizer,
            Err(error) => {
                let text = error.to_string();
                println!("| {name} | {} |", text.lines().next().unwrap_or_default());
                continue;
            }
        };
        let texts = std::fs::read_to_string(&path).unwrap();
        let expected = std::fs::read_to_string(path.with_extension("out")).unwrap();
        let mut equal = 0;
        let mut total = 0;
        for (text, expected) in texts.split(SEPARATOR).zip(expected.lines()) {
            let found = tokenizer.encode_fast(text, false).unwrap();
            let found: Vec<String> = found.get_ids().iter().map(u32::to_string).collect();
            total += 1;
            match found.join(" ") == expected.trim() {
                true => equal += 1,
                false => println!("{name}: {text:?} gives {found:?}, not {expected}"),
            }
        }
        println!("| {name} | {equal} of {total} |");
        assert_eq!(equal, total, "{name}");
        names.insert(name);
    }
    assert!(names.len() >= 5, "{names:?}");
}
