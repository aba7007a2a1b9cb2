//! The sandbox that the program `bwrap` creates. The command runs in a copy of the tree.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::INIT;
use super::plan::Plan;
use super::room::{OF_THE_MACHINE, SHARED_MEMORY, own_directories};
use super::view::{hidden, kept, secrets};

/// Locations of `bwrap`. `PATH` is not searched: it belongs to the command and can lead into the
/// project.
const PLACES: [&str; 5] = [
    "/usr/bin/bwrap",
    "/bin/bwrap",
    "/usr/local/bin/bwrap",
    "/run/wrappers/bin/bwrap",
    "/run/current-system/sw/bin/bwrap",
];

/// Builds the command that starts the init (the first process of the sandbox) in a sandbox created
/// by `bwrap`.
pub(super) fn command(plan: &Plan) -> io::Result<Command> {
    let program = std::env::current_exe()?;
    let installed = PLACES.into_iter().find(|place| Path::new(place).exists());
    let missing = || io::Error::new(io::ErrorKind::NotFound, "bwrap is not installed");
    let mut command = Command::new(installed.ok_or_else(missing)?);
    command.args(arguments(plan, &program)).arg("--");
    command.arg(program).arg(INIT);
    Ok(command)
}

fn arguments(plan: &Plan, program: &Path) -> Vec<OsString> {
    let fixed = "--unshare-all --cap-drop ALL --die-with-parent --as-pid-1 \
                 --ro-bind / / --dev /dev --proc /proc";
    let mut arguments: Vec<OsString> = fixed.split_whitespace().map(OsString::from).collect();
    let mut add = |option: &str, paths: &[&Path]| {
        arguments.push(option.into());
        arguments.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    // Bubblewrap does not hide paths that it considers read-only, but root can write to them.
    for part in OF_THE_MACHINE.map(|part| Path::new("/proc").join(part)) {
        if part.exists() {
            add("--ro-bind", &[&part, &part]);
        }
    }
    for own in own_directories().chain([SHARED_MEMORY]) {
        add("--tmpfs", &[Path::new(own)]);
    }
    add("--remount-ro", &[Path::new("/dev")]);
    // A path in such a directory no longer exists, because a tmpfs is mounted over the directory.
    let is_seen = |path: &PathBuf| !own_directories().any(|own| path.starts_with(own));
    let (directories, files): (Vec<PathBuf>, Vec<PathBuf>) = hidden(plan)
        .into_iter()
        .filter(is_seen)
        .partition(|path| path.is_dir());
    for directory in &directories {
        add("--tmpfs", &[directory]);
    }
    for file in &files {
        add("--ro-bind", &[Path::new("/dev/null"), file]);
    }
    for kept in kept(plan, &hidden(plan)) {
        add("--ro-bind", &[&kept.source, &kept.at]);
    }
    add("--ro-bind", &[program, program]);
    let root = plan.tree.root();
    add("--bind", &[root, root]);
    for secret in shown_secrets(plan) {
        if secret.is_dir() {
            add("--tmpfs", &[&secret]);
        } else {
            add("--ro-bind", &[Path::new("/dev/null"), &secret]);
        }
    }
    for directory in &directories {
        add("--remount-ro", &[directory]);
    }
    arguments
}

/// Returns the secrets that are not inside a hidden directory.
fn shown_secrets(plan: &Plan) -> Vec<PathBuf> {
    let hidden = hidden(plan);
    let shown = kept(plan, &hidden).into_iter().map(|kept| kept.at);
    let mut shown: Vec<PathBuf> = shown.collect();
    shown.push(plan.tree.root().to_owned());
    let is_under = |path: &Path, all: &[PathBuf]| all.iter().any(|one| path.starts_with(one));
    let mut secrets = secrets(plan);
    secrets.retain(|path| {
        let own = own_directories().any(|own| path.starts_with(own));
        is_under(path, &shown) || !own && !is_under(path, &hidden)
    });
    secrets
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Bounds, Confinement, Tree};
    use super::*;

    #[test]
    fn bubblewrap_mounts_everything_read_only_except_the_copy() {
        // The test must not use the system's temporary directory, because the sandbox hides it.
        let program = std::env::current_exe().unwrap();
        let home = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("py/bin")).unwrap();
        std::fs::create_dir(home.join("py/.ssh")).unwrap();
        std::os::unix::fs::symlink("py/.ssh", home.join(".ssh")).unwrap();
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
            keep: vec![home.clone(), home.join("py"), "/usr".into()],
            private: Vec::new(),
            records: Vec::new(),
            user: 1,
            group: 1,
        };
        let arguments = arguments(&plan, Path::new("/bin/starling"));
        let words: Vec<_> = arguments.iter().filter_map(|word| word.to_str()).collect();
        let words = words.join(" ");
        let home = home.to_str().unwrap();
        assert!(words.contains(&format!("--tmpfs {home} ")), "{words}");
        assert!(words.contains("--cap-drop ALL"), "{words}");
        assert!(words.contains("--ro-bind /proc/sys /proc/sys "), "{words}");
        let expected = format!(
            "--ro-bind {home}/py {home}/py --ro-bind /bin/starling /bin/starling \
             --bind /cache/1/tree /cache/1/tree --tmpfs {home}/py/.ssh"
        );
        assert!(words.contains(&expected), "{words}");
        assert!(
            words.ends_with(&format!("--remount-ro {home}"))
                || words.contains(&format!("--remount-ro {home} ")),
            "{words}"
        );
    }
}
