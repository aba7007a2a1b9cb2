//! The files of a project and their paths on disk.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::front_end::OpenBuffers;
use starling_platform::files::PathExt;
use starling_syntax::FilePath;
use starling_text::is_deceptive;
use starling_workspace::{MAX_FILE_BYTES, Workspace, load_source};

/// Maximum size in bytes of a file that is compared with the editor's text. It is larger than the limit
/// for agents because an edit may have made a file longer.
const MAX_DISK_BYTES: u64 = 8 * MAX_FILE_BYTES;

/// Returns the project file at a path; `None` if the path lies outside of the project.
pub fn file_at(root: &Path, path: &Path) -> Option<FilePath> {
    let inside = match path.strip_prefix(root) {
        Ok(inside) => inside.to_owned(),
        // The editor may know the root directory by the path of a link.
        Err(_) => path
            .canonical()
            .ok()?
            .strip_prefix(root.canonical().ok()?)
            .ok()?
            .to_owned(),
    };
    stays_inside(&inside)
        .then(|| inside.to_str().map(FilePath::new))
        .flatten()
}

/// Returns the path of a project file on disk; `None` if it leads out of the project.
pub fn path_of(root: &Path, file: &FilePath) -> Option<PathBuf> {
    let inside = Path::new(file.as_str());
    stays_inside(inside).then(|| root.join(inside))
}

/// Reads the text of a file on disk. If the editor showed the similar text `shown` for the file, it
/// is decoded as the editor shows it.
///
/// # Errors
/// The file cannot be read, or it is not a regular text file of moderate size.
pub async fn disk_text(path: PathBuf, shown: Option<&Arc<str>>) -> std::io::Result<String> {
    load_source(path, MAX_DISK_BYTES, shown.cloned()).await
}

/// Returns the buffers that belong to the project.
pub fn overlay(root: &Path, buffers: OpenBuffers) -> Vec<(FilePath, Arc<str>)> {
    let inside = |(path, text): (PathBuf, Arc<str>)| Some((file_at(root, &path)?, text));
    buffers.into_iter().filter_map(inside).collect()
}

/// Returns the buffers of the files that the project lists: the text of an ignored file, for example, is
/// left out.
pub fn listed_overlay(root: PathBuf, buffers: OpenBuffers) -> Vec<(FilePath, Arc<str>)> {
    let mut overlay = overlay(&root, buffers);
    match Workspace::open(root) {
        Ok(workspace) => overlay.retain(|(file, _)| workspace.lists(file)),
        Err(_) => overlay.clear(),
    }
    overlay
}

fn stays_inside(path: &Path) -> bool {
    let plain = |part: Component<'_>| match part {
        // The index leaves out files with deceptive names, so they cannot be edited either.
        Component::Normal(name) => !name.to_string_lossy().contains(is_deceptive),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            false
        }
    };
    path.components().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_overlay_contains_only_buffers_inside_the_project_root() {
        let text: Arc<str> = "x".into();
        let buffers = ["/w/pkg/a.py", "/w2/b.py", "/w/../c.py", "/d.py"]
            .map(|path| (PathBuf::from(path), Arc::clone(&text)));
        let inside = overlay(Path::new("/w"), buffers.to_vec());
        let files: Vec<FilePath> = inside.into_iter().map(|(file, _)| file).collect();
        assert_eq!(files, [FilePath::new("pkg/a.py")]);
    }
}
