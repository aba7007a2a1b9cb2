//! Conversions between the URIs of a client and the files of the project.

use std::path::{Path, PathBuf};

use tower_lsp::lsp_types::Url;

use super::session::file_at;
pub use super::session::path_of;
use starling_syntax::FilePath;

/// Returns the path of a file on disk; `None` for the URI of anything else. A URI of another scheme
/// (`git:`, `untitled:`), or one with a query or a fragment, may have the path of a file and another text.
pub fn disk_path(uri: &Url) -> Option<PathBuf> {
    let is_file = uri.scheme() == "file" && uri.query().is_none() && uri.fragment().is_none();
    is_file.then(|| uri.to_file_path().ok()).flatten()
}

/// Returns the project file that a URI names; `None` if the URI lies outside of the project.
pub fn file_of(root: &Path, uri: &Url) -> Option<FilePath> {
    file_at(root, &disk_path(uri)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_with_deceptive_file_names_are_rejected() {
        let root = Path::new("/w");
        for name in ["a\nb.py", "\x1b[2J/c.py", "\u{202e}yp.py"] {
            let uri = Url::from_file_path(root.join(name)).unwrap();
            assert_eq!(file_of(root, &uri), None);
            assert_eq!(path_of(root, &FilePath::new(name)), None);
        }
    }

    #[test]
    fn uris_are_converted_to_project_files_and_back() {
        let root = Path::new("/w s");
        let uri = Url::from_file_path("/w s/pkg/ä b.py").unwrap();
        let file = file_of(root, &uri).unwrap();
        assert_eq!(file, FilePath::new("pkg/ä b.py"));
        assert_eq!(path_of(root, &file), Some(PathBuf::from("/w s/pkg/ä b.py")));
        let vs_code = Url::parse("file:///w%20s/pkg/%C3%A4%20b.py").unwrap();
        assert_eq!(file_of(root, &vs_code), Some(file));
    }

    #[test]
    fn uris_of_files_outside_the_project_are_rejected() {
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
    fn uri_through_a_link_to_the_project_root_is_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let (root, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.py"), "").unwrap();
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let uri = Url::from_file_path(link.join("a.py")).unwrap();
        assert_eq!(file_of(&root, &uri), Some(FilePath::new("a.py")));
    }
}
