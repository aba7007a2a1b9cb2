//! Reassembles conversations from the recorded model calls.

use starling_core::{Exchange, Message, Role};

/// The messages between one agent and its model, up to the model's last message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) name: String,
    pub(super) role: Role,
    /// Names of the offered tools.
    pub(super) tools: Vec<String>,
    pub(super) messages: Vec<Message>,
}

/// Returns all conversations, in the order in which they started.
pub(super) fn of(exchanges: &[Exchange]) -> Vec<Conversation> {
    let mut open: Vec<OpenConversation> = Vec::new();
    let mut done = Vec::new();
    for exchange in exchanges {
        let known = open.iter().position(|one| one.is_of(exchange));
        let at = known.unwrap_or_else(|| {
            open.push(OpenConversation::new(exchange, done.len()));
            // Reserves the conversation's position, because others can start before it ends.
            done.push(Vec::new());
            open.len() - 1
        });
        let one = &mut open[at];
        done[one.place].extend(one.take(exchange));
    }
    for mut one in open {
        done[one.place].extend(one.end());
    }
    done.into_iter().flatten().collect()
}

/// A conversation to which later recorded model calls may still belong.
struct OpenConversation {
    /// Its position among all conversations, in the order in which they started.
    place: usize,
    talk: Conversation,
    /// The last reply, which is not part of a prompt yet.
    reply: Option<Message>,
}

impl OpenConversation {
    fn new(exchange: &Exchange, place: usize) -> Self {
        OpenConversation {
            place,
            talk: Conversation {
                name: exchange.conversation.clone(),
                role: exchange.role,
                tools: Vec::new(),
                messages: Vec::new(),
            },
            reply: None,
        }
    }

    fn is_of(&self, exchange: &Exchange) -> bool {
        self.talk.name == exchange.conversation && self.talk.role == exchange.role
    }

    /// Adds an exchange. If the exchange starts a new conversation, returns the previous one.
    fn take(&mut self, exchange: &Exchange) -> Option<Conversation> {
        let first = exchange.prompt.first();
        let asked = matches!(self.talk.messages.last(), Some(Message::User { .. }));
        let ended = match (first, &self.reply) {
            (Some(Message::System { .. }), _) => self.begin_again(0),
            // The prompt already contains the reply in the form that the agent keeps.
            (Some(Message::Assistant { .. } | Message::Tool { .. }), _) => {
                self.reply = None;
                None
            }
            (Some(Message::User { .. }), Some(_)) => self.begin_again(1),
            (Some(Message::User { .. }), None) if asked => self.begin_again(1),
            (Some(Message::User { .. }), None) => None,
            (None, Some(_)) => self.begin_again(2),
            (None, None) => None,
        };
        self.talk.messages.extend(exchange.prompt.iter().cloned());
        self.talk.tools.clone_from(&exchange.tools);
        if let Ok(reply) = &exchange.reply {
            self.reply = Some(Message::Assistant {
                text: reply.text.clone(),
                tool_calls: reply.tool_calls.clone(),
            });
        }
        ended
    }

    fn begin_again(&mut self, kept: usize) -> Option<Conversation> {
        let ended = self.end();
        self.talk.messages.truncate(kept);
        ended
    }

    /// Returns the conversation up to the model's last message, or `None` if the model sent
    /// nothing.
    fn end(&mut self) -> Option<Conversation> {
        let mut talk = self.talk.clone();
        talk.messages.extend(self.reply.take());
        let says = |message: &Message| matches!(message, Message::Assistant { .. });
        let last = talk.messages.iter().rposition(says)?;
        talk.messages.truncate(last + 1);
        Some(talk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{ChatReply, Dollars, Finish, ModelError, Usage};

    fn exchange(prompt: Vec<Message>, reply: Option<&str>) -> Exchange {
        Exchange {
            conversation: "agent a.py::f".into(),
            role: Role::Agent,
            ordinal: 0,
            prompt,
            tools: vec!["read".into()],
            capability: None,
            reply: match reply {
                Some(text) => Ok(ChatReply {
                    model: "m".into(),
                    text: text.into(),
                    tool_calls: Vec::new(),
                    finish: Finish::Stop,
                    usage: Usage::default(),
                    cost: Dollars(0.0),
                    calls: 1,
                }),
                None => Err(ModelError::Malformed {
                    model: "m".into(),
                    message: "cut".into(),
                }),
            },
            millis: 1,
        }
    }

    fn system() -> Message {
        Message::System { text: "S".into() }
    }

    fn user(text: &str) -> Message {
        Message::User { text: text.into() }
    }

    fn said(text: &str) -> Message {
        Message::Assistant {
            text: text.into(),
            tool_calls: Vec::new(),
        }
    }

    #[track_caller]
    fn check(exchanges: &[Exchange], expected: &[&[&str]]) {
        let told: Vec<Vec<String>> = of(exchanges)
            .iter()
            .map(|talk| talk.messages.iter().map(|m| m.text().to_owned()).collect())
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn model_calls_that_extend_each_other_form_one_conversation() {
        let mut other = exchange(vec![system(), user("Q")], Some("A"));
        other.conversation = "scout".into();
        let first = exchange(vec![system(), user("1")], Some("2"));
        let second = exchange(vec![said("2"), user("3")], Some("4"));
        check(
            &[first, other, second],
            &[&["S", "1", "2", "3", "4"], &["S", "Q", "A"]],
        );
    }

    #[test]
    fn model_call_that_does_not_extend_the_last_starts_a_new_conversation() {
        let first = exchange(vec![system(), user("1")], Some("2"));
        // `forgot` keeps only the system message; `again` drops only the last reply.
        let forgot = exchange(vec![user("3")], Some("4"));
        let again = exchange(Vec::new(), Some("5"));
        check(
            &[first, forgot, again],
            &[&["S", "1", "2"], &["S", "3", "4"], &["S", "3", "5"]],
        );
    }

    #[test]
    fn model_call_without_a_reply_is_left_out_of_the_conversation() {
        let failed = exchange(vec![system(), user("1")], None);
        check(std::slice::from_ref(&failed), &[]);
        let again = exchange(Vec::new(), Some("2"));
        check(&[failed.clone(), again], &[&["S", "1", "2"]]);
        let anew = exchange(vec![user("3")], Some("4"));
        check(&[failed, anew], &[&["S", "3", "4"]]);
    }
}
