//! A task of several lines, written in the user's editor as `git commit` asks for a message.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

/// Begins the line below which nothing belongs to the task.
const END: &str = "-- ";
const ABOUT: &str = "\n-- Write the task above this line, save and quit; an empty task ends the command. @path/to/file names a\n\
    -- file and #Class.method a symbol.\n";

/// Whether a person can be asked for a task in an editor.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The command of the user's editor: `VISUAL`, else `EDITOR`, else `vi`.
pub fn editor() -> String {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|text| !text.trim().is_empty())
    };
    set("VISUAL")
        .or_else(|| set("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned())
}

/// Opens an editor on an empty task and returns what was written.
///
/// # Errors
/// The editor cannot be started or fails.
pub fn write_task(editor: &str) -> anyhow::Result<String> {
    let path = std::env::temp_dir().join(format!("starling-task-{}.md", unique_name()));
    let cannot = || format!("{} cannot be written", path.display());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .with_context(cannot)?;
    file.write_all(ABOUT.as_bytes()).with_context(cannot)?;
    drop(file);
    let written = open(editor, &path).and_then(|()| {
        std::fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read after {editor}", path.display()))
    });
    // Removed in either case: a failed editor wrote nothing that counts.
    let _unread = std::fs::remove_file(&path);
    Ok(above_the_end(&written?))
}

/// A name that no other call of this or another process uses.
fn unique_name() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |now| now.as_nanos());
    format!("{}-{call}-{nanos}", std::process::id())
}

fn open(editor: &str, path: &Path) -> anyhow::Result<()> {
    // The variable may hold arguments, as git takes it.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$@\""), editor])
        .arg(path)
        .status()
        .with_context(|| format!("the editor `{editor}` cannot be started: set EDITOR"))?;
    anyhow::ensure!(
        status.success(),
        "the editor `{editor}` failed ({status}); nothing was done. Set EDITOR, or give the task as an argument"
    );
    Ok(())
}

fn above_the_end(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with(END));
    let lines: Vec<&str> = lines.collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An editor that runs a script with the file as `$1`.
    fn scripted(folder: &Path, script: &str) -> String {
        let path = folder.join("edit.sh");
        std::fs::write(&path, script).unwrap();
        format!("sh {}", path.display())
    }

    #[test]
    fn a_task_of_several_lines_is_read_without_the_note_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let script = "{ printf 'Fix #Cart.total:\\n#it is late\\n'; cat \"$1\"; } > \"$1.new\" && mv \"$1.new\" \"$1\"";
        let task = write_task(&scripted(folder.path(), script)).unwrap();
        assert_eq!(task, "Fix #Cart.total:\n#it is late");
    }

    #[test]
    fn nothing_written_is_an_empty_task_and_a_failing_editor_is_told() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write_task("true").unwrap(), "");
        let failed = write_task(&scripted(folder.path(), "exit 3")).unwrap_err();
        assert!(failed.to_string().contains("nothing was done"), "{failed}");
    }
}
