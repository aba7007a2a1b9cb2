//! Completion of `@path` and `#Symbol` while a task is written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::documents::DocumentStore;
use super::protocol::{MentionItem, MentionsReply};
use super::session::{Services, overlay};
use starling_index::Index;
use starling_syntax::FilePath;

/// How long an index is reused. It avoids a new index for each typed letter.
const MAX_INDEX_AGE: Duration = Duration::from_secs(10);
/// Maximum number of items in one reply.
const MAX_ITEMS: usize = 20;

/// Completes mentions from an index of the project.
#[derive(Clone)]
pub struct MentionCompleter {
    services: Services,
    documents: DocumentStore,
    last: Arc<Mutex<Option<CachedIndex>>>,
}

/// An index of a directory, and when it was built.
struct CachedIndex {
    root: PathBuf,
    read: Instant,
    index: Arc<Index>,
}

impl MentionCompleter {
    pub fn new(services: Services, documents: DocumentStore) -> MentionCompleter {
        MentionCompleter {
            services,
            documents,
            last: Arc::default(),
        }
    }

    /// Completes a mention.
    ///
    /// # Errors
    /// The project cannot be read.
    pub async fn complete(&self, root: &Path, mention: &str) -> anyhow::Result<MentionsReply> {
        let buffers = self.documents.read_all().await.unwrap_or_default();
        let overlay = overlay(root, buffers);
        let (mentions, root, mention) = (self.clone(), root.to_owned(), mention.to_owned());
        let completed = move || {
            let index = mentions.index(root, overlay)?;
            Ok(MentionsReply {
                items: items(&index, &mention),
            })
        };
        let workers = &self.services.workers;
        workers.spawn_blocking(completed).await?
    }

    fn index(
        &self,
        root: PathBuf,
        overlay: Vec<(FilePath, Arc<str>)>,
    ) -> anyhow::Result<Arc<Index>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && last.root == root
            && last.read.elapsed() < MAX_INDEX_AGE
        {
            return Ok(Arc::clone(&last.index));
        }
        let index = (self.services.index)(root.clone(), overlay)?;
        *last = Some(CachedIndex {
            root,
            read: Instant::now(),
            index: Arc::clone(&index),
        });
        Ok(index)
    }
}

fn items(index: &Index, mention: &str) -> Vec<MentionItem> {
    if let Some(part) = mention.strip_prefix('@') {
        files(index.snapshot().files(), part)
    } else if let Some(part) = mention.strip_prefix('#') {
        symbols(index, part)
    } else {
        Vec::new()
    }
}

/// Returns the files whose names begin with `part`, then those whose names or paths contain it.
fn files(files: &[FilePath], part: &str) -> Vec<MentionItem> {
    let part = part.to_lowercase();
    let rank = |file: &FilePath| {
        let (name, path) = (file.name().to_lowercase(), file.as_str().to_lowercase());
        if name.starts_with(&part) || path.starts_with(&part) {
            Some(0)
        } else if name.contains(&part) {
            Some(1)
        } else {
            path.contains(&part).then_some(2)
        }
    };
    let ranked = files.iter().filter_map(|file| Some((rank(file)?, file)));
    let mut found: Vec<(u8, &FilePath)> = ranked.collect();
    found.sort_by_key(|(rank, file)| (*rank, file.as_str().len(), *file));
    let item = |(_, file): (u8, &FilePath)| MentionItem {
        text: format!("@{}", file.as_str()),
        detail: String::new(),
    };
    found.into_iter().take(MAX_ITEMS).map(item).collect()
}

/// Returns the symbols whose names match `part`. If several symbols have the same name, the item
/// contains the path.
fn symbols(index: &Index, part: &str) -> Vec<MentionItem> {
    let (found, _) = index.symbols(part, MAX_ITEMS);
    let item = |one: starling_index::Definition| {
        let name = one.symbol.name.to_string();
        let is_only = index.definitions(&name).len() == 1;
        MentionItem {
            text: if is_only {
                format!("#{name}")
            } else {
                format!("#{}", one.symbol)
            },
            detail: format!("{}:{}", one.symbol.file, one.line),
        }
    };
    found.into_iter().map(item).collect()
}
