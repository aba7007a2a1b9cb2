//! The chat template of a model file, which converts messages to the text format of the model's
//! training.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, context};

use starling_core::Message;

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

    /// Renders the prompt up to the start of the assistant's answer. `contents` replaces the text
    /// of each message.
    ///
    /// # Errors
    /// The template rejects these messages.
    pub fn render(&self, messages: &[Message], contents: &[String]) -> Result<String, Error> {
        let turns: Vec<Value> = messages
            .iter()
            .zip(contents)
            .map(|(message, content)| context! { role => role(message), content => content })
            .collect();
        self.environment.get_template("chat")?.render(context! {
            messages => turns,
            add_generation_prompt => true,
            bos_token => self.begin.as_str(),
            eos_token => self.end.as_str(),
        })
    }
}

/// Returns the role of a message. Tool results have the user's role, because tools are called as
/// text here.
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
        let contents: Vec<String> = messages.iter().map(|m| m.text().to_owned()).collect();
        template.render(messages, &contents)
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
    fn template_exception_becomes_an_error() {
        let error = render("{{ raise_exception('no system role') }}", &conversation());
        assert!(error.unwrap_err().to_string().contains("no system role"));
    }
}
