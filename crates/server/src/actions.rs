//! `textDocument/codeAction`: the actions at a position. Each action is a command; no model is
//! called to compute it.

use ropey::Rope;
use serde_json::{Value, json};
use tower_lsp::lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, Command, Diagnostic,
    NumberOrString, Position as LspPosition, Range,
};

use super::documents::DocumentView;
use super::protocol::{ClientCommand, REJECT, RUN};
use super::review_actions::{ReviewAction, command};
use super::review_dialogs::REASONS;
use super::session::short;
use super::settings::ClientSettings;
use starling_syntax::{FilePath, SymbolPath};
use starling_text::{Position, offset_of};

/// The code action kind of Starling's own actions, such as accepting a proposal.
pub const KIND: CodeActionKind = CodeActionKind::new("starling");

/// Maximum number of lines of a selection that are searched for a TODO comment.
const MAX_SELECTION_LINES: u32 = 100;

pub fn actions(
    params: &CodeActionParams,
    file: &FilePath,
    (review_actions, again): (&[ReviewAction], Vec<Command>),
    document: &DocumentView,
    client: &ClientSettings,
) -> Vec<CodeActionOrCommand> {
    let context = ActionContext {
        file,
        document,
        client,
    };
    let symbol = context.symbol(params.range.start);
    let mut actions = Vec::new();
    for diagnostic in &params.context.diagnostics {
        actions.push(context.fix(diagnostic));
    }
    actions.extend(context.comment(params.range, &symbol));
    for action in review_actions
        .iter()
        .filter(|action| action.symbol.encloses(&symbol))
    {
        let commands = action.commands(client);
        let about = commands.first().map(|first| first.title.clone());
        let about = about.unwrap_or_default();
        // The first of several commands only has a title that describes the others, so it is
        // skipped.
        let named = usize::from(commands.len() > 1);
        let commands = commands.into_iter().skip(named);
        let commands = commands.flat_map(|one| with_reasons(one, client));
        actions.extend(commands.map(|one| {
            let title = match named {
                0 => one.title.clone(),
                _ => format!("{} ({about})", one.title),
            };
            code_action(title, KIND, one)
        }));
    }
    actions.extend(again.into_iter().map(|one| action_of(KIND, one)));
    actions.extend(context.on_symbol(&symbol, params));
    let wanted = params.context.only.as_deref();
    actions
        .into_iter()
        .filter(|action| wanted.is_none_or(|kinds| is_wanted(action, kinds)))
        .filter_map(|action| match client.action_literals {
            true => Some(CodeActionOrCommand::CodeAction(action)),
            // Older clients accept only commands. The title of the action is more specific than the
            // command's title.
            false => action.command.map(|command| {
                let title = action.title;
                CodeActionOrCommand::Command(Command { title, ..command })
            }),
        })
        .collect()
}

/// Splits the reject command into one command per reason if the client cannot ask the user for a
/// reason.
fn with_reasons(command: Command, client: &ClientSettings) -> Vec<Command> {
    let argument = command.arguments.as_ref().and_then(|all| all.first());
    let is_about_proposal = argument.is_some_and(|one| one.get("proposal").is_some());
    if command.command != REJECT || client.questions || !is_about_proposal {
        return vec![command];
    }
    let with = |reason: &&str| {
        let mut one = command.clone();
        one.title = format!("Reject: {reason}");
        if let Some(argument) = one.arguments.iter_mut().flatten().next() {
            argument["reason"] = json!(reason);
        }
        one
    };
    REASONS.iter().map(with).collect()
}

/// Returns whether the client requested the kind of an action. A requested kind includes its
/// sub-kinds: `refactor` includes `refactor.rewrite`.
fn is_wanted(action: &CodeAction, kinds: &[CodeActionKind]) -> bool {
    let own = action.kind.as_ref().map_or("", CodeActionKind::as_str);
    kinds.iter().any(|kind| {
        let rest = own.strip_prefix(kind.as_str());
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('.') || kind.as_str().is_empty()
        })
    })
}

/// The document for which code actions are requested, and the client that requests them.
struct ActionContext<'a> {
    file: &'a FilePath,
    document: &'a DocumentView,
    client: &'a ClientSettings,
}

impl ActionContext<'_> {
    fn symbol(&self, at: LspPosition) -> SymbolPath {
        let position = Position {
            line: at.line,
            column: at.character,
        };
        let offset = offset_of(&self.document.text, position, self.client.encoding);
        let name = self
            .document
            .markers
            .at(offset)
            .map(|marker| marker.name.clone());
        SymbolPath::new(self.file.clone(), name.unwrap_or_default())
    }

    fn on_symbol(&self, symbol: &SymbolPath, params: &CodeActionParams) -> Vec<CodeAction> {
        let about = json!({
            "symbol": symbol, "uri": self.document.uri, "range": params.range,
        });
        let mut actions = Vec::new();
        if self.client.brings(ClientCommand::Change) {
            let name = ClientCommand::Change.name();
            let change = command("Starling: change…", name, about.clone());
            actions.push(action_of(CodeActionKind::REFACTOR_REWRITE, change));
        }
        if self.client.brings(ClientCommand::Ask) {
            let ask = command("Starling: ask…", ClientCommand::Ask.name(), about);
            actions.push(action_of(KIND, ask));
        }
        if !symbol.is_module() {
            let task = format!(
                "Write tests for `{symbol}`: what it should do, and its border cases. Put them where \
                 the project keeps its tests of it. Do not change `{symbol}` itself."
            );
            let test = command("Starling: write a test", RUN, json!({"task": task}));
            actions.push(action_of(CodeActionKind::REFACTOR, test));
        }
        actions
    }

    fn fix(&self, diagnostic: &Diagnostic) -> CodeAction {
        let symbol = self.symbol(diagnostic.range.start);
        let line = diagnostic.range.start.line + 1;
        let source = diagnostic.source.as_deref().unwrap_or_default();
        let code = match &diagnostic.code {
            Some(NumberOrString::String(code)) => code.clone(),
            Some(NumberOrString::Number(code)) => code.to_string(),
            None => String::new(),
        };
        let from = format!("{source} {code}");
        let from = match from.trim() {
            "" => String::new(),
            from => format!(" (from {from})"),
        };
        let task = format!(
            "Fix this problem at {}:{line}, in `{symbol}`{from}:\n{}",
            self.file, diagnostic.message
        );
        let title = format!("Starling: fix: {}", short(&diagnostic.message));
        let run = command(title, RUN, beginning(&task, &symbol));
        let mut action = action_of(CodeActionKind::QUICKFIX, run);
        action.diagnostics = Some(vec![diagnostic.clone()]);
        action
    }

    /// Returns an action for the first TODO comment in the range.
    fn comment(&self, range: Range, symbol: &SymbolPath) -> Option<CodeAction> {
        let first = range.start.line;
        let last = range
            .end
            .line
            .min(first.saturating_add(MAX_SELECTION_LINES));
        (first..=last).find_map(|line| {
            let end = LspPosition::new(line, u32::MAX);
            let symbol = match line == first {
                true => symbol,
                false => &self.symbol(end),
            };
            self.comment_on(line, symbol)
        })
    }

    fn comment_on(&self, number: u32, symbol: &SymbolPath) -> Option<CodeAction> {
        let line = line_of(&self.document.text, number)?;
        let todo = todo_text(&line)?;
        let task = format!(
            "Do what this comment at {}:{}, in `{symbol}`, asks for, and remove the comment:\n{todo}",
            self.file,
            number + 1,
        );
        let title = format!("Starling: do: {}", short(todo));
        let run = command(title, RUN, beginning(&task, symbol));
        Some(action_of(CodeActionKind::REFACTOR_REWRITE, run))
    }
}

fn beginning(task: &str, symbol: &SymbolPath) -> Value {
    json!({"task": task, "begin": [symbol]})
}

fn line_of(text: &Rope, line: u32) -> Option<String> {
    text.get_line(line as usize).map(|line| line.to_string())
}

/// Returns the text after TODO or FIXME in the comment of a line.
fn todo_text(line: &str) -> Option<&str> {
    let comment = ["#", "//"]
        .iter()
        .filter_map(|marker| line.find(marker).map(|at| &line[at + marker.len()..]))
        .max_by_key(|comment| comment.len())?;
    let comment = comment.trim();
    let rest = ["TODO", "FIXME"]
        .iter()
        .find_map(|word| comment.strip_prefix(word))?;
    let rest = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_who, rest)) => rest,
        None => rest,
    };
    let todo = rest.trim_start_matches(':').trim();
    (!todo.is_empty()).then_some(todo)
}

fn action_of(kind: CodeActionKind, command: Command) -> CodeAction {
    code_action(command.title.clone(), kind, command)
}

fn code_action(title: String, kind: CodeActionKind, command: Command) -> CodeAction {
    CodeAction {
        title,
        kind: Some(kind),
        command: Some(command),
        ..CodeAction::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{BASE, client, document, doing, review_actions, waiting};
    use starling_swarm::RunId;

    fn asked(
        text: &str,
        context: Value,
        at: (u32, u32),
        review_actions: &[ReviewAction],
        brings: &[ClientCommand],
    ) -> Vec<CodeAction> {
        let position = json!({"line": at.0, "character": at.1});
        let params = json!({
            "textDocument": {"uri": "file:///w/a.py"},
            "range": {"start": position, "end": position}, "context": context,
        });
        let params: CodeActionParams = serde_json::from_value(params).unwrap();
        let file = FilePath::new("a.py");
        let found = actions(
            &params,
            &file,
            (review_actions, Vec::new()),
            &document(text),
            &client(brings),
        );
        let plain = |action| match action {
            CodeActionOrCommand::CodeAction(action) => action,
            CodeActionOrCommand::Command(command) => panic!("{command:?}"),
        };
        found.into_iter().map(plain).collect()
    }

    fn shown(actions: &[CodeAction]) -> String {
        let line = |action: &CodeAction| {
            let command = action.command.as_ref().unwrap();
            let kind = action.kind.as_ref().unwrap().as_str();
            let argument = &command.arguments.as_ref().unwrap()[0];
            format!(
                "{kind} | {} | {} {argument}\n",
                action.title, command.command
            )
        };
        actions.iter().map(line).collect()
    }

    #[test]
    fn code_actions_depend_on_the_client_and_the_position() {
        let none = json!({"diagnostics": []});
        let problem = json!({"diagnostics": [{
            "range": {"start": {"line": 6, "character": 8}, "end": {"line": 6, "character": 14}},
            "message": "Name `x` is not defined\nReally.", "source": "ty", "code": "unresolved",
        }]});
        let todo = BASE.replace("return 3", "return 3  # TODO(me): return four, not three");
        insta::assert_snapshot!(
            [
                (
                    "with a plugin, in a method",
                    asked(BASE, none.clone(), (6, 10), &[], &ClientCommand::ALL)
                ),
                (
                    "without one, in the module",
                    asked(BASE, none.clone(), (3, 0), &[], &[])
                ),
                ("on a problem", asked(BASE, problem, (0, 0), &[], &[])),
                ("on a comment", asked(&todo, none, (10, 0), &[], &[])),
            ]
            .map(|(what, actions)| format!("{what}\n{}", shown(&actions)))
            .join("\n")
        );
    }

    #[test]
    fn review_actions_are_offered_as_code_actions() {
        let mut view = waiting(&[(1, "a.py::C")]);
        doing(&mut view, "a.py::g");
        let review_actions = review_actions(&RunId("r".to_owned()), &view, &FilePath::new("a.py"));
        let titles = |at| -> Vec<String> {
            let actions = asked(BASE, json!({"diagnostics": []}), at, &review_actions, &[]);
            actions.into_iter().map(|action| action.title).collect()
        };
        assert_eq!(
            titles((6, 10)),
            [
                "Accept (Starling #1: reason 1)",
                "Reject: It is not needed (Starling #1: reason 1)",
                "Reject: The approach is wrong (Starling #1: reason 1)",
                "Reject: It changes too much (Starling #1: reason 1)",
                "Why (Starling #1: reason 1)",
                "Diff (Starling #1: reason 1)",
                "Starling: write a test",
            ],
            "of the class, in its method"
        );
        let at_work = titles((10, 0));
        assert_eq!(at_work[0], "Starling: m: loads — stop the run");
        assert_eq!(titles((0, 0)), ["Starling: write a test"]);
    }

    #[test]
    fn code_actions_are_filtered_by_the_requested_kinds() {
        let kinds = |only: &[&str]| -> Vec<String> {
            let context = json!({"diagnostics": [], "only": only});
            let actions = asked(BASE, context, (6, 10), &[], &ClientCommand::ALL);
            actions.into_iter().map(|action| action.title).collect()
        };
        assert_eq!(kinds(&["quickfix"]), [""; 0]);
        assert_eq!(
            kinds(&["refactor"]),
            ["Starling: change…", "Starling: write a test"]
        );
        assert_eq!(kinds(&["refactor.rewrite"]), ["Starling: change…"]);
        assert_eq!(kinds(&["star"]), [""; 0]);
        assert_eq!(kinds(&[""]).len(), 3);
    }

    #[test]
    fn task_is_read_from_a_todo_comment() {
        for (line, found) in [
            ("x = 1  # TODO: more", Some("more")),
            ("# FIXME(ann): ö\n", Some("ö")),
            ("// TODO later", Some("later")),
            ("# todo: small", None),
            ("# TODO", None),
            ("# what TODO", None),
            ("TODO: no comment", None),
            ("", None),
        ] {
            assert_eq!(todo_text(line), found, "{line}");
        }
    }
}
