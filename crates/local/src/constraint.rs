//! Restricts the tokens of an answer to an output format: tool calls that follow the tools' schemas, or JSON
//! that follows a given schema.

use std::sync::Arc;

use candle_core::{Error, Result};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use super::vocabulary::Vocabulary;
use starling_core::{AnswerFormat, ChatRequest, ToolSpec};

/// The texts that open and close a tool call in the format of Qwen, which many other models use.
const CALL_OPENS: &str = "<tool_call>\n";
const CALL_CLOSES: &str = "\n</tool_call>";
/// Maximum number of tool calls in one answer. A small model may repeat a call without an end.
const MOST_CALLS: usize = 8;

/// The first byte of a special token, which is not text.
const NO_TEXT: u8 = 0xff;

/// Creates output constraints for the answers of one model.
pub struct ConstraintFactory {
    parsers: ParserFactory,
    ends: Vec<u32>,
}

/// The output constraint of one answer.
pub struct OutputConstraint {
    matcher: Matcher,
    ends: Vec<u32>,
}

impl ConstraintFactory {
    /// Creates a factory for a model's vocabulary.
    ///
    /// # Errors
    /// The vocabulary has no token that ends an answer.
    pub fn new(vocabulary: &Vocabulary) -> Result<Self> {
        let ends = vocabulary.all_ends();
        let Some(end) = ends.first() else {
            return Err(Error::Msg("the vocabulary has no end token".to_owned()));
        };
        let words: Vec<Vec<u8>> = (0..vocabulary.size())
            .map(|token| match vocabulary.bytes(token) {
                bytes if bytes.is_empty() => [&[NO_TEXT], token.to_string().as_bytes()].concat(),
                bytes => bytes,
            })
            .collect();
        let trie = TokTrie::from(&TokRxInfo::new(vocabulary.size(), *end), &words);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut parsers = ParserFactory::new_simple(&environment).map_err(Error::wrap)?;
        parsers.quiet();
        Ok(Self { parsers, ends })
    }

    /// Returns the constraint for the answer to a request. Returns `None` if no format is required and
    /// the schemas of the tools cannot be enforced.
    ///
    /// # Errors
    /// The required format cannot be enforced.
    pub fn of(&self, request: &ChatRequest) -> Result<Option<OutputConstraint>> {
        let created = self.create(&request.format, &request.tools);
        match request.format {
            AnswerFormat::Free => Ok(created.ok()),
            AnswerFormat::ToolCalls | AnswerFormat::Json(_) => created.map(Some),
        }
    }

    /// Creates a constraint for an answer with this format and these tools.
    ///
    /// # Errors
    /// A schema is invalid or cannot be enforced.
    fn create(&self, format: &AnswerFormat, tools: &[ToolSpec]) -> Result<OutputConstraint> {
        let grammar = TopLevelGrammar::from_lark(grammar(format, tools));
        let parser = self.parsers.create_parser(grammar).map_err(failed)?;
        Ok(OutputConstraint {
            matcher: Matcher::new(Ok(parser)),
            ends: self.ends.clone(),
        })
    }
}

/// Returns whether a request restricts its answer.
pub fn is_possible(request: &ChatRequest) -> bool {
    request.format != AnswerFormat::Free || !request.tools.is_empty()
}

impl OutputConstraint {
    /// Sets the score of each token that the format does not allow next to negative infinity.
    ///
    /// # Errors
    /// Parsing the format exceeds a limit.
    pub fn restrict(&mut self, scores: &mut [f32]) -> Result<()> {
        let allowed = self.matcher.compute_mask_or_eos().map_err(failed)?;
        // A network may have scores for more tokens than the vocabulary has.
        let is_allowed = |token: usize| token < allowed.len() && allowed.get(token);
        let ends = self.ends.iter().map(|end| *end as usize);
        // The grammar knows only one of the tokens that end an answer.
        let is_complete = ends.clone().any(is_allowed);
        let ends = ends.filter(|end| is_complete && *end < scores.len());
        let kept: Vec<(usize, f32)> = ends.map(|end| (end, scores[end])).collect();
        for (token, score) in scores.iter_mut().enumerate() {
            if !is_allowed(token) {
                *score = f32::NEG_INFINITY;
            }
        }
        for (end, score) in kept {
            scores[end] = score;
        }
        Ok(())
    }

    /// Records the selected token.
    ///
    /// # Errors
    /// The format does not allow the token.
    pub fn accept(&mut self, token: u32) -> Result<()> {
        if self.ends.contains(&token) || self.matcher.is_stopped() {
            return Ok(());
        }
        self.matcher.consume_token(token).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Msg(format!("the format of the answer: {error}"))
}

/// Returns the grammar of a format in the Lark dialect of the crate llguidance.
fn grammar(format: &AnswerFormat, tools: &[ToolSpec]) -> String {
    let start = match format {
        AnswerFormat::Json(schema) => {
            return format!("start: %json {}\n", with_layout(schema.clone()));
        }
        AnswerFormat::Free => format!("start: (prose call){{1,{MOST_CALLS}}} | PROSE"),
        AnswerFormat::ToolCalls => {
            let more = MOST_CALLS - 1;
            format!("start: opens call (\"\\n\" opens call){{0,{more}}}")
        }
    };
    let opens = json!(CALL_OPENS);
    let mut rules = format!(
        "{start}\n\
         opens: {opens}\n\
         prose[lazy]: /(?s:.*)/ {opens}\n\
         PROSE: /(?s:.*)/ & ~/(?s:.*)<tool_call>\\n(?s:.*)/\n\
         call: ({}) {}\n",
        (0..tools.len())
            .map(|at| format!("call{at}"))
            .collect::<Vec<_>>()
            .join(" | "),
        json!(CALL_CLOSES),
    );
    for (at, tool) in tools.iter().enumerate() {
        let mut arguments = tool.parameters.clone();
        if let Value::Object(fields) = &mut arguments {
            fields.entry("type").or_insert_with(|| json!("object"));
        }
        let call = json!({
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": arguments},
            "required": ["name", "arguments"],
            "additionalProperties": false,
        });
        rules.push_str(&format!("call{at}: %json {}\n", with_layout(call)));
    }
    rules
}

/// Restricts the white space in a schema to that of the models' training data. Small models otherwise
/// sometimes write white space without end.
fn with_layout(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.insert(
            "x-guidance".to_owned(),
            json!({
                "whitespace_flexible": false,
                "item_separator": ", ",
                "key_separator": ": ",
                // Ignore unsupported keywords and enforce the rest of the schema.
                "lenient": true,
            }),
        );
    }
    schema
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::file::ModelFile;
    use super::super::fixture::{END, TestModelRecipe};
    use super::super::sampler::Sampler;
    use super::*;

    fn factory() -> (ConstraintFactory, Vocabulary) {
        let directory = TempDir::new().unwrap();
        let path = TestModelRecipe::default().write(directory.path());
        let vocabulary = Vocabulary::load(&ModelFile::open(&path).unwrap()).unwrap();
        (ConstraintFactory::new(&vocabulary).unwrap(), vocabulary)
    }

    fn tools() -> Vec<ToolSpec> {
        let tool = |name: &str, parameters| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters,
        };
        vec![
            tool(
                "read",
                json!({
                    "type": "object",
                    "properties": {
                        "symbol": {"type": "string", "maxLength": 20},
                        "lines": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
                    },
                    "required": ["symbol"],
                    "additionalProperties": false,
                }),
            ),
            tool(
                "finish",
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
            ),
        ]
    }

    /// Generates an answer from scores that prefer the tokens of `wanted` and are otherwise random. Returns
    /// `None` if the answer does not end within 400 tokens.
    fn written(
        (factory, vocabulary): &(ConstraintFactory, Vocabulary),
        format: &AnswerFormat,
        wanted: &str,
        seed: u64,
    ) -> Option<String> {
        let mut constraint = factory.create(format, &tools()).unwrap();
        let mut sampler = Sampler::new(1.0, None, Some(seed));
        let mut wanted = wanted.bytes();
        let mut next = wanted.next();
        let mut bytes = Vec::new();
        for _ in 0..400 {
            let mut scores = vec![0.0; vocabulary.size() as usize];
            // Prefer quotes, so that random strings end.
            scores[usize::from(token_of(vocabulary, b'"'))] = 4.0;
            if let Some(byte) = next {
                scores[usize::from(token_of(vocabulary, byte))] = 100.0;
            }
            constraint.restrict(&mut scores).unwrap();
            let token = sampler.pick(&scores) as u32;
            assert!(scores[token as usize] > f32::NEG_INFINITY);
            if vocabulary.ends(token) {
                return Some(String::from_utf8(bytes).unwrap());
            }
            constraint.accept(token).unwrap();
            let text = vocabulary.bytes(token);
            if next.is_some_and(|byte| text == [byte]) {
                next = wanted.next();
            }
            bytes.extend(text);
        }
        None
    }

    fn token_of(vocabulary: &Vocabulary, byte: u8) -> u16 {
        let mut tokens = 0..vocabulary.size();
        tokens
            .find(|token| vocabulary.bytes(*token) == [byte])
            .unwrap() as u16
    }

    fn arguments(call: &str) -> Value {
        let call = call.strip_prefix(CALL_OPENS).unwrap();
        serde_json::from_str(call.strip_suffix(CALL_CLOSES).unwrap()).unwrap()
    }

    #[test]
    fn random_scores_give_valid_calls() {
        let both = factory();
        let format = AnswerFormat::ToolCalls;
        let mut complete = 0;
        for seed in 0..60 {
            let Some(text) = written(&both, &format, "", seed) else {
                continue;
            };
            complete += 1;
            for call in text.split(&format!("{CALL_CLOSES}\n")) {
                let call = call.strip_suffix(CALL_CLOSES).unwrap_or(call);
                let call = arguments(&format!("{call}{CALL_CLOSES}"));
                match call["name"].as_str().unwrap() {
                    "read" => assert!(call["arguments"]["symbol"].is_string(), "{call}"),
                    name => assert_eq!((name, &call["arguments"]), ("finish", &json!({}))),
                }
            }
        }
        assert!(complete > 20, "{complete}");
    }

    #[test]
    fn text_is_allowed_before_or_instead_of_a_call() {
        let both = factory();
        let call =
            "I look at <f>.\n<tool_call>\n{\"name\": \"finish\", \"arguments\": {}}\n</tool_call>";
        let mut constraint = both.0.create(&AnswerFormat::Free, &tools()).unwrap();
        for byte in call.bytes() {
            constraint
                .accept(u32::from(token_of(&both.1, byte)))
                .unwrap();
        }
        let mut scores = vec![0.0; both.1.size() as usize];
        constraint.restrict(&mut scores).unwrap();
        assert!(scores[END as usize] == 0.0);
        // An unfinished call must not end the answer.
        let mut constraint = both.0.create(&AnswerFormat::Free, &tools()).unwrap();
        for byte in call.bytes().take(40) {
            constraint
                .accept(u32::from(token_of(&both.1, byte)))
                .unwrap();
        }
        let mut scores = vec![0.0; both.1.size() as usize];
        constraint.restrict(&mut scores).unwrap();
        assert!(scores[END as usize] == f32::NEG_INFINITY);
    }

    #[test]
    fn number_of_calls_in_an_answer_is_limited() {
        let both = factory();
        let call = "<tool_call>\n{\"name\": \"finish\", \"arguments\": {}}\n</tool_call>\n";
        let mut constraint = both.0.create(&AnswerFormat::ToolCalls, &tools()).unwrap();
        let calls = call.repeat(MOST_CALLS);
        for byte in calls.trim_end().bytes() {
            constraint
                .accept(u32::from(token_of(&both.1, byte)))
                .unwrap();
        }
        let mut scores = vec![0.0; both.1.size() as usize];
        constraint.restrict(&mut scores).unwrap();
        let allowed = (0..both.1.size()).filter(|token| scores[*token as usize] == 0.0);
        assert!(allowed.clone().count() > 0);
        assert!(allowed.clone().all(|token| both.1.ends(token)));
    }

    #[test]
    fn json_follows_its_schema() {
        let both = factory();
        let schema = json!({
            "type": "object",
            "properties": {"accept": {"type": "boolean"}, "why": {"type": "string", "maxLength": 9}},
            "required": ["accept", "why"],
            "additionalProperties": false,
        });
        for seed in 0..20 {
            let text = written(&both, &AnswerFormat::Json(schema.clone()), "no: I", seed).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(
                value["accept"].is_boolean() && value["why"].is_string(),
                "{value}"
            );
        }
    }

    #[test]
    fn scores_of_tokens_outside_the_vocabulary_are_never_selected() {
        let (factory, vocabulary) = factory();
        let format = AnswerFormat::Json(json!({"type": "object"}));
        let mut constraint = factory.create(&format, &[]).unwrap();
        let mut scores = vec![0.0; vocabulary.size() as usize + 100];
        constraint.restrict(&mut scores).unwrap();
        let outside = &scores[vocabulary.size() as usize..];
        assert!(outside.iter().all(|score| *score == f32::NEG_INFINITY));
    }

    #[test]
    fn invalid_schema_is_an_error() {
        let (factory, _) = factory();
        let failed = factory.create(&AnswerFormat::Json(json!({"type": "nothing"})), &[]);
        assert!(
            failed
                .err()
                .unwrap()
                .to_string()
                .starts_with("the format of the answer: ")
        );
    }
}
