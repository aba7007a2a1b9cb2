//! Converts the known change of an instance to the proposals of the oracle model.

use std::sync::Arc;

use serde_json::{Value, json};

use super::dataset::Instance;
use super::git::Repositories;
use super::gold::{Proposal, proposals};
use super::patch::changes_of;
use starling_models::oracle::KnownChange;
use starling_syntax::{FilePath, Place, Rewrite, SymbolTree};

/// Returns the proposals of an instance's known change. This function reads the part of the
/// instance that only the grader may see.
///
/// # Errors
/// Returns a message if the known change cannot be read or expressed.
pub async fn known_changes(
    instance: &Instance,
    repositories: &Repositories,
) -> Result<Vec<KnownChange>, String> {
    let repository = repositories
        .find(&instance.task.repo)
        .map_err(|error| error.to_string())?;
    let base = &instance.task.base_commit;
    let files = changes_of(&repository, base, &instance.answer.patch)
        .await
        .map_err(|error| error.to_string())?;
    let mut known = Vec::new();
    for change in files {
        let file = FilePath::new(change.path.as_str());
        let text = |bytes: Option<Vec<u8>>| {
            let bytes = bytes.ok_or_else(|| format!("{file}: the reference change creates or deletes this file, which the recorded replies cannot express"))?;
            String::from_utf8(bytes).map_err(|_| format!("{file}: the file is not UTF-8 text"))
        };
        let (before, after) = (text(change.before)?, text(change.after)?);
        let said = proposals(&file, &before, &after).map_err(|error| error.to_string())?;
        let there = SymbolTree::parse(file.clone(), Arc::from(before));
        let mut owner = file_owner(&file);
        for mut change in said.into_iter().map(known_change) {
            // A symbol that does not exist yet has no owner, so the previous owner proposes it.
            match there.find(change.symbol.rsplit("::").next().unwrap_or_default()) {
                Some(_) => owner.clone_from(&change.symbol),
                None => change.symbol.clone_from(&owner),
            }
            known.push(change);
        }
    }
    Ok(known)
}

fn file_owner(file: &FilePath) -> String {
    format!("{file}::")
}

fn known_change(proposal: Proposal) -> KnownChange {
    let Proposal { file, rewrite } = proposal;
    let path = |name: &str| format!("{file}::{name}");
    let (owner, propose): (String, Value) = match rewrite {
        Rewrite::Whole { symbol, source } => (symbol, json!({ "source": source })),
        Rewrite::Patch { symbol, hunks } => {
            let hunk = |(old, new)| json!({"old": old, "new": new});
            let hunks: Vec<Value> = hunks.into_iter().map(hunk).collect();
            (symbol, json!({ "hunks": hunks }))
        }
        Rewrite::Add {
            beside,
            place,
            source,
        } => {
            let inside = place == Place::Inside;
            let add = json!({"source": source, "beside": path(&beside), "inside": inside});
            (beside, json!({ "add": [add] }))
        }
        Rewrite::Delete { symbol } => {
            let deleted = path(&symbol);
            (symbol, json!({ "delete": [deleted] }))
        }
        Rewrite::Import { statements } => (String::new(), json!({ "imports": statements })),
    };
    KnownChange {
        symbol: path(&owner),
        propose,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oracle_reply_of_an_owner_contains_its_part_of_the_reference_change() {
        let of = |rewrite| {
            let file = FilePath::new("a.py");
            let known = known_change(Proposal { file, rewrite });
            (known.symbol, known.propose.to_string())
        };
        let whole = Rewrite::Whole {
            symbol: "f".into(),
            source: "S".into(),
        };
        assert_eq!(of(whole), ("a.py::f".into(), r#"{"source":"S"}"#.into()));
        let patch = Rewrite::Patch {
            symbol: String::new(),
            hunks: vec![("a".into(), "b".into())],
        };
        let hunks = r#"{"hunks":[{"old":"a","new":"b"}]}"#;
        assert_eq!(of(patch), ("a.py::".into(), hunks.into()));
        let add = Rewrite::Add {
            beside: "C".into(),
            place: Place::Inside,
            source: "S".into(),
        };
        let added = r#"{"add":[{"source":"S","beside":"a.py::C","inside":true}]}"#;
        assert_eq!(of(add), ("a.py::C".into(), added.into()));
        let gone = Rewrite::Delete { symbol: "f".into() };
        assert_eq!(
            of(gone),
            ("a.py::f".into(), r#"{"delete":["a.py::f"]}"#.into())
        );
        let import = Rewrite::Import {
            statements: vec!["import x".into()],
        };
        assert_eq!(
            of(import),
            ("a.py::".into(), r#"{"imports":["import x"]}"#.into())
        );
    }
}
