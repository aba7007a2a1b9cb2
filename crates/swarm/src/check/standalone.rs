//! The checks as a separate service: evidence for a change that no agent made, without a model.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::check::checks;
use crate::event::actor::ActorId;
use crate::event::events::EventLog;
use crate::evidence::proposal::Evidence;
use crate::state::draft::Draft;
use crate::state::epoch::Epoch;
use crate::state::run_context::RunContext;
use crate::state::services::{RoleModels, RunServices};
use crate::state::test_scope::TestScope;
use crate::task::request::Task;
use starling_core::{
    ApplyError, Approval, Approver, AskIntent, ChatModel, ChatReply, ChatRequest, ChatWatch,
    Current, Driver, Editor, EditorError, FileEdit, IntentView, LanguageService, Limits,
    ModelError, ModelProfile, Price, ProposalView, Reviewed, TestRunner, Tokens, ToolCalling,
    Verdict,
};
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath, SymbolTree};
use starling_text::ChangeSet;

/// Checks changes of one workspace as a run checks proposals. Knowledge about the workspace is kept
/// between checks.
pub struct Gate {
    run: Arc<RunContext>,
}

impl Gate {
    /// Creates the checks. If `tests` can select tests, changes are checked by their nearest tests.
    /// Nothing runs before the first check.
    pub fn new(
        index: Arc<Index>,
        tests: Arc<dyn TestRunner>,
        language: Arc<dyn LanguageService>,
        test_deadline: Duration,
    ) -> Gate {
        let nobody = Arc::new(Nobody::new());
        let services = RunServices {
            models: RoleModels {
                scout: nobody.clone(),
                agent: nobody.clone(),
                editors: Vec::new(),
                proxy: nobody.clone(),
            },
            editor: nobody.clone(),
            approver: nobody,
            tests,
            language,
            index,
        };
        let limits = Limits {
            seconds: u64::from(u32::MAX),
            ..Limits::default()
        };
        let task = Task {
            text: String::new(),
            driver: Driver::Single,
            approval: Approval::Auto,
            ask_intent: AskIntent::Never,
            limits,
            test_deadline,
            begin: Vec::new(),
            require_tests: false,
            patch: None,
        };
        let selects = services.tests.selects();
        let run = RunContext::new(task, services, EventLog::new(), no_agent);
        if selects {
            run.tests().selection.scope = TestScope::NEAREST;
        }
        Gate { run }
    }

    /// Returns the evidence for changing a file to `text`.
    pub async fn check(&self, file: &FilePath, text: Arc<str>) -> Evidence {
        let world = self.run.world().snapshot.clone();
        let base: Arc<str> = world.read(file).unwrap_or_else(|_| "".into());
        let tree = |text: &Arc<str>| SymbolTree::parse(file.clone(), Arc::clone(text));
        let (before, after) = (tree(&base), tree(&text));
        let symbols = touched(&before, &after);
        let (contract, breaking) = checks::contract_changes(&before, &after, &symbols);
        let draft = Draft {
            file: file.clone(),
            base,
            text,
            symbols,
            losses: Vec::new(),
            contract,
            breaking,
            epoch: Epoch::default(),
            imports: crate::evidence::check_results::ImportMends::default(),
            needs_person: Vec::new(),
            edited: false,
        };
        checks::check(&self.run, &draft, Vec::new()).await.0
    }
}

/// No agent is woken by a check.
fn no_agent(_: Arc<RunContext>, _: ActorId) -> BoxFuture<'static, ()> {
    std::future::ready(()).boxed()
}

/// Returns the innermost symbols in which two texts of a file differ, including added and removed
/// symbols.
fn touched(before: &SymbolTree, after: &SymbolTree) -> Vec<SymbolPath> {
    let changes = ChangeSet::between(before.text(), after.text());
    let mut touched: Vec<SymbolPath> = Vec::new();
    for edit in changes.edits() {
        let line = |at: usize| 1 + before.text()[..at].matches('\n').count() as u32;
        for line in line(edit.range.start)..=line(edit.range.end.max(edit.range.start + 1) - 1) {
            touched.push(before.at_line(line).path.clone());
        }
    }
    let is_new = |path: &&SymbolPath| before.find(&path.name).is_none();
    let new = after.symbols().iter().map(|symbol| &symbol.path);
    touched.extend(new.filter(is_new).cloned());
    touched.sort();
    touched.dedup();
    touched
}

/// Placeholder for the models, the editor and the approver of a run; none of them is called.
struct Nobody {
    profile: ModelProfile,
}

impl Nobody {
    fn new() -> Self {
        Nobody {
            profile: ModelProfile {
                name: "nobody".to_owned(),
                context_window: Tokens(0),
                max_output: Tokens(0),
                tool_calling: ToolCalling::Text,
                replayed: false,
                price: Some(Price::FREE),
            },
        }
    }

    fn reason() -> String {
        "the gate by itself asks nobody".to_owned()
    }
}

#[async_trait]
impl ChatModel for Nobody {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(&self, _: &ChatRequest, _: &dyn ChatWatch) -> Result<ChatReply, ModelError> {
        Err(ModelError::Unavailable {
            model: self.profile.name.clone(),
            message: Nobody::reason(),
        })
    }
}

#[async_trait]
impl Editor for Nobody {
    async fn current(&self, file: &FilePath) -> Result<Current, EditorError> {
        Err(EditorError::Missing { file: file.clone() })
    }

    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        Err(EditorError::Gone)
    }

    async fn apply(&self, edit: FileEdit) -> Result<Current, ApplyError> {
        Err(ApplyError::Stale { file: edit.file })
    }
}

#[async_trait]
impl Approver for Nobody {
    async fn intent(&self, _: IntentView) -> Verdict {
        Verdict::Reject {
            reason: Nobody::reason(),
        }
    }

    async fn proposal(&self, _: ProposalView) -> Reviewed {
        let reason = Nobody::reason();
        Verdict::Reject { reason }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_that_change_come_and_go_are_touched() {
        let tree = |text: &str| SymbolTree::parse(FilePath::new("m.py"), text.into());
        let before = tree(
            "X = 1\ndef f():\n    a = 1\n    return a\nclass A:\n    def g(self):\n        pass\n    def h(self):\n        pass\n",
        );
        let after = tree(
            "X = 1\ndef f():\n    a = 2\n    return a\nclass A:\n    def g(self):\n        pass\n    def i(self):\n        pass\n",
        );
        let names: Vec<String> = touched(&before, &after)
            .into_iter()
            .map(|path| path.name)
            .collect();
        assert_eq!(names, ["A.h", "A.i", "f"]);
        assert_eq!(touched(&before, &before), []);
    }
}
