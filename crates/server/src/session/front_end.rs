//! The interface between a session and its front end: an editor or a terminal.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::oneshot;

use super::messages::{
    DownloadParams, EventParams, IntentParams, ProposalParams, RemedyParams, UndoneParams,
};
use starling_core::{Editor, LanguageService};
use starling_swarm::{Cursor, RunId};
use starling_syntax::{FilePath, SymbolPath};

/// A file as the user has it: the open buffer, or the file on disk.
#[derive(Debug, Clone)]
pub struct CurrentFile {
    /// The path by which the editor knows the file. It may be a link to the file.
    pub path: PathBuf,
    /// The version of the open document; `None` if the file is not open.
    pub version: Option<i32>,
    /// `None` if there is no such file.
    pub text: Option<Arc<str>>,
}

/// The texts of open buffers with their paths.
pub type OpenBuffers = Vec<(PathBuf, Arc<str>)>;

/// The user's side of a session. The language server implements it for an LSP client.
#[async_trait]
pub trait FrontEnd: Send + Sync {
    /// Returns the root directory of the open project, if one is open.
    fn root(&self) -> Option<PathBuf>;

    /// Returns the editor through which runs change files.
    fn editor(&self) -> Arc<dyn Editor>;

    /// Requests the texts of all open buffers, as they are when this method is called.
    fn buffers(&self) -> oneshot::Receiver<OpenBuffers>;

    /// Returns whether the editor can apply edits at all.
    fn applies_edits(&self) -> bool;

    /// Returns a language service that uses the front end's service first, if there is one, and
    /// then `own` (Starling's language servers).
    fn language_service(&self, own: Arc<dyn LanguageService>) -> Arc<dyn LanguageService>;

    /// Returns a file as the user has it; `None` if the path policy forbids reading it.
    async fn current_file(&self, file: &FilePath) -> Option<CurrentFile>;

    /// Returns the text of an open buffer; `None` if the file is not open.
    async fn open_text(&self, file: &FilePath) -> Option<Arc<str>>;

    /// Shows the progress of a run until its log is closed.
    async fn show_progress(&self, run: &RunId, title: String, events: Cursor);

    /// Reports an event of a run.
    async fn event(&self, event: EventParams);

    /// Reports that an agent waits for an answer to its intent.
    async fn intent_asked(&self, intent: IntentParams);

    /// Reports that a proposal waits for review at a symbol.
    async fn review_asked(&self, proposal: ProposalParams, symbol: SymbolPath);

    /// Reports the progress of a download that a run waits for.
    async fn download(&self, progress: DownloadParams);

    /// Reports the result of an undo. `summary` is its one-line form.
    async fn undone(&self, report: UndoneParams, summary: String);

    /// Reports that a run ended because its model was not available.
    async fn remedy(&self, remedy: RemedyParams);

    /// Reports how a run ended, in one line.
    async fn run_ended(&self, headline: String);

    /// Shows a message.
    async fn inform(&self, message: String);

    /// Returns whether a message may have buttons without a command of the user. In some editors such a
    /// message takes the keyboard focus.
    fn shows_buttons(&self) -> bool;

    /// Shows a message with buttons, and returns the one that the user chose.
    async fn choose(
        &self,
        message: String,
        buttons: &'static [&'static str],
    ) -> Option<&'static str>;

    /// Shows a warning.
    async fn warn(&self, message: String);

    /// Warns about project settings that are ignored.
    async fn warn_ignored_settings(&self, ignored: Vec<String>);
}
