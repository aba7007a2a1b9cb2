//! A shadow as an overlay file system over the root, in namespaces of the command's own.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::process::{self, Captured, End, Program};
use super::{ShadowCommand, ShadowError, Shadows, lay_over, remove};
use crate::workspace::Overlay;

/// Mounts, lays the texts over, and runs the line with the user's own identity. The mount of the
/// lower tree is let go, so that no path leads to it. The shell stays: as the first process of its
/// namespace it collects orphans, and the command has the usual signals.
const MOUNT: &str = r#"
root=$1 line=$2 user=$3 group=$4; shift 4
mount --rbind "$root" lower &&
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr "$root" &&
umount -l lower &&
cp -R stage/. "$root"/ || exit 125
for gone in "$@"; do rm -rf -- "$root/$gone" || exit 125; done
mount -t proc proc /proc 2>/dev/null
: > ready
cd "$root" || exit 125
unset OLDPWD
unshare --user --map-user="$user" --map-group="$group" -- /bin/sh -c "$line"
exit $?
"#;

impl Shadows {
    pub(super) async fn mounted(
        &self,
        root: &Path,
        overlay: &Overlay,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        let scratch = self.scratch_outside(root)?;
        let path = scratch.path().to_owned();
        for directory in ["lower", "upper", "work", "stage"] {
            fs::create_dir(path.join(directory)).map_err(|source| self.io(source))?;
        }
        lay_over(&path.join("stage"), overlay).map_err(|source| self.io(source))?;
        let program = Program {
            arguments: mount_arguments(root, overlay, &command.line),
            directory: path.clone(),
            environment: command.environment.clone().into_iter().collect(),
        };
        let done = process::run(program, &path, command.deadline, command.output_cap)
            .await
            .map_err(|source| self.io(source))?;
        let ready = path.join("ready").exists();
        remove(scratch).await;
        match (ready, done.end) {
            (true, _) | (false, End::TimedOut) => Ok(done),
            (false, End::Exited(_)) => Err(ShadowError::Refused {
                root: root.to_owned(),
                message: done.output.trim().to_owned(),
            }),
        }
    }
}

fn mount_arguments(root: &Path, overlay: &Overlay, line: &str) -> Vec<OsString> {
    const UNSHARE: [&str; 9] = [
        "unshare",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "/bin/sh",
        "-c",
        MOUNT,
    ];
    let user = rustix::process::getuid().as_raw();
    let group = rustix::process::getgid().as_raw();
    let gone = overlay.iter().filter(|(_, text)| text.is_none());
    UNSHARE
        .into_iter()
        .chain(["sh"])
        .map(OsString::from)
        .chain([root.into(), line.into()])
        .chain([user, group].map(|id| id.to_string().into()))
        .chain(gone.map(|(file, _)| file.as_str().into()))
        .collect()
}
