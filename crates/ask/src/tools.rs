//! The tools that the models of `ask` can call. All of them are read-only.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use starling_dialogue::{Execute, LineArguments, ShortDescription, Tool, ToolCost, Toolbox};
use starling_swarm::reading::{Name, OutlineFile, Read, Search};

/// The role of a model. Both roles can read code; only the reader can question owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskRole {
    /// Answers the user's question.
    Reader,
    /// Answers a question about one symbol.
    Owner,
}

/// A call of a code-reading tool.
#[derive(Debug, Clone, PartialEq)]
pub enum CodeLookup {
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

/// A valid tool call: reading code, or a question to the owner of a symbol.
#[derive(Debug, Clone, PartialEq)]
pub enum AskAction {
    Look(CodeLookup),
    Question(Question),
}

/// One tool call of a reply.
pub type Call = starling_dialogue::Call<AskAction>;
/// The tools of a role.
pub type AskTools<'a> = Toolbox<'a, AskRole, AskAction>;

/// Executes the calls of one kind of tools.
type Executor<'a> = Arc<dyn Execute<AskAction> + 'a>;

/// The executors of the tools. Without them, calls can be described and parsed, but not executed.
#[derive(Default)]
pub struct Executors<'a> {
    pub look: Option<Executor<'a>>,
    pub question: Option<Executor<'a>>,
}

impl ShortDescription for AskAction {
    fn in_short(&self) -> String {
        match self {
            AskAction::Look(CodeLookup::Read(read)) => read.symbols.join(" "),
            AskAction::Look(CodeLookup::Outline(outline)) => outline.file.clone(),
            AskAction::Look(CodeLookup::Search(search)) => search.query.clone(),
            AskAction::Look(CodeLookup::Definition(name) | CodeLookup::References(name)) => {
                name.name.clone()
            }
            AskAction::Question(question) => question.symbol.clone(),
        }
    }
}

/// Returns all tools, in a fixed order so that provider caches hit.
fn all<'a>(by: &Executors<'a>) -> Vec<Tool<'a, AskRole, AskAction>> {
    let mut tools = reading(by);
    tools.push(questioning(by));
    tools
}

/// The tools that read code.
fn reading<'a>(by: &Executors<'a>) -> Vec<Tool<'a, AskRole, AskAction>> {
    use LineArguments::{Rest, Words};
    use ToolCost::Lookup;
    const BOTH: &[AskRole] = &[AskRole::Reader, AskRole::Owner];
    let look = || by.look.clone();
    vec![
        Tool::new(
            "read",
            "Show the source of symbols or of ranges of lines, numbered.",
            BOTH,
            Lookup,
            |read: Read| AskAction::Look(CodeLookup::Read(read)),
        )
        .line("read", Words("symbols"))
        .by(look()),
        Tool::new(
            "outline",
            "List the symbols of a file with their lines and signatures.",
            BOTH,
            Lookup,
            |file: OutlineFile| AskAction::Look(CodeLookup::Outline(file)),
        )
        .line("outline", Rest("file"))
        .by(look()),
        Tool::new(
            "search",
            "Find lines that hold all these words, in code, comments and documents.",
            BOTH,
            Lookup,
            |search: Search| AskAction::Look(CodeLookup::Search(search)),
        )
        .line("search", Rest("query"))
        .by(look()),
        Tool::new(
            "definition",
            "Where a name is defined, with the source.",
            BOTH,
            Lookup,
            |name: Name| AskAction::Look(CodeLookup::Definition(name)),
        )
        .line("definition", Rest("name"))
        .by(look()),
        Tool::new(
            "references",
            "Where a name is used, by which symbols.",
            BOTH,
            Lookup,
            |name: Name| AskAction::Look(CodeLookup::References(name)),
        )
        .line("references", Rest("name"))
        .by(look()),
    ]
}

fn questioning<'a>(by: &Executors<'a>) -> Tool<'a, AskRole, AskAction> {
    Tool::new(
        "question",
        "Put a question to the owner of a symbol, who reads it and what it leads to, and \
             reports what it found with its places. Several at once are answered side by side.",
        &[AskRole::Reader],
        ToolCost::Model,
        AskAction::Question,
    )
    .line(
        "question",
        LineArguments::FirstAndRest("symbol", "question"),
    )
    .by(by.question.clone())
}

/// Returns the tools of a role.
pub fn toolbox<'a>(role: AskRole, by: Executors<'a>) -> AskTools<'a> {
    Toolbox::of(role, all(&by)).absent("; nothing can be changed here")
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{ChatReply, Finish, ToolCall, ToolCalling};
    use starling_models::testing::reply;
    use starling_workspace::UnusualPaths;

    fn calls(
        calling: ToolCalling,
        role: AskRole,
        reply: &ChatReply,
        paths: &UnusualPaths,
    ) -> Vec<Call> {
        let tools = toolbox(role, Executors::default());
        tools.calls(calling, reply, |text| tools.lines(text, paths))
    }

    fn asked(calling: ToolCalling, role: AskRole, text: &str) -> Vec<(String, String)> {
        let reply = reply("m", text, Finish::Stop);
        let calls = calls(calling, role, &reply, &UnusualPaths::default());
        calls
            .into_iter()
            .map(|call| (call.tool, call.label.1))
            .collect()
    }

    #[test]
    fn reply_lines_are_parsed_as_tool_calls_only_in_the_text_protocol() {
        let text = "@search till\nI think @search x\n@fly away\n@read\n @references pay ";
        let wanted = [("search", "till"), ("references", "pay")];
        let wanted = wanted.map(|(tool, argument)| (tool.to_owned(), argument.to_owned()));
        assert_eq!(asked(ToolCalling::Text, AskRole::Reader, text), wanted);
        assert_eq!(asked(ToolCalling::Native, AskRole::Reader, text), []);
    }

    #[test]
    fn only_the_reader_can_question_owners() {
        let line = "@question a.py::f what is it?";
        assert_eq!(asked(ToolCalling::Text, AskRole::Owner, line), []);
        let reply = reply("m", line, Finish::Stop);
        let calls = calls(
            ToolCalling::Text,
            AskRole::Reader,
            &reply,
            &UnusualPaths::default(),
        );
        let Ok(AskAction::Question(question)) = &calls[0].action else {
            panic!("{calls:?}");
        };
        assert_eq!(question.symbol, "a.py::f");
        assert_eq!(question.question, "what is it?");
    }

    #[test]
    fn path_with_a_space_is_read_as_one_argument() {
        let file = starling_syntax::FilePath::new("my kit/x.py");
        let paths = UnusualPaths::of(&[file], std::path::Path::new("/w"));
        let text = "@question my kit/x.py::f what is it?\n@read my kit/x.py:1-3 a.py::g";
        let reply = reply("m", text, Finish::Stop);
        let calls = calls(ToolCalling::Text, AskRole::Reader, &reply, &paths);
        let Ok(AskAction::Question(question)) = &calls[0].action else {
            panic!("{calls:?}");
        };
        assert_eq!(question.symbol, "my kit/x.py::f");
        assert_eq!(question.question, "what is it?");
        let Ok(AskAction::Look(CodeLookup::Read(read))) = &calls[1].action else {
            panic!("{calls:?}");
        };
        assert_eq!(read.symbols, ["my kit/x.py:1-3", "a.py::g"]);
    }

    #[test]
    fn truncated_reply_contains_no_call_in_the_text_protocol() {
        let cut = reply("m", "@search ti", Finish::Length);
        let paths = UnusualPaths::default();
        assert_eq!(calls(ToolCalling::Text, AskRole::Reader, &cut, &paths), []);
    }

    #[test]
    fn invalid_calls_are_reported_to_the_model() {
        let mut broken = reply("m", "", Finish::ToolCalls);
        for (name, arguments) in [("search", "{\"query\": "), ("propose", "{}"), ("read", "")] {
            broken.tool_calls.push(ToolCall {
                id: name.to_owned(),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            });
        }
        let paths = UnusualPaths::default();
        let calls = calls(ToolCalling::Native, AskRole::Reader, &broken, &paths);
        let errors: Vec<String> = calls
            .into_iter()
            .filter_map(|call| call.action.err())
            .collect();
        assert_eq!(errors.len(), 3);
        assert!(errors[0].contains("valid JSON") && errors[2].contains("valid JSON"));
        assert!(errors[1].contains("There is no tool `propose`; nothing can be changed here."));
    }
}
