//! Task input in the user's editor, similar to commit messages of `git commit`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anyhow::Context;

use starling_workspace::{HostPrograms, Variables};

use starling_sandbox::Scratch;

/// Prefix of the line that ends the task.
const END: &str = "-- ";
const ABOUT: &str = "\n-- Write the task above this line, save and quit; an empty task ends the command. @path/to/file names a\n\
    -- file and #Class.method a symbol.\n";

/// Whether the user can be asked for a task in an editor.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns the command of the user's editor: `VISUAL`, else `EDITOR`, else `vi`.
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

/// Opens an editor with an empty task and returns the text that the user wrote.
///
/// # Errors
/// The editor cannot be started or fails.
pub fn write_task(editor: &str) -> anyhow::Result<String> {
    let folder = Scratch::temporary()?;
    let path = folder.path().join("TASK.md");
    std::fs::write(&path, ABOUT)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    open(editor, std::slice::from_ref(&path))?;
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {} after {editor} has closed it",
            path.display()
        )
    })?;
    Ok(above_the_end(&text))
}

/// Runs the editor on these files. The command may have arguments (`code --wait`). An editor inside
/// the project is not started.
///
/// # Errors
/// The editor cannot be started or fails.
pub fn open(editor: &str, paths: &[PathBuf]) -> anyhow::Result<()> {
    const INSTEAD: &str = "set EDITOR to another editor";
    let mut words = editor.split_whitespace();
    let programs = HostPrograms::outside_current_directory();
    let program = programs
        .find(words.next().unwrap_or_default())
        .with_context(|| format!("the editor `{editor}` cannot be started: {INSTEAD}"))?;
    let here = std::env::current_dir()?;
    let status = programs
        .command(&program, Variables::Inherited, &here)
        .args(words)
        .args(paths)
        .status()
        .with_context(|| format!("the editor `{editor}` cannot be started: {INSTEAD}"))?;
    anyhow::ensure!(
        status.success(),
        "the editor `{editor}` failed ({status}), so nothing was done: {INSTEAD}"
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
    use std::path::Path;

    use super::*;

    /// Returns an editor command that runs a script with the file as `$1`.
    fn scripted(folder: &Path, script: &str) -> String {
        let path = folder.join("edit.sh");
        std::fs::write(&path, script).unwrap();
        format!("sh {}", path.display())
    }

    #[test]
    fn task_from_the_editor_excludes_the_instructions() {
        let folder = tempfile::tempdir().unwrap();
        let script = "{ printf 'Fix #Cart.total:\\n#it is late\\n'; cat \"$1\"; } > \"$1.new\" && mv \"$1.new\" \"$1\"";
        let task = write_task(&scripted(folder.path(), script)).unwrap();
        assert_eq!(task, "Fix #Cart.total:\n#it is late");
    }

    #[test]
    fn unchanged_editor_file_is_an_empty_task_and_editor_failure_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write_task("true").unwrap(), "");
        let failed = write_task(&scripted(folder.path(), "exit 3")).unwrap_err();
        assert!(failed.to_string().contains("nothing was done"), "{failed}");
    }
}
