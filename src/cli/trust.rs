//! `starling trust`, and the trust question that is asked once for each project.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use super::args::{ConfigurationArgs, RunArgs, TrustArgs};
use super::project::root;
use super::question::{self, Answers, StdinAnswers};
use super::services::configuration;
use super::standard::print_line;
use super::view::words;
use super::{Outcome, WrongUse};
use starling_config::{
    ConfigSources, FileState, ModelKind, ProgramSetting, ProjectFile, RunsIn, Trust, TrustDecision,
    TrustList,
};
use starling_models::registry::role_sources;
use starling_text::harmless;

/// Maximum number of lines of a project's configuration file to show.
const LINES: usize = 40;

/// Runs the command.
pub fn run(args: &TrustArgs) -> anyhow::Result<Outcome> {
    let list = TrustList::of_user()?;
    if args.list {
        for (root, decision) in list.all()? {
            let word = match decision {
                TrustDecision::Trusted(_) => "trusted",
                TrustDecision::Refused => "refused",
            };
            print_line(format_args!("{word}  {root}"))?;
        }
        return Ok(Outcome::Settled);
    }
    let root = root(args.repo.as_deref())?;
    if args.remove {
        list.decide(&root, None)?;
        print_line(format_args!("{}: no longer trusted", root.display()))?;
        return Ok(Outcome::Settled);
    }
    let file = ProjectFile::of(&root);
    let Some(fingerprint) = file.fingerprint() else {
        let message = format!(
            "cannot read {}, so the project was not trusted",
            file.path().display()
        );
        return Err(WrongUse(message).into());
    };
    usable(&file)?;
    list.decide(&root, Some(TrustDecision::Trusted(fingerprint)))?;
    print_line(format_args!(
        "{} is trusted from now on, until its configuration changes",
        root.display()
    ))?;
    for line in programs(&file) {
        print_line(line)?;
    }
    Ok(Outcome::Settled)
}

/// Refuses a configuration that the next run would refuse.
fn usable(file: &ProjectFile) -> Result<(), WrongUse> {
    let sources = ConfigSources::of_process(file.clone(), Trust::Trusted, Vec::new());
    match starling_config::load(&sources) {
        Ok(_) => Ok(()),
        Err(error) => Err(WrongUse(error.to_string())),
    }
}

/// Lists the programs that run if the project is trusted, one on each line.
fn programs(file: &ProjectFile) -> Vec<String> {
    let line = |one: &ProgramSetting| {
        let setting = harmless(&one.setting);
        match one.runs_in {
            RunsIn::Open => format!("starts programs outside the sandbox: {setting}"),
            RunsIn::Sandbox => format!("starts programs in the sandbox: {setting}"),
        }
    };
    let mut lines: Vec<String> = file.starters().iter().map(line).collect();
    lines.push(
        "Language servers in the project (.venv, venv) are started outside the sandbox.".to_owned(),
    );
    lines
}

/// Returns whether a project with this configuration file is trusted: by `--trust`, as long as the
/// file stays as it was at its first use in this process, or else by the saved decision.
pub fn of(root: &Path, args: &ConfigurationArgs, file: &ProjectFile) -> Trust {
    if args.trust && args.process_trust.covers(file) {
        return Trust::Trusted;
    }
    match TrustList::of_user().and_then(|list| list.decision(root)) {
        Ok(Some(TrustDecision::Trusted(known))) => match file.fingerprint() == Some(known) {
            true => Trust::Trusted,
            false => Trust::Changed,
        },
        Ok(Some(TrustDecision::Refused) | None) if args.trust => Trust::Changed,
        Ok(Some(TrustDecision::Refused) | None) => Trust::NotTrusted,
        Err(error) => {
            tracing::warn!("no project is treated as trusted: {error}");
            Trust::NotTrusted
        }
    }
}

/// Asks at a terminal whether to trust a project that has a configuration file, if there is no
/// decision or the file has changed since. A replay does not work on the project, so it does not
/// ask.
///
/// # Errors
/// The decision cannot be saved, or the terminal cannot be used.
pub fn ask_once(root: &Path, args: &RunArgs) -> anyhow::Result<()> {
    let at_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !at_terminal || args.json || args.task == "-" {
        return Ok(());
    }
    let loaded = configuration(root, &args.world).map_err(|error| WrongUse(error.to_string()))?;
    let not_read = |(_, state): &(_, FileState)| match state {
        FileState::NotTrusted | FileState::Changed => true,
        FileState::Read | FileState::Absent => false,
    };
    if !loaded.files.iter().any(not_read) {
        return Ok(());
    }
    let replayed = role_sources(&loaded.config, args.world.model.as_deref()).is_ok_and(|roles| {
        roles
            .all()
            .any(|one| one.settings.kind == ModelKind::Replay)
    });
    let list = TrustList::of_user()?;
    let asked = match list.decision(root)? {
        _ if replayed => return Ok(()),
        Some(TrustDecision::Refused) => return Ok(()),
        Some(TrustDecision::Trusted(_)) => TrustQuestion::Again,
        None => TrustQuestion::First,
    };
    // Trust exactly the text that is shown, even if the file changes meanwhile.
    let file = ProjectFile::of(root);
    let decision = ask(&file, asked, &mut StdinAnswers, &mut io::stderr())?;
    if let Some(TrustDecision::Trusted(_)) = &decision {
        usable(&file)?;
    }
    if decision.is_some() {
        list.decide(root, decision)?;
    }
    Ok(())
}

/// Whether the user has already been asked to trust this project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrustQuestion {
    First,
    /// The user was asked about an earlier version of the file.
    Again,
}

/// Shows the file and asks. Returns `None` if there is no answer.
fn ask(
    file: &ProjectFile,
    asked: TrustQuestion,
    heard: &mut impl Answers,
    shown: &mut impl Write,
) -> io::Result<Option<TrustDecision>> {
    let (Some(text), Some(fingerprint)) = (file.text(), file.fingerprint()) else {
        return Ok(None);
    };
    let path = file.path().display();
    writeln!(shown, "The project has its own configuration, {path}:\n")?;
    for line in text.lines().take(LINES) {
        writeln!(shown, "    {}", harmless(line))?;
    }
    let more = text.lines().count().saturating_sub(LINES);
    if more > 0 {
        writeln!(shown, "    … {} more", words::count(more as u64, "line"))?;
    }
    writeln!(shown)?;
    if asked == TrustQuestion::Again {
        writeln!(shown, "It changed since you trusted it.")?;
    }
    for line in programs(file) {
        writeln!(shown, "{line}")?;
    }
    writeln!(shown, "You can change the answer with `starling trust`.")?;
    loop {
        let question = "Trust this project? [y]es, [n]o, [?] keys: ";
        let Some(line) = question::ask(question, heard, shown)? else {
            return Ok(None);
        };
        match line.to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(TrustDecision::Trusted(fingerprint))),
            "n" | "no" => return Ok(Some(TrustDecision::Refused)),
            _ => writeln!(
                shown,
                "  y  use this configuration from now on, until it changes\n  \
                 n  never use it\n  Ctrl-D  do not use it this time\n  ?  show these keys"
            )?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(
        text: &str,
        asked: TrustQuestion,
        answers: &str,
    ) -> (Option<TrustDecision>, String, ProjectFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let file = ProjectFile::at(path);
        // The file changes before the answer.
        std::fs::write(file.path(), "[limits]\n").unwrap();
        let mut shown = Vec::new();
        let decision = ask(&file, asked, &mut answers.as_bytes(), &mut shown).unwrap();
        (decision, String::from_utf8(shown).unwrap(), file)
    }

    #[test]
    fn trust_question_shows_the_file_and_repeats_until_answered() {
        let text = "[tests]\ncommand = \"make\"\n[language]\nservers = [\"./serve\"]\n";
        let (decision, shown, file) = asked(text, TrustQuestion::First, "\nperhaps\nYes\n");
        let trusted = TrustDecision::Trusted(file.fingerprint().unwrap());
        assert_eq!(decision, Some(trusted), "what was shown is trusted");
        assert!(shown.contains("    command = \"make\"\n"), "{shown}");
        for line in [
            "starts programs in the sandbox: tests.command = \"make\"\n",
            "starts programs outside the sandbox: language.servers = [\"./serve\"]\n",
            "Language servers in the project",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        assert!(!shown.contains("It changed"), "{shown}");
        assert_eq!(shown.matches("Trust this project?").count(), 3, "{shown}");
        let refused = asked(text, TrustQuestion::Again, "n\n");
        assert_eq!(refused.0, Some(TrustDecision::Refused));
        assert!(refused.1.contains("It changed since you trusted it."));
        let silent = asked(text, TrustQuestion::First, "").0;
        assert_eq!(silent, None, "no answer is no decision");
    }

    #[test]
    fn trust_question_shows_only_the_start_of_a_long_file() {
        let text = "# more\n".repeat(LINES + 5);
        let (_, shown, _) = asked(&text, TrustQuestion::First, "n\n");
        assert_eq!(shown.matches("    # more\n").count(), LINES);
        assert!(shown.contains("… 5 lines more"), "{shown}");
    }
}
