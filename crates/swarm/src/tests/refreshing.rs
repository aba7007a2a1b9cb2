//! Reading the user's texts while they change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

use super::bed::{Bed, Scripted};
use crate::state::checker::Checker;
use crate::state::refresh::text;
use starling_core::{ApplyError, CurrentText, Editor, EditorError, FileEdit};
use starling_syntax::FilePath;

/// An editor that lets another agent change the workspace during each read.
#[derive(Default)]
struct BusyEditor {
    checker: OnceLock<Arc<Checker>>,
    reads: AtomicUsize,
}

#[async_trait]
impl Editor for BusyEditor {
    async fn current(&self, _: &FilePath) -> Result<CurrentText, EditorError> {
        let read = self.reads.fetch_add(1, Ordering::SeqCst);
        let checker = self.checker.get().unwrap();
        let (other, typed) = (FilePath::new("other.py"), format!("x = {read}\n").into());
        let epoch = checker.world().epoch;
        assert!(checker.saw(epoch, [(&other, Some(&typed))]));
        Ok(CurrentText {
            text: format!("a = {read}\n").into(),
            version: None,
        })
    }

    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        Ok(Vec::new())
    }

    async fn apply(&self, _: FileEdit) -> Result<CurrentText, ApplyError> {
        unreachable!("nothing is applied")
    }
}

#[tokio::test]
async fn text_is_returned_although_the_workspace_changes_at_every_read() {
    let editor = Arc::new(BusyEditor::default());
    let mut checker = Bed::new(&[("a.py", "a = 0\n")], Scripted::native()).checker();
    checker.services.editor = Some(editor.clone());
    let checker = Arc::new(checker);
    assert!(editor.checker.set(Arc::clone(&checker)).is_ok());
    let text = text(&checker, &FilePath::new("a.py")).await;
    assert_eq!(text.as_deref(), Ok("a = 7\n"));
}
