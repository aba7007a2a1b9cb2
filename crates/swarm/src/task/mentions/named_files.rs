//! Files that a task names beside a rename and that keep the old name.

use crate::lookup::Lookup;
use crate::task::stated::{ExplicitEdit, ExplicitEdits, Named};
use crate::task::whole_word::has_word;
use starling_syntax::{FilePath, Language};

use super::prose::is_document;

/// Describes the data files that a task names and that still contain a name which the task renames:
/// `` data/list.csv still contains `senior` ``. Mentions in documents are reported without this.
pub(crate) fn with_old_names(
    task: &str,
    statements: &ExplicitEdits,
    after: &Lookup,
) -> Vec<String> {
    let mut files = after.files_named_in(task);
    files.retain(|file| Language::of(file) == Language::Plain && !is_document(file));
    let old_names = statements.all.iter().filter_map(|stated| match stated {
        ExplicitEdit::Renamed {
            from: Named::File(_),
            ..
        }
        | ExplicitEdit::Deleted { .. } => None,
        ExplicitEdit::Renamed { from, .. } => Some(from.base_name()),
    });
    let left = old_names.flat_map(|name| {
        let holds = |file: &&FilePath| {
            let text = after.index().snapshot().read(file).unwrap_or_default();
            let is_old =
                |line: &str| has_word(line, name) && !statements.kept.hold_in_line(line, name);
            !statements.kept.all && text.lines().any(is_old)
        };
        let left: Vec<&FilePath> = files.iter().filter(holds).collect();
        let left = left.into_iter();
        left.map(move |file| format!("{file} still contains `{name}`"))
    });
    left.collect()
}
