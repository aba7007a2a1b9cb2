//! Compiles the Python files of a change with the project's own interpreter.

use std::time::Duration;

use tokio::time::Instant;

use crate::budget::ExternalTime;
use crate::check::test_run::test_deadline;
use crate::evidence::check_results::DiagnosticEvidence;
use crate::state::checker::Checker;
use starling_core::{CompileRequest, CompiledFile};
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Returns the compile errors in `after` of files that could be compiled in `before`. The files are
/// not executed. A successful compilation is not shown as evidence.
pub(crate) async fn compiled(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let files: Vec<CompiledFile> = files
        .iter()
        .filter(|file| file.as_str().ends_with(".py") || file.as_str().ends_with(".pyw"))
        .filter_map(|file| {
            let (before, after) = (before.read(file).ok(), after.read(file).ok()?);
            let is_changed = before.as_ref() != Some(&after);
            is_changed.then(|| CompiledFile {
                file: file.clone(),
                before,
                after,
            })
        })
        .collect();
    if files.is_empty() {
        return DiagnosticEvidence::Absent;
    }
    let began = Instant::now();
    let found = {
        let _work = checker.budget.work();
        let request = CompileRequest {
            files,
            deadline: test_deadline(checker),
        };
        checker.services.tests.compile(request).await
    };
    let took: Duration = began.elapsed();
    checker.budget.was_outside(ExternalTime::Tests, took);
    match found {
        Ok(new) => match new.first() {
            None => DiagnosticEvidence::Absent,
            Some(first) => DiagnosticEvidence::Known {
                tool: first.source.clone(),
                before: 0,
                after: new.len(),
                new,
                millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                unknown: None,
            },
        },
        Err(reason) => DiagnosticEvidence::Unknown {
            reason: format!("not compiled: {reason}"),
        },
    }
}
