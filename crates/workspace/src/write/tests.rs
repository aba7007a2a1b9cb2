use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::SystemTime;

use rustix::io::Errno;

use super::*;

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn root() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    (dir, root)
}

#[test]
fn write_replaces_the_text_and_keeps_the_permissions() {
    let (_dir, root) = root();
    let path = root.join("run.py");
    fs::write(&path, "old, and longer").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    write_atomically(&root, &FilePath::new("run.py"), "new\r\n").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new\r\n");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o750
    );
    assert_eq!(names(&root), ["run.py"]);
}

#[test]
fn write_creates_missing_files_and_directories() {
    let (_dir, root) = root();
    write_atomically(&root, &FilePath::new("a/b/c.py"), "c").unwrap();
    assert_eq!(fs::read_to_string(root.join("a/b/c.py")).unwrap(), "c");
}

#[test]
fn write_through_a_link_keeps_the_link() {
    let (_dir, root) = root();
    fs::write(root.join("real.py"), "old").unwrap();
    std::os::unix::fs::symlink("real.py", root.join("link.py")).unwrap();
    write_atomically(&root, &FilePath::new("link.py"), "new").unwrap();
    assert!(root.join("link.py").is_symlink());
    assert_eq!(fs::read_to_string(root.join("real.py")).unwrap(), "new");
}

#[test]
fn failed_write_leaves_no_files_behind() {
    let (_dir, root) = root();
    let inner = root.join("inner");
    fs::create_dir(&inner).unwrap();
    let outside = write_atomically(&inner, &FilePath::new("../x.py"), "x");
    assert!(matches!(
        outside,
        Err(WriteError::Path(ReadError::Outside(_)))
    ));
    fs::create_dir(inner.join("taken.py")).unwrap();
    let taken = write_atomically(&inner, &FilePath::new("taken.py"), "x").unwrap_err();
    assert!(taken.to_string().starts_with("taken.py: not written"));
    assert_eq!(names(&root), ["inner"]);
    assert_eq!(names(&inner), ["taken.py"]);
}

#[test]
fn sweep_removes_temporary_files_of_dead_writers() {
    let (_dir, root) = root();
    let leftover = |name: &str, age: u64| {
        let path = beside(&root.join(name), MARK);
        let file = File::create(&path).unwrap();
        let then = SystemTime::now() - Duration::from_secs(age);
        file.set_modified(then).unwrap();
        (path, file)
    };
    let (dead, file) = leftover("dead.py", 120);
    drop(file);
    let (_young, file) = leftover("young.py", 0);
    drop(file);
    let (_alive, file) = leftover("alive.py", 120);
    file.try_lock().unwrap();
    fs::write(root.join("mine.py"), "").unwrap();
    assert_eq!(sweep_leftovers(&root), [dead]);
    assert_eq!(names(&root).len(), 3);
}

/// Creates the temporary file that a killed process leaves next to `target`.
fn left_by_a_dead_process(target: &Path) -> PathBuf {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let process = child.id();
    child.wait().unwrap();
    let name = target.file_name().unwrap().to_str().unwrap();
    let path = target.with_file_name(format!(".{name}{MARK}{process}-0"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "a part").unwrap();
    path
}

#[test]
fn snapshot_removes_temporary_files_of_dead_processes() {
    let (_dir, root) = root();
    let workspace = crate::Workspace::open(root.clone()).unwrap();
    let all = ["a.py", "newpkg/sub/b.py"].map(|name| root.join(name));
    let left = all.map(|target| left_by_a_dead_process(&target));
    let living = beside(&root.join("c.py"), MARK);
    fs::write(&living, "").unwrap();
    drop(workspace.snapshot(crate::Overlay::new()));
    assert!(left.iter().all(|path| !path.exists()));
    assert!(living.exists());
}

#[test]
fn write_and_directory_removal_clear_temporary_files_of_dead_processes() {
    let (_dir, root) = root();
    let left = left_by_a_dead_process(&root.join("a.py"));
    write_atomically(&root, &FilePath::new("a.py"), "x").unwrap();
    assert!(!left.exists());
    left_by_a_dead_process(&root.join("newpkg/sub/b.py"));
    let directories = ["newpkg", "newpkg/sub"].map(str::to_owned);
    crate::remove_empty_directories(&root, &directories);
    assert_eq!(names(&root), ["a.py"]);
}

#[test]
fn write_rejects_secrets_and_links_out_of_the_root() {
    let (_dir, root) = root();
    let inner = root.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(root.join("outside.py"), "old").unwrap();
    std::os::unix::fs::symlink("../outside.py", inner.join("link.py")).unwrap();
    let out = write_atomically(&inner, &FilePath::new("link.py"), "new");
    assert!(matches!(out, Err(WriteError::Path(ReadError::Outside(_)))));
    assert_eq!(fs::read_to_string(root.join("outside.py")).unwrap(), "old");
    let secret = write_atomically(&inner, &FilePath::new("a/.env"), "x").unwrap_err();
    assert!(
        secret.to_string().starts_with("not written: a/.env"),
        "{secret}"
    );
    assert_eq!(names(&inner), ["link.py"]);
}

#[test]
fn write_fails_if_a_parent_directory_is_a_file() {
    let (_dir, root) = root();
    fs::write(root.join("a"), "file").unwrap();
    let error = write_atomically(&root, &FilePath::new("a/b.py"), "x").unwrap_err();
    assert!(error.to_string().contains("a/b.py"), "{error}");
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "file");
    assert_eq!(names(&root), ["a"]);
}

#[test]
fn sweep_keeps_files_with_similar_names() {
    let (_dir, root) = root();
    let then = SystemTime::now() - Duration::from_secs(3600);
    for name in [
        "x.starling-write-1-0",
        ".x",
        ".x.py.starling-writ",
        ".x.starling-write-1",
        ".x.starling-write-1-",
        ".x.starling-write-1-0.py",
        ".x.starling-write-notes-0",
        ".starling-write-1-0",
    ] {
        let file = File::create(root.join(name)).unwrap();
        file.set_modified(then).unwrap();
    }
    assert!(sweep_leftovers(&root).is_empty());
    assert_eq!(names(&root).len(), 8);
}

fn calls(change: impl FnOnce(&mut SystemCalls)) -> SystemCalls {
    let mut calls = SYSTEM;
    change(&mut calls);
    calls
}

fn unsupported<T: From<io::Error>>() -> T {
    io::Error::from(Errno::NOLCK).into()
}

#[test]
fn write_works_on_a_file_system_without_locks() {
    let (_dir, root) = root();
    let path = root.join("a.py");
    fs::write(&path, "old").unwrap();
    for errno in [Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOLCK] {
        assert!(is_unsupported(&errno.into()), "{errno}");
    }
    let lockless = calls(|calls| {
        calls.lock = |_| Err(TryLockError::Error(unsupported()));
        calls.sync = |_| Err(unsupported());
    });
    write_with(&lockless, &path, b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(names(&root), ["a.py"]);
}

#[test]
fn write_succeeds_although_the_directory_cannot_be_flushed() {
    let (_dir, root) = root();
    let path = root.join("a.py");
    fs::write(&path, "old").unwrap();
    let unflushed = calls(|calls| calls.sync_directory = |_| Err(Errno::IO.into()));
    write_with(&unflushed, &path, b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn failed_flush_keeps_the_old_file() {
    let (_dir, root) = root();
    let path = root.join("a.py");
    fs::write(&path, "old").unwrap();
    let broken = calls(|calls| calls.sync = |_| Err(Errno::IO.into()));
    let failed = write_with(&broken, &path, b"new");
    assert!(matches!(failed, Err(WriteFailure::Io(_))), "{failed:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(&root), ["a.py"]);
}

#[test]
fn write_rejects_a_read_only_file() {
    let (_dir, root) = root();
    let path = root.join("a.py");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let error = write_atomically(&root, &FilePath::new("a.py"), "new").unwrap_err();
    assert!(error.to_string().contains("chmod u+w"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(&root), ["a.py"]);
}

#[test]
fn write_updates_all_hard_links_of_a_file() {
    let (_dir, root) = root();
    fs::write(root.join("a.py"), "old, and longer").unwrap();
    fs::hard_link(root.join("a.py"), root.join("b.py")).unwrap();
    write_atomically(&root, &FilePath::new("a.py"), "new").unwrap();
    assert_eq!(fs::read_to_string(root.join("b.py")).unwrap(), "new");
    let links = fs::metadata(root.join("a.py")).unwrap().nlink();
    assert_eq!((links, names(&root).len()), (2, 2));
}

#[test]
fn write_keeps_owner_access_control_list_and_attributes() {
    let (_dir, root) = root();
    let path = root.join("a.py");
    fs::write(&path, "old").unwrap();
    let file = File::open(&path).unwrap();
    let set = |name: &str, value: &[u8]| {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::fsetxattr(&file, name, value, flags).unwrap();
    };
    let get = |name: &str| {
        let mut value = vec![0; 100];
        let length = rustix::fs::getxattr(&path, name, &mut value).unwrap();
        value.truncate(length);
        value
    };
    set("user.note", b"kept");
    // Version 2, then entries for the owner, user 1234, the group, the mask and others.
    let entries: [(u16, u16, u32); 5] = [
        (1, 6, u32::MAX),
        (2, 6, 1234),
        (4, 4, u32::MAX),
        (16, 6, u32::MAX),
        (32, 4, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    set("system.posix_acl_access", &list);
    // Only root may change the owner of a file.
    let other = rustix::process::geteuid().is_root().then_some(1234);
    std::os::unix::fs::chown(&path, other, other).unwrap();
    let before = fs::metadata(&path).unwrap();
    write_atomically(&root, &FilePath::new("a.py"), "new").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    let of = |found: &Metadata| (found.uid(), found.gid(), found.mode());
    assert_eq!(of(&before), of(&after));
    assert_ne!(before.ino(), after.ino(), "replaced in one step");
    assert_eq!(get("user.note"), b"kept");
    assert_eq!(get("system.posix_acl_access"), list);
}

#[test]
fn file_is_written_in_place_if_its_metadata_cannot_be_copied() {
    let (_dir, root) = root();
    let path = root.join("a.py");
    fs::write(&path, "old").unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let owned = calls(|calls| calls.keep = |_, _, _| Err(Errno::PERM.into()));
    write_with(&owned, &path, b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    assert_eq!(names(&root), ["a.py"]);
}

#[test]
fn full_disk_during_in_place_write_restores_the_old_text() {
    let (_dir, root) = root();
    let path = root.join("a.py");
    fs::write(&path, "old").unwrap();
    let full = calls(|calls| {
        calls.keep = |_, _, _| Err(Errno::PERM.into());
        calls.overwrite = |file, text| {
            (SYSTEM.overwrite)(file, &text[..text.len().min(3)])?;
            match text.len() {
                0..=3 => Ok(()),
                _ => Err(Errno::NOSPC.into()),
            }
        };
    });
    let failed = write_with(&full, &path, b"new, and longer");
    assert!(matches!(failed, Err(WriteFailure::Io(_))), "{failed:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(&root), ["a.py"]);
    // If neither text fits on the disk, the journal keeps the new text.
    fs::write(&path, "also longer").unwrap();
    let Err(WriteFailure::Torn { journal, .. }) = write_with(&full, &path, b"new, and longer")
    else {
        panic!("neither text fits");
    };
    assert_eq!(fs::read_to_string(journal).unwrap(), "new, and longer");
}

#[test]
fn journal_of_an_interrupted_write_is_kept_until_its_text_is_in_the_file() {
    let (_dir, root) = root();
    let then = SystemTime::now() - Duration::from_secs(120);
    let journal = |name: &str, now: &str| {
        fs::write(root.join(name), now).unwrap();
        let path = beside(&root.join(name), JOURNAL);
        fs::write(&path, "new text").unwrap();
        File::open(&path).unwrap().set_modified(then).unwrap();
        path
    };
    let cut = journal("cut.py", "new");
    let whole = journal("whole.py", "new text");
    assert_eq!(sweep_leftovers(&root), [whole]);
    assert_eq!(fs::read_to_string(cut).unwrap(), "new text");
    // Anyone could have created the journal, so it must not be used to change the file.
    assert_eq!(fs::read_to_string(root.join("cut.py")).unwrap(), "new");
}

#[test]
fn write_keeps_the_byte_order_mark() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (file, path) = (FilePath::new("a.py"), root.join("a.py"));
    std::fs::write(&path, "\u{feff}x = 1\r\n").unwrap();
    write_atomically(&root, &file, "x = 2\n").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), "\u{feff}x = 2\n".as_bytes());
    std::fs::write(&path, b"gr\xf6\xdfe\r\n").unwrap();
    write_as_shown(&root, &file, "größe\n", "maß\n").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"ma\xdf\r\n");
}

#[test]
fn write_uses_the_declared_encoding() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let file = FilePath::new("a.py");
    write_atomically(&root, &file, "# coding: latin-1\r\ns = 'é'\r").unwrap();
    let written = b"# coding: latin-1\r\ns = '\xe9'\r";
    assert_eq!(std::fs::read(root.join("a.py")).unwrap(), written);
    let error = write_atomically(&root, &file, "# coding: latin-1\n# €\n").unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with("a.py: not written: its declared encoding, latin-1"),
        "{told}"
    );
    assert_eq!(std::fs::read(root.join("a.py")).unwrap(), written);
}

thread_local! {
    /// The directory that the next write replaces with a link, and the target of the link.
    static REPLACED: std::cell::RefCell<Option<(PathBuf, PathBuf)>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn write_does_not_follow_a_link_that_replaces_its_directory_during_the_write() {
    let (_dir, root) = root();
    let (inner, outside) = (root.join("project/d"), root.join("outside"));
    for directory in [&inner, &outside] {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("x.txt"), "old").unwrap();
    }
    let calls = calls(|calls| {
        calls.lock = |file| {
            if let Some((directory, other)) = REPLACED.take() {
                fs::rename(&directory, directory.with_file_name("moved")).unwrap();
                std::os::unix::fs::symlink(other, directory).unwrap();
            }
            (SYSTEM.lock)(file)
        };
    });
    REPLACED.set(Some((inner.clone(), outside.clone())));
    write_with(&calls, &inner.join("x.txt"), b"new").unwrap();
    let text = |path: PathBuf| fs::read_to_string(path).unwrap();
    assert_eq!(text(root.join("project/moved/x.txt")), "new");
    assert_eq!(text(outside.join("x.txt")), "old");
    // By now the path of the directory contains a link. The name of a file can also be a link.
    assert!(write_with(&SYSTEM, &inner.join("x.txt"), b"new").is_err());
    std::os::unix::fs::symlink(outside.join("x.txt"), root.join("project/y.txt")).unwrap();
    assert!(write_with(&SYSTEM, &root.join("project/y.txt"), b"new").is_err());
    assert_eq!(text(outside.join("x.txt")), "old");
}

#[test]
fn only_files_of_the_workspace_are_deleted() {
    let (_dir, root) = root();
    let project = root.join("project");
    fs::create_dir(&project).unwrap();
    for path in [root.join("out.py"), project.join("a.py")] {
        fs::write(path, "text").unwrap();
    }
    std::os::unix::fs::symlink("../out.py", project.join("link.py")).unwrap();
    assert!(delete_file(&project, &FilePath::new("../out.py")).is_err());
    assert!(delete_file(&project, &FilePath::new("link.py")).is_err());
    delete_file(&project, &FilePath::new("a.py")).unwrap();
    assert!(root.join("out.py").exists() && !project.join("a.py").exists());
}

#[test]
fn file_that_the_user_named_is_private_if_new_and_keeps_its_mode_otherwise() {
    let (_dir, root) = root();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let new = root.join("new.patch");
    write_given(&new, "text\n").unwrap();
    assert_eq!(fs::read_to_string(&new).unwrap(), "text\n");
    assert_eq!(mode(&new), 0o600);
    let known = root.join("known.patch");
    fs::write(&known, "old\n").unwrap();
    fs::set_permissions(&known, fs::Permissions::from_mode(0o640)).unwrap();
    write_given(&known, "new\n").unwrap();
    assert_eq!(fs::read_to_string(&known).unwrap(), "new\n");
    assert_eq!(mode(&known), 0o640);
    assert!(write_given(&root.join("missing/x.patch"), "text\n").is_err());
    fs::set_permissions(&known, fs::Permissions::from_mode(0o440)).unwrap();
    let refused = write_given(&known, "newer\n").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(fs::read_to_string(&known).unwrap(), "new\n");
}
