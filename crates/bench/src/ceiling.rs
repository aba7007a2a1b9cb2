//! Measures the upper limit of the edit engine: known changes, expressed as proposals by the owners
//! of their symbols, must be reproduced byte for byte. No model is used.

use std::path::Path;

use serde::Serialize;

use super::dataset::Instance;
use super::git::Repositories;
use super::gold::proposals;
use super::patch::{FileChange, changes_of};
use starling_syntax::FilePath;

/// The number of instances whose known change can be expressed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ceiling {
    pub instances: usize,
    pub expressible: usize,
    pub failed: Vec<Failure>,
}

/// An instance whose reference change cannot be expressed as proposals, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub instance_id: String,
    pub why: String,
}

/// Tries every instance, and calls `seen` with each instance when it is done.
pub async fn ceiling(
    instances: &[Instance],
    repositories: &Repositories,
    mut seen: impl FnMut(&Instance),
) -> Ceiling {
    let mut found = Ceiling::default();
    for instance in instances {
        found.instances += 1;
        match expressed(instance, repositories).await {
            Ok(()) => found.expressible += 1,
            Err(why) => found.failed.push(Failure {
                instance_id: instance.task.id.clone(),
                why,
            }),
        }
        seen(instance);
    }
    found
}

async fn expressed(instance: &Instance, repositories: &Repositories) -> Result<(), String> {
    let found = repositories.find(&instance.task.repo);
    let repository: &Path = &found.map_err(|error| error.to_string())?;
    let changes = changes_of(
        repository,
        &instance.task.base_commit,
        &instance.answer.patch,
    )
    .await
    .map_err(|error| error.to_string())?;
    if changes.is_empty() {
        return Err("the patch of the reference change changes no file".into());
    }
    changes.iter().try_for_each(file)
}

fn file(change: &FileChange) -> Result<(), String> {
    let path = FilePath::new(change.path.as_str());
    let text = |bytes: &Option<Vec<u8>>| match bytes {
        None => Ok(None),
        Some(bytes) => String::from_utf8(bytes.clone())
            .map(Some)
            .map_err(|_| format!("{path}: the file is not UTF-8 text")),
    };
    match (text(&change.before)?, text(&change.after)?) {
        (Some(before), Some(after)) => proposals(&path, &before, &after)
            .map(drop)
            .map_err(|error| error.to_string()),
        // A new file is proposed as a whole, and a file is deleted as a whole.
        (None, Some(_)) | (None, None) | (Some(_), None) => Ok(()),
    }
}
