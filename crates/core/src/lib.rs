//! The interfaces of Starling (its ports): traits for the external services of a run, such as
//! editors, models, language servers and test runners. Other crates implement them.

mod approver;
mod call_event;
mod cost;
mod editor;
mod execution;
mod language;
mod model;
pub mod prompts;
mod run;
mod tests;
mod tokens;
mod try_code;

pub use approver::{Approver, EditedPart, IntentView, ProposalView, ReviewAnswer, Verdict};
pub use call_event::{CALL_PATH, CallEvent};
pub use cost::{Cost, Price, WorstCase};
pub use editor::{
    ApplyError, CurrentText, DocVersion, Editor, EditorError, Effect, FileEdit, Withdrawal,
};
pub use execution::{CodeLine, ExecutedFrame, Executions, FailingExecution};
pub use language::{
    Diagnostics, Effort, LanguageService, LspAnswer, NameLocation, Problem, ProblemKind, Relation,
    Severity, TextRequest,
};
pub use model::{
    AnswerFormat, ChatModel, ChatReply, ChatRequest, ChatWatch, Dollars, Exchange, FILLING, Finish,
    Message, ModelError, ModelNotice, ModelProfile, NoWatch, Role, ToolCall, ToolCalling, ToolSpec,
    Usage,
};
pub use run::{Approval, AskIntent, Driver, Limits};
pub use tests::{
    CommandOrigin, CompileRequest, CompiledFile, ResultSource, TestCase, TestOutcome, TestReport,
    TestRequest, TestRunner, TestStatus,
};
pub use tokens::Tokens;
pub use try_code::{TryCode, TryReport, TryRequest};
