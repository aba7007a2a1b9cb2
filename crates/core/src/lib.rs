//! The only traits of Starling: what the swarm needs from the outside world, without naming any adapter.

mod approver;
mod cost;
mod editor;
mod language;
mod model;
pub mod prompts;
mod run;
mod tests;
mod tokens;

pub use approver::{Approver, EditedPart, IntentView, ProposalView, Reviewed, Verdict};
pub use cost::{Cost, Price, WorstCase};
pub use editor::{
    ApplyError, Current, DocVersion, Editor, EditorError, Effect, FileEdit, Withdrawal,
};
pub use language::{
    Answer, Diagnostics, Effort, LanguageService, Problem, ProblemKind, Relation, Severity, Spot,
    TextRequest,
};
pub use model::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Dollars, Exchange, FILLING, Finish, Message,
    ModelError, ModelNotice, ModelProfile, NoWatch, Role, ToolCall, ToolCalling, ToolSpec, Usage,
};
pub use run::{Approval, AskIntent, Driver, Limits};
pub use tests::{
    Chosen, CompileRequest, CompiledFile, ResultSource, TestCase, TestOutcome, TestReport,
    TestRequest, TestRunner, TestStatus,
};
pub use tokens::Tokens;
