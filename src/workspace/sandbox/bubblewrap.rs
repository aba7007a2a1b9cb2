//! The same room made by the program `bwrap`, around a copy of the tree.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

use super::INIT;
use super::plan::Plan;
use super::room::{OWN, kept, secrets};

const PROGRAM: &str = "bwrap";

/// The command that starts our init in a room of bwrap's.
pub(super) fn command(plan: &Plan) -> io::Result<Command> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(PROGRAM);
    command.args(arguments(plan, &program)).arg("--");
    command.arg(program).arg(INIT);
    Ok(command)
}

fn arguments(plan: &Plan, program: &Path) -> Vec<OsString> {
    let fixed = "--unshare-all --die-with-parent --as-pid-1 --ro-bind / / --dev /dev --proc /proc";
    let mut arguments: Vec<OsString> = fixed.split_whitespace().map(OsString::from).collect();
    let mut add = |option: &str, paths: &[&Path]| {
        arguments.push(option.into());
        arguments.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    for own in OWN.map(Path::new) {
        if own.is_dir() && !own.is_symlink() {
            add("--tmpfs", &[own]);
        }
    }
    for path in kept(plan) {
        add("--ro-bind", &[&path, &path]);
    }
    for secret in secrets(plan) {
        if secret.is_dir() {
            add("--tmpfs", &[&secret]);
        } else {
            add("--ro-bind", &[Path::new("/dev/null"), &secret]);
        }
    }
    add("--ro-bind", &[program, program]);
    let root = plan.tree.root();
    add("--bind", &[root, root]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Bounds, Confinement, Tree};
    use super::*;

    #[test]
    fn all_is_read_only_but_the_copy() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir(home.join(".ssh")).unwrap();
        std::fs::write(home.join(".netrc"), "").unwrap();
        let plan = Plan {
            confinement: Confinement::Bubblewrap,
            tree: Tree::Copy {
                root: "/cache/1/tree".into(),
            },
            line: "true".into(),
            bounds: Bounds::default(),
            scratch: "/cache/1".into(),
            home: Some(home.clone()),
            keep: vec![home.clone(), "/usr".into()],
            user: 1,
            group: 1,
        };
        let arguments = arguments(&plan, Path::new("/bin/starling"));
        let words: Vec<_> = arguments.iter().filter_map(|word| word.to_str()).collect();
        let home = home.to_str().unwrap();
        let expected = format!(
            "--ro-bind {home} {home} --tmpfs {home}/.ssh --ro-bind /dev/null {home}/.netrc --ro-bind /bin/starling /bin/starling --bind /cache/1/tree /cache/1/tree"
        );
        assert!(words.join(" ").ends_with(&expected), "{words:?}");
    }
}
