//! The chat template of a model file, which converts messages to the text format of the model's
//! training.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, context};
use minijinja_contrib::pycompat;

use starling_core::{Message, ToolCall, ToolSpec};

/// The ChatML template, for files without a template.
pub const CHATML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
    {{ message.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A compiled chat template.
pub struct ChatTemplate {
    environment: Environment<'static>,
    begin: String,
    end: String,
}

impl ChatTemplate {
    /// Compiles a template. `begin` and `end` are the texts of the tokens that open and close a
    /// sequence.
    ///
    /// # Errors
    /// The template is invalid.
    pub fn new(source: String, begin: String, end: String) -> Result<Self, Error> {
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        environment.set_syntax(syntax.build()?);
        // Templates are written for Jinja2, where strings have Python's methods.
        environment.set_unknown_method_callback(pycompat::unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |message: String| -> Result<String, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        environment.add_template_owned("chat", source)?;
        Ok(Self {
            environment,
            begin,
            end,
        })
    }

    /// Renders the prompt up to the start of the assistant's answer. `guard` escapes the texts that
    /// do not come from the template. If `tools` is empty, tool results have the role of the user,
    /// because the caller then describes tool calls in plain text.
    ///
    /// # Errors
    /// The template rejects these messages.
    pub fn render(
        &self,
        messages: &[Message],
        tools: &[ToolSpec],
        guard: impl Fn(&str) -> String,
    ) -> Result<String, Error> {
        let has_tools = !tools.is_empty();
        let turn = |message: &Message| {
            let content = guard(message.text());
            match message {
                Message::Assistant { tool_calls, .. } if has_tools && !tool_calls.is_empty() => {
                    let calls: Vec<Value> =
                        tool_calls.iter().map(|one| call(one, &guard)).collect();
                    context! { role => role(message), content => content, tool_calls => calls }
                }
                Message::Tool { .. } if has_tools => {
                    context! { role => "tool", content => content }
                }
                _ => context! { role => role(message), content => content },
            }
        };
        let tools: Vec<Value> = tools.iter().map(|one| tool(one, &guard)).collect();
        let template = self.environment.get_template("chat")?;
        let rendered = |turns: Vec<Value>| {
            template.render(context! {
                messages => turns,
                tools => has_tools.then_some(&tools),
                add_generation_prompt => true,
                // A small model has no time to think aloud.
                enable_thinking => false,
                bos_token => self.begin.as_str(),
                eos_token => self.end.as_str(),
            })
        };
        let all = rendered(messages.iter().map(turn).collect());
        if all.is_ok() || has_tools {
            return all;
        }
        // Some templates need roles that alternate.
        let merged = merged(messages);
        match merged.len() < messages.len() {
            true => rendered(merged.iter().map(turn).collect()),
            false => all,
        }
    }
}

/// Joins neighbouring messages of the same role.
fn merged(messages: &[Message]) -> Vec<Message> {
    let mut merged: Vec<Message> = Vec::new();
    for message in messages {
        match merged.last_mut() {
            Some(last) if role(last) == role(message) => {
                let text = format!("{}\n\n{}", last.text(), message.text());
                *last = match last {
                    Message::System { .. } => Message::System { text },
                    Message::User { .. } | Message::Tool { .. } => Message::User { text },
                    Message::Assistant { .. } => Message::Assistant {
                        text,
                        tool_calls: Vec::new(),
                    },
                };
            }
            _ => merged.push(message.clone()),
        }
    }
    merged
}

fn tool(tool: &ToolSpec, guard: &impl Fn(&str) -> String) -> Value {
    context! {
        type => "function",
        function => context! {
            name => guard(&tool.name),
            description => guard(&tool.description),
            parameters => guarded(&tool.parameters, guard),
        }
    }
}

fn call(call: &ToolCall, guard: &impl Fn(&str) -> String) -> Value {
    let arguments = match serde_json::from_str(&call.arguments) {
        Ok(arguments) => guarded(&arguments, guard),
        Err(_) => Value::from(guard(&call.arguments)),
    };
    context! {
        type => "function",
        function => context! { name => guard(&call.name), arguments => arguments },
    }
}

/// Converts a JSON value to a template value. Applies `guard` to all strings.
fn guarded(value: &serde_json::Value, guard: &impl Fn(&str) -> String) -> Value {
    match value {
        serde_json::Value::String(text) => Value::from(guard(text)),
        serde_json::Value::Array(items) => items.iter().map(|item| guarded(item, guard)).collect(),
        serde_json::Value::Object(fields) => fields
            .iter()
            .map(|(name, item)| (guard(name), guarded(item, guard)))
            .collect::<BTreeMap<_, _>>()
            .into(),
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(value) => Value::from(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64().unwrap_or_default()),
        },
    }
}

/// Returns the role of a message in a template without tools.
fn role(message: &Message) -> &'static str {
    match message {
        Message::System { .. } => "system",
        Message::User { .. } | Message::Tool { .. } => "user",
        Message::Assistant { .. } => "assistant",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[Message]) -> Result<String, Error> {
        let template = ChatTemplate::new(source.to_owned(), "<s>".into(), "</s>".into())?;
        template.render(messages, &[], str::to_owned)
    }

    fn conversation() -> Vec<Message> {
        vec![
            Message::System {
                text: "Be brief.".into(),
            },
            Message::User {
                text: "Hi\n".into(),
            },
            Message::Assistant {
                text: "Yes?".into(),
                tool_calls: Vec::new(),
            },
            Message::Tool {
                call_id: "1".into(),
                text: "42".into(),
            },
        ]
    }

    #[test]
    fn chatml_renders_tool_results_as_user_messages() {
        assert_eq!(
            render(CHATML, &conversation()).unwrap(),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi\n<|im_end|>\n\
             <|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\n42<|im_end|>\n\
             <|im_start|>assistant\n"
        );
    }

    #[test]
    fn template_block_lines_are_trimmed() {
        let source = "{{ bos_token }}{% for m in messages %}\n    {% if m['role'] == 'user' %}\n\
            {{- '[' + m['content'] + ']' }}\n    {% endif %}\n{% endfor %}{{ eos_token }}";
        assert_eq!(
            render(source, &conversation()).unwrap(),
            "<s>[Hi\n]\n[42]\n</s>"
        );
    }

    #[test]
    fn tools_and_their_calls_and_results_are_rendered_by_the_template() {
        let source = "{% for t in tools %}{{ t.function.name }}={{ t | tojson }};{% endfor %}\
            {% for m in messages %}[{{ m.role }} {{ m.content }}\
            {% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}]\
            {% endfor %}";
        let template = ChatTemplate::new(source.to_owned(), String::new(), String::new()).unwrap();
        let tool = ToolSpec {
            name: "look".into(),
            description: "<|im_end|>".into(),
            parameters: serde_json::json!({ "type": "object" }),
        };
        let mut messages = conversation();
        messages[2] = Message::Assistant {
            text: String::new(),
            tool_calls: vec![ToolCall {
                id: "1".into(),
                name: "look".into(),
                arguments: r#"{"at": "<|im_end|>"}"#.into(),
            }],
        };
        let guard = |text: &str| text.replace("<|im_end|>", "GUARDED");
        let text = template.render(&messages, &[tool], guard).unwrap();
        assert_eq!(
            text,
            "look={\"type\": \"function\", \"function\": {\"name\": \"look\", \
             \"description\": \"GUARDED\", \"parameters\": {\"type\": \"object\"}}};\
             [system Be brief.][user Hi\n][assistant look{\"at\": \"GUARDED\"}][tool 42]"
        );
    }

    #[test]
    fn messages_are_joined_for_a_template_that_needs_alternating_roles() {
        let source = "{% for m in messages %}{% if m.role == messages[loop.index0 - 1].role %}\
            {{ raise_exception('roles must alternate') }}{% endif %}[{{ m.role }} {{ m.content }}]{% endfor %}";
        let user = |text: &str| Message::User { text: text.into() };
        let tool = Message::Tool {
            call_id: "1".into(),
            text: "42".into(),
        };
        let mut messages = vec![user("a"), tool, user("b")];
        messages.insert(0, conversation().remove(0));
        let text = render(source, &messages).unwrap();
        assert_eq!(text, "[system Be brief.][user a\n\n42\n\nb]");
    }

    #[test]
    fn templates_use_methods_of_python_and_turn_thinking_off() {
        let source = "{% for m in messages if m.content.strip().startswith('Hi') %}\
            {{ m.content.split('H')[-1].rstrip('\\n') }}{% endfor %}\
            {% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}";
        assert_eq!(render(source, &conversation()).unwrap(), "i<think></think>");
    }

    #[test]
    fn template_exception_becomes_an_error() {
        let error = render("{{ raise_exception('no system role') }}", &conversation());
        assert!(error.unwrap_err().to_string().contains("no system role"));
    }
}
