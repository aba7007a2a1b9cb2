//! `starling trust`, and the question that is asked once.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use super::args::{RunArgs, TrustArgs};
use super::run::root;
use super::services::configuration;
use super::{Outcome, WrongUse};
use crate::config::{Decision, FileState, ModelKind, Trust, TrustList};
use crate::model::registry::role_sources;
use crate::text::harmless;

/// More lines than this of a project's file are not shown.
const LINES: usize = 40;

/// Runs the command.
pub fn run(args: &TrustArgs) -> anyhow::Result<Outcome> {
    let list = TrustList::of_user()?;
    if args.list {
        for (root, decision) in list.all()? {
            let word = match decision {
                Decision::Trusted => "trusted",
                Decision::Refused => "refused",
            };
            println!("{word}  {root}");
        }
        return Ok(Outcome::Settled);
    }
    let root = root(args.repo.as_deref())?;
    let (decision, word) = match args.remove {
        true => (None, "no longer trusted"),
        false => (Some(Decision::Trusted), "trusted from now on"),
    };
    list.decide(&root, decision)?;
    println!("{}: {word}", root.display());
    Ok(Outcome::Settled)
}

/// What was decided about a project; `--trust` decides for this time.
pub fn of(root: &Path, given: Trust) -> Trust {
    if given == Trust::Trusted {
        return Trust::Trusted;
    }
    match TrustList::of_user().and_then(|list| list.decision(root)) {
        Ok(Some(Decision::Trusted)) => Trust::Trusted,
        Ok(Some(Decision::Refused) | None) => Trust::NotTrusted,
        Err(error) => {
            tracing::warn!("no project is trusted: {error}");
            Trust::NotTrusted
        }
    }
}

/// Asks about a project that brings a configuration and was not decided about, where a person sits at a
/// terminal. A replay is no work on the project: it asks nothing.
///
/// # Errors
/// The decision cannot be kept, or nothing can be asked.
pub fn ask_once(root: &Path, args: &RunArgs) -> anyhow::Result<()> {
    let at_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !at_terminal || args.json || args.task == "-" {
        return Ok(());
    }
    let loaded = configuration(root, &args.world).map_err(|error| WrongUse(error.to_string()))?;
    let not_read = |(_, state): &&(_, FileState)| *state == FileState::NotTrusted;
    let Some((file, _)) = loaded.files.iter().find(not_read) else {
        return Ok(());
    };
    let replayed = role_sources(&loaded.config, args.world.model.as_deref()).is_ok_and(|roles| {
        roles
            .all()
            .any(|one| one.settings.kind == ModelKind::Replay)
    });
    let list = TrustList::of_user()?;
    if replayed || list.decision(root)?.is_some() {
        return Ok(());
    }
    let text = std::fs::read_to_string(file)?;
    let decision = ask(&text, file, &mut io::stdin().lock(), &mut io::stderr())?;
    if decision.is_some() {
        list.decide(root, decision)?;
    }
    Ok(())
}

/// Shows the file and asks; `None` where no answer came.
fn ask(
    text: &str,
    file: &Path,
    heard: &mut impl BufRead,
    shown: &mut impl Write,
) -> io::Result<Option<Decision>> {
    writeln!(
        shown,
        "{} is this project's own configuration:\n",
        file.display()
    )?;
    for line in text.lines().take(LINES) {
        writeln!(shown, "    {}", harmless(line))?;
    }
    let more = text.lines().count().saturating_sub(LINES);
    if more > 0 {
        writeln!(shown, "    … {more} lines more")?;
    }
    writeln!(
        shown,
        "\nIt names the command that runs the tests, for example. `starling trust` changes the answer."
    )?;
    loop {
        write!(shown, "Trust it? [y]es, [n]o: ")?;
        shown.flush()?;
        let mut line = String::new();
        if heard.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(Decision::Trusted)),
            "n" | "no" => return Ok(Some(Decision::Refused)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str, answers: &str) -> (Option<Decision>, String) {
        let mut shown = Vec::new();
        let file = Path::new("/p/.starling/config.toml");
        let decision = ask(text, file, &mut answers.as_bytes(), &mut shown).unwrap();
        (decision, String::from_utf8(shown).unwrap())
    }

    #[test]
    fn the_file_is_shown_and_an_answer_insisted_on() {
        let text = "[tests]\ncommand = \"make\x1b[2J\"\n";
        let (decision, shown) = asked(text, "\nperhaps\nYes\n");
        assert_eq!(decision, Some(Decision::Trusted));
        assert!(shown.starts_with("/p/.starling/config.toml is"), "{shown}");
        assert!(shown.contains("    command = \"make[2J\"\n"), "{shown}");
        assert_eq!(shown.matches("Trust it?").count(), 3, "{shown}");
        assert_eq!(asked(text, "n\n").0, Some(Decision::Refused));
        assert_eq!(asked(text, "").0, None, "no answer is no decision");
    }

    #[test]
    fn of_a_long_file_the_beginning_is_shown() {
        let (_, shown) = asked(&"calls = 1\n".repeat(LINES + 5), "n\n");
        assert_eq!(shown.matches("    calls = 1\n").count(), LINES);
        assert!(shown.contains("… 5 lines more"), "{shown}");
    }
}
