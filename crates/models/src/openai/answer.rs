//! Assembles an answer from streamed chunks. Servers differ, so every known variant is accepted.

use serde_json::Value;

use starling_core::{ChatWatch, Finish, Tokens, ToolCall, Usage};

/// The parts of an answer that have arrived so far.
#[derive(Debug, Default)]
pub(super) struct StreamedAnswer {
    text: String,
    calls: Vec<PartialCall>,
    finish: Option<String>,
    refused: bool,
    usage: Option<Usage>,
    received: Tokens,
    received_bytes: u64,
}

/// A tool call whose arguments may be incomplete.
#[derive(Debug)]
struct PartialCall {
    index: Option<u64>,
    call: ToolCall,
}

impl StreamedAnswer {
    /// Adds one chunk. If a server does not stream, its whole answer is one chunk.
    pub fn take(&mut self, chunk: &Value, watch: &dyn ChatWatch) {
        if let Some(usage) = chunk.get("usage").and_then(read_usage) {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else {
            return;
        };
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.take_delta(delta, watch);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(reason.to_owned());
        }
    }

    fn take_delta(&mut self, delta: &Value, watch: &dyn ChatWatch) {
        let text = delta.get("content").map(plain_text).unwrap_or_default();
        let refusal = delta.get("refusal").map(plain_text).unwrap_or_default();
        self.refused |= !refusal.is_empty();
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.take_call(call);
        }
        let thoughts = ["reasoning_content", "reasoning"]
            .iter()
            .find_map(|field| delta.get(field).and_then(Value::as_str));
        let thinking = thoughts.is_some();
        let piece = text + &refusal;
        self.count(&piece);
        self.count(thoughts.unwrap_or_default());
        // An empty delta is reported as a sign of life: arguments or reasoning are being generated.
        if !piece.is_empty() || calls.is_some() || thinking {
            watch.delta(&piece);
        }
        self.text.push_str(&piece);
    }

    fn take_call(&mut self, piece: &Value) {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let function = piece.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str).unwrap_or("");
        let place = match self.place_of(index, id, name) {
            Some(place) => place,
            None => {
                self.calls.push(PartialCall {
                    index,
                    call: ToolCall {
                        id: String::new(),
                        name: String::new(),
                        arguments: String::new(),
                    },
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[place].call;
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        if call.name.is_empty() {
            call.name.push_str(name);
        }
        match function.get("arguments") {
            Some(Value::String(text)) => {
                call.arguments.push_str(text);
                self.count(text);
            }
            // Some servers send the arguments as a complete JSON object.
            Some(object @ Value::Object(_)) => {
                call.arguments = object.to_string();
                self.count(&object.to_string());
            }
            Some(_) | None => {}
        }
    }

    /// Returns the position of the call that a piece belongs to. Some servers send the index 0 for
    /// every call, or no index.
    fn place_of(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let place = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let known = &self.calls[place].call.id;
        let another = !id.is_empty() && !known.is_empty() && id != known && !name.is_empty();
        (!another).then_some(place)
    }

    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Returns why the model stopped, or `None` if the stream ended prematurely.
    pub fn finish(&self) -> Option<Finish> {
        let reason = self.finish.as_deref()?;
        Some(match reason {
            "length" | "max_tokens" | "model_length" => Finish::Length,
            "content_filter" | "safety" | "refusal" => Finish::Filtered,
            _ if self.refused => Finish::Filtered,
            // Whatever reason the server gives, an answer with calls ends in tool calls.
            _ if !self.calls.is_empty() => Finish::ToolCalls,
            _ => Finish::Stop,
        })
    }

    /// Returns the usage that the server reported, if any.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns an upper bound of the tokens received so far, including reasoning.
    pub fn received(&self) -> Tokens {
        self.received
    }

    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    fn count(&mut self, text: &str) {
        self.received_bytes += text.len() as u64;
        self.received += Tokens::at_most(text);
    }

    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// Removes and returns the calls. Each call gets an id if it has none.
    pub fn take_calls(&mut self) -> Vec<ToolCall> {
        let calls = std::mem::take(&mut self.calls);
        calls
            .into_iter()
            .enumerate()
            .map(|(number, PartialCall { mut call, .. })| {
                if call.id.is_empty() {
                    call.id = format!("call_{number}");
                }
                call
            })
            .collect()
    }
}

/// Returns the text of a message's content: a string, or the text parts of a list. Other content
/// has no text.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let count = |field: &str| usage.get(field).and_then(Value::as_u64).map(Tokens);
    let prompt = count("prompt_tokens")?;
    let cached = usage
        .get("prompt_tokens_details")
        .and_then(|details| details.get("cached_tokens"))
        .and_then(Value::as_u64)
        .map(Tokens)
        .or_else(|| count("prompt_cache_hit_tokens"))
        .unwrap_or_default();
    Some(Usage {
        prompt,
        cached,
        output: count("completion_tokens").unwrap_or_default(),
    })
}
