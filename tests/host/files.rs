//! Project files that are pipes, devices or endless.

use std::os::unix::fs::symlink;

use super::{HostProject, output, pipe, text};

#[test]
fn ignore_files_that_are_devices_or_pipes_are_skipped_with_a_warning() {
    let bed = HostProject::new();
    bed.write("project/inner/inner.py", "def g():\n    return 1\n");
    symlink("/dev/zero", bed.path("project/.gitignore")).unwrap();
    pipe(&bed.path("project/inner/.gitignore"));
    pipe(&bed.path("project/inner/.git"));
    let said = output(&mut bed.starling(&["index"]));
    let err = text(&said.stderr);
    assert!(said.status.success(), "{err}");
    for file in ["project/.gitignore", "inner/.gitignore", "inner/.git"] {
        let told = |line: &str| line.contains(file) && line.contains("not a regular file");
        assert!(err.lines().any(told), "{file}: {err}");
    }
    let found = output(&mut bed.starling(&["definition", "inner/inner.py:1:5"]));
    assert!(text(&found.stdout).contains("inner/inner.py"), "{found:?}");
}

#[test]
fn configuration_file_that_is_a_pipe_is_an_error() {
    let bed = HostProject::new();
    std::fs::create_dir(bed.path("project/.starling")).unwrap();
    pipe(&bed.path("project/.starling/config.toml"));
    let said = output(&mut bed.starling(&["config", "explain", "--trust"]));
    assert!(!said.status.success());
    let err = text(&said.stderr);
    assert!(err.contains("not a regular file"), "{err}");
}

#[test]
fn text_can_be_read_from_dev_stdin() {
    let bed = HostProject::new();
    let mut locate = bed.starling(&["locate", "--file", "/dev/stdin"]);
    let (read, mut write) = std::io::pipe().unwrap();
    locate.stdin(read);
    std::io::Write::write_all(&mut write, b"the function f in work.py is wrong").unwrap();
    drop(write);
    let said = output(&mut locate);
    assert!(text(&said.stdout).contains("work.py"), "{said:?}");
}
