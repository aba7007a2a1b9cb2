//! The tools that the models of `ask` can call. All of them are read-only.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use starling_core::{ChatReply, Finish, Message, ToolCall, ToolCalling, ToolSpec};
use starling_swarm::reading::{Name, OutlineFile, Read, Search, first_word, schema, words};
use starling_workspace::UnusualPaths;

/// The role of a model. Both roles can read code; only the reader can question owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// Answers the user's question.
    Reader,
    /// Answers a question about one symbol.
    Owner,
}

/// A call of a code-reading tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Look {
    Read(Read),
    Outline(OutlineFile),
    Search(Search),
    Definition(Name),
    References(Name),
}

/// A question to the owner of a symbol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Question {
    /// Symbol path of the owner: path/to/file.py::Class.method
    pub symbol: String,
    /// What you want to know, whole in itself: the owner sees nothing else.
    pub question: String,
    /// Why you ask this owner, in a few words.
    #[serde(default)]
    pub why: String,
}

/// A valid tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    Look(Look),
    Question(Question),
}

/// One tool call of a reply. `wanted` is `Err` with a message for the model if the call is invalid.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The ID of the native tool call, or `None` in the text protocol.
    id: Option<String>,
    pub tool: String,
    pub argument: String,
    pub wanted: Result<Wanted, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Read,
    Outline,
    Search,
    Definition,
    References,
    Question,
}

/// Returns the tools of a role, in a fixed order so that provider caches hit.
fn tools_of(seat: Seat) -> &'static [Tool] {
    const ALL: [Tool; 6] = [
        Tool::Read,
        Tool::Outline,
        Tool::Search,
        Tool::Definition,
        Tool::References,
        Tool::Question,
    ];
    match seat {
        Seat::Reader => &ALL,
        Seat::Owner => &ALL[..5],
    }
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Read => "read",
            Tool::Outline => "outline",
            Tool::Search => "search",
            Tool::Definition => "definition",
            Tool::References => "references",
            Tool::Question => "question",
        }
    }

    fn spec(self) -> ToolSpec {
        let (description, parameters) = match self {
            Tool::Read => (
                "Show the source of symbols or of ranges of lines, numbered.",
                schema::<Read>(),
            ),
            Tool::Outline => (
                "List the symbols of a file with their lines and signatures.",
                schema::<OutlineFile>(),
            ),
            Tool::Search => (
                "Find lines that hold all these words, in code, comments and documents.",
                schema::<Search>(),
            ),
            Tool::Definition => (
                "Where a name is defined, with the source.",
                schema::<Name>(),
            ),
            Tool::References => ("Where a name is used, by which symbols.", schema::<Name>()),
            Tool::Question => (
                "Put a question to the owner of a symbol, who reads it and what it leads to, and \
                 reports what it found with its places. Several at once are answered side by side.",
                schema::<Question>(),
            ),
        };
        ToolSpec {
            name: self.name().to_owned(),
            description: description.to_owned(),
            parameters,
        }
    }

    fn read(self, arguments: &str) -> Result<Wanted, serde_json::Error> {
        fn of<T: DeserializeOwned>(arguments: &str) -> Result<T, serde_json::Error> {
            serde_json::from_str(arguments)
        }
        Ok(match self {
            Tool::Read => Wanted::Look(Look::Read(of(arguments)?)),
            Tool::Outline => Wanted::Look(Look::Outline(of(arguments)?)),
            Tool::Search => Wanted::Look(Look::Search(of(arguments)?)),
            Tool::Definition => Wanted::Look(Look::Definition(of(arguments)?)),
            Tool::References => Wanted::Look(Look::References(of(arguments)?)),
            Tool::Question => Wanted::Question(of(arguments)?),
        })
    }

    /// Parses the argument of one text-protocol line.
    fn of_line(self, rest: &str, paths: &UnusualPaths) -> Wanted {
        let name = || Name {
            name: rest.to_owned(),
        };
        match self {
            Tool::Read => Wanted::Look(Look::Read(Read {
                symbols: words(rest, paths).map(str::to_owned).collect(),
            })),
            Tool::Outline => Wanted::Look(Look::Outline(OutlineFile {
                file: rest.to_owned(),
            })),
            Tool::Search => Wanted::Look(Look::Search(Search {
                query: rest.to_owned(),
                path: None,
            })),
            Tool::Definition => Wanted::Look(Look::Definition(name())),
            Tool::References => Wanted::Look(Look::References(name())),
            Tool::Question => {
                let (symbol, question) = first_word(rest, paths);
                Wanted::Question(Question {
                    symbol: symbol.to_owned(),
                    question: question.to_owned(),
                    why: String::new(),
                })
            }
        }
    }
}

/// Returns the tool specifications to send. The text protocol sends none.
pub fn specs(calling: ToolCalling, seat: Seat) -> Vec<ToolSpec> {
    match calling {
        ToolCalling::Native => tools_of(seat).iter().map(|tool| tool.spec()).collect(),
        ToolCalling::Text => Vec::new(),
    }
}

/// Returns the tool calls of a reply. Native calls count under either protocol; lines that begin
/// with `@` count only under the text protocol. `paths` resolves paths with unusual characters.
pub fn calls(
    calling: ToolCalling,
    seat: Seat,
    reply: &ChatReply,
    paths: &UnusualPaths,
) -> Vec<Call> {
    let native: Vec<Call> = reply
        .tool_calls
        .iter()
        .map(|call| native(call, seat))
        .collect();
    match (calling, native.is_empty(), reply.finish) {
        (ToolCalling::Text, true, Finish::Stop | Finish::ToolCalls | Finish::Filtered) => {
            plain(&reply.text, seat, paths)
        }
        (ToolCalling::Text, true, Finish::Length)
        | (ToolCalling::Text, false, _)
        | (ToolCalling::Native, ..) => native,
    }
}

fn native(call: &ToolCall, seat: Seat) -> Call {
    let known = tools_of(seat);
    let wanted = match known.iter().find(|tool| tool.name() == call.name) {
        Some(tool) => tool.read(&call.arguments).map_err(|error| {
            let name = &call.name;
            format!(
                "The arguments of `{name}` cannot be read: {error}. Call it again with valid JSON."
            )
        }),
        None => {
            let names: Vec<&str> = known.iter().map(|tool| tool.name()).collect();
            let (name, names) = (&call.name, names.join(", "));
            Err(format!(
                "There is no tool `{name}`; nothing can be changed here. The tools are: {names}."
            ))
        }
    };
    let argument = match &wanted {
        Ok(wanted) => argument(wanted),
        Err(_) => call.arguments.clone(),
    };
    Call {
        id: Some(call.id.clone()),
        tool: call.name.clone(),
        argument: argument.chars().take(120).collect(),
        wanted,
    }
}

fn plain(text: &str, seat: Seat, paths: &UnusualPaths) -> Vec<Call> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('@'));
    let call = |line: &str| {
        let (name, rest) = line.split_once(char::is_whitespace)?;
        let tool = tools_of(seat).iter().find(|tool| tool.name() == name)?;
        Some(Call {
            id: None,
            tool: name.to_owned(),
            argument: rest.trim().chars().take(120).collect(),
            wanted: Ok(tool.of_line(rest.trim(), paths)),
        })
    };
    lines.filter_map(call).collect()
}

/// Returns the call's argument as shown to the user.
fn argument(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Look(Look::Read(read)) => read.symbols.join(" "),
        Wanted::Look(Look::Outline(outline)) => outline.file.clone(),
        Wanted::Look(Look::Search(search)) => search.query.clone(),
        Wanted::Look(Look::Definition(name) | Look::References(name)) => name.name.clone(),
        Wanted::Question(question) => question.symbol.clone(),
    }
}

/// Converts a reply to a message of the conversation.
pub fn said(reply: &ChatReply) -> Message {
    Message::Assistant {
        text: reply.text.clone(),
        tool_calls: reply.tool_calls.clone(),
    }
}

/// Converts results to messages: one for each native call, and one user message for all others.
pub fn results(results: Vec<(Call, String)>) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut plain = Vec::new();
    for (call, text) in results {
        match call.id {
            Some(call_id) => messages.push(Message::Tool { call_id, text }),
            None => plain.push(format!("@{} {}\n{text}", call.tool, call.argument)),
        }
    }
    if !plain.is_empty() {
        let text = plain.join("\n\n");
        messages.push(Message::User { text });
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_models::testing::reply;

    fn asked(calling: ToolCalling, seat: Seat, text: &str) -> Vec<(String, String)> {
        let reply = reply("m", text, Finish::Stop);
        let calls = calls(calling, seat, &reply, &UnusualPaths::default());
        calls
            .into_iter()
            .map(|call| (call.tool, call.argument))
            .collect()
    }

    #[test]
    fn lines_are_calls_only_where_there_are_no_tools() {
        let text = "@search till\nI think @search x\n@fly away\n@read\n @references pay ";
        let wanted = [("search", "till"), ("references", "pay")];
        let wanted = wanted.map(|(tool, argument)| (tool.to_owned(), argument.to_owned()));
        assert_eq!(asked(ToolCalling::Text, Seat::Reader, text), wanted);
        assert_eq!(asked(ToolCalling::Native, Seat::Reader, text), []);
    }

    #[test]
    fn an_owner_asks_nobody() {
        let line = "@question a.py::f what is it?";
        assert_eq!(asked(ToolCalling::Text, Seat::Owner, line), []);
        let reply = reply("m", line, Finish::Stop);
        let calls = calls(
            ToolCalling::Text,
            Seat::Reader,
            &reply,
            &UnusualPaths::default(),
        );
        let Ok(Wanted::Question(question)) = &calls[0].wanted else {
            panic!("{calls:?}");
        };
        assert_eq!(question.symbol, "a.py::f");
        assert_eq!(question.question, "what is it?");
    }

    #[test]
    fn a_path_with_a_space_is_one_word() {
        let file = starling_syntax::FilePath::new("my kit/x.py");
        let paths = UnusualPaths::of(&[file], std::path::Path::new("/w"));
        let text = "@question my kit/x.py::f what is it?\n@read my kit/x.py:1-3 a.py::g";
        let reply = reply("m", text, Finish::Stop);
        let calls = calls(ToolCalling::Text, Seat::Reader, &reply, &paths);
        let Ok(Wanted::Question(question)) = &calls[0].wanted else {
            panic!("{calls:?}");
        };
        assert_eq!(question.symbol, "my kit/x.py::f");
        assert_eq!(question.question, "what is it?");
        let Ok(Wanted::Look(Look::Read(read))) = &calls[1].wanted else {
            panic!("{calls:?}");
        };
        assert_eq!(read.symbols, ["my kit/x.py:1-3", "a.py::g"]);
    }

    #[test]
    fn a_cut_reply_asks_for_nothing_by_lines() {
        let cut = reply("m", "@search ti", Finish::Length);
        let paths = UnusualPaths::default();
        assert_eq!(calls(ToolCalling::Text, Seat::Reader, &cut, &paths), []);
    }

    #[test]
    fn broken_calls_are_told_to_the_model() {
        let mut broken = reply("m", "", Finish::ToolCalls);
        for (name, arguments) in [("search", "{\"query\": "), ("propose", "{}"), ("read", "")] {
            broken.tool_calls.push(ToolCall {
                id: name.to_owned(),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            });
        }
        let paths = UnusualPaths::default();
        let calls = calls(ToolCalling::Native, Seat::Reader, &broken, &paths);
        let errors: Vec<String> = calls
            .into_iter()
            .filter_map(|call| call.wanted.err())
            .collect();
        assert_eq!(errors.len(), 3);
        assert!(errors[0].contains("valid JSON") && errors[2].contains("valid JSON"));
        assert!(errors[1].contains("There is no tool `propose`; nothing can be changed here."));
    }
}
