//! Files of the workspace and the URIs that a client knows them by.

use std::path::{Component, Path, PathBuf};

use tower_lsp::lsp_types::Url;

use starling_syntax::FilePath;
use starling_text::is_deceptive;
use starling_workspace::{MAX_FILE_BYTES, load_source};

/// Longer files are not compared with what an editor shows. An edit may have made a file longer than
/// those that agents read.
const MAX_DISK_BYTES: u64 = 8 * MAX_FILE_BYTES;

/// The path of a file on disk; `None` for the URI of anything else. A URI of another scheme (`git:`,
/// `untitled:`), or one with a query or a fragment, may have the path of a file and another text.
pub fn disk_path(uri: &Url) -> Option<PathBuf> {
    let is_file = uri.scheme() == "file" && uri.query().is_none() && uri.fragment().is_none();
    is_file.then(|| uri.to_file_path().ok()).flatten()
}

/// The file that a URI names, when it lies in the workspace.
pub fn file_of(root: &Path, uri: &Url) -> Option<FilePath> {
    let path = disk_path(uri)?;
    let inside = match path.strip_prefix(root) {
        Ok(inside) => inside.to_owned(),
        // The client may know the same folder by a link.
        Err(_) => path
            .canonicalize()
            .ok()?
            .strip_prefix(root.canonicalize().ok()?)
            .ok()?
            .to_owned(),
    };
    stays_inside(&inside)
        .then(|| inside.to_str().map(FilePath::new))
        .flatten()
}

/// Where a file of the workspace lies; `None` when its path leads out of the workspace.
pub fn path_of(root: &Path, file: &FilePath) -> Option<PathBuf> {
    let inside = Path::new(file.as_str());
    stays_inside(inside).then(|| root.join(inside))
}

/// The text of a file on disk.
///
/// # Errors
/// The file cannot be read, or is not a regular text file of moderate size.
pub async fn disk_text(path: PathBuf) -> std::io::Result<String> {
    load_source(path, MAX_DISK_BYTES).await
}

fn stays_inside(path: &Path) -> bool {
    let plain = |part: Component<'_>| match part {
        // What the index leaves out is not edited either.
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
    fn a_name_that_is_not_what_it_looks_like_is_no_file_of_ours() {
        let root = Path::new("/w");
        for name in ["a\nb.py", "\x1b[2J/c.py", "\u{202e}yp.py"] {
            let uri = Url::from_file_path(root.join(name)).unwrap();
            assert_eq!(file_of(root, &uri), None);
            assert_eq!(path_of(root, &FilePath::new(name)), None);
        }
    }

    #[test]
    fn uris_and_files_name_each_other() {
        let root = Path::new("/w s");
        let uri = Url::from_file_path("/w s/pkg/ä b.py").unwrap();
        let file = file_of(root, &uri).unwrap();
        assert_eq!(file, FilePath::new("pkg/ä b.py"));
        assert_eq!(path_of(root, &file), Some(PathBuf::from("/w s/pkg/ä b.py")));
        let vs_code = Url::parse("file:///w%20s/pkg/%C3%A4%20b.py").unwrap();
        assert_eq!(file_of(root, &vs_code), Some(file));
    }

    #[test]
    fn what_lies_outside_has_no_name() {
        let root = Path::new("/w");
        assert_eq!(
            file_of(root, &Url::parse("file:///other/a.py").unwrap()),
            None
        );
        assert_eq!(
            file_of(root, &Url::parse("untitled:Untitled-1").unwrap()),
            None
        );
        for other in [
            "file:///w/..%2Fa.py",
            "git:/w/a.py?%7B%22ref%22%3A%22~%22%7D",
            "untitled:/w/a.py",
            "vscode-notebook-cell:/w/a.ipynb#W0sZ",
            "file:///w/a.py?diff",
            "file:///w/a.py#cell",
        ] {
            let uri = Url::parse(other).unwrap();
            assert_eq!(file_of(root, &uri), None, "{other}");
        }
        assert_eq!(path_of(root, &FilePath::new("../a.py")), None);
        assert_eq!(path_of(root, &FilePath::new("/etc/passwd")), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_may_be_known_by_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (root, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.py"), "").unwrap();
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let uri = Url::from_file_path(link.join("a.py")).unwrap();
        assert_eq!(file_of(&root, &uri), Some(FilePath::new("a.py")));
    }
}
