//! `starling undo`: reverts the changes of a run.

mod list;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use serde::Serialize;

use super::args::UndoArgs;
use super::killed::killed_lines;
use super::lost_output::{before_a_change, result_on_stderr};
use super::project::root;
use super::question::{self, StdinAnswers};
use super::standard::{SurvivingWriter, note, print_line};
use super::view::story::diff;
use super::view::text::{Line, Paint, Style};
use super::view::words;
use super::{Outcome, WrongUse};
use list::list;
use starling_core::Editor;
use starling_history::{
    self, DiskEditor, FileUndoPlan, HistoryError, OpenRun, PastRun, RunFile, UndoOutcome,
    UndoRefusal, UndoStep,
};
use starling_index::Index;
use starling_sandbox::cache_dir;
use starling_swarm::{ProposalId, RunId, broken_in_words};
use starling_syntax::SymbolPath;
use starling_text::{harmless, harmless_json};
use starling_workspace::{Overlay, Workspace};

/// Runs the command.
pub async fn run(args: UndoArgs) -> anyhow::Result<Outcome> {
    let root = root(args.repo.as_deref())?;
    let trajectories = trajectories()?;
    if args.list {
        return list(&trajectories, &root, args.json).await;
    }
    if args.json && !args.yes {
        let message = "--json cannot ask for confirmation: add --yes to take the changes back, or use --list to list the runs";
        return Err(WrongUse(message.to_owned()).into());
    }
    let wish = UndoRequest::of(&args)?;
    // Removes what killed runs left, also if there is nothing to take back.
    let killed = starling_server::killed_runs(&trajectories, &root);
    let editor: Arc<dyn Editor> = Arc::new(DiskEditor::new(&root));
    let chosen = choose(&trajectories, &root, wish.run.as_deref(), editor.as_ref());
    let Some(found) = chosen.await? else {
        say(args.json, &killed_lines(&killed, &root, None))?;
        say(
            args.json,
            &[Line::plain(
                "nothing to take back: all changes of all runs of this project are already taken \
                 back, or no run changed anything",
            )],
        )?;
        if args.json {
            print_json(&UndoOutput::of(None, &UndoOutcome::default()))?;
        }
        return Ok(Outcome::NotSettled);
    };
    let left = killed_lines(&killed, &root, Some(&found.id));
    before_a_change(say(args.json, &left))?;
    let mut open = OpenRun::open(&found, editor.as_ref(), &root)
        .await
        .map_err(told)?;
    let interrupted = open.interrupted.take();
    let chosen = match &interrupted {
        Some(interrupted) if wish.run.is_none() && wish.proposal.is_none() => {
            let line = format!(
                "run {}: an undo was interrupted; it continues now",
                found.id.0
            );
            before_a_change(say(args.json, &[Line::of(Style::Warning, &line)]))?;
            interrupted.clone()
        }
        Some(_) | None => wish.chosen(&open.run)?,
    };
    let applied: BTreeSet<ProposalId> = open.run.applied().map(|one| one.proposal).collect();
    let wanted: BTreeSet<ProposalId> = chosen.intersection(&applied).copied().collect();
    if wanted.is_empty() {
        open.forget_journal();
        if interrupted.is_some_and(|interrupted| chosen.is_subset(&interrupted)) {
            // The undo was complete except for its record.
            let outcome = UndoOutcome {
                undone: chosen.into_iter().rev().collect(),
                ..UndoOutcome::default()
            };
            return UndoEnd::default().tell(&args, &open.run, &outcome);
        }
        return nothing_left(&args, &open.run, &chosen);
    }
    let undo = Undo {
        editor,
        root: &root,
        trajectories: &trajectories,
        args: &args,
    };
    undo.take_back(open, &wanted).await
}

/// Returns the directory of the trajectories.
pub fn trajectories() -> anyhow::Result<PathBuf> {
    let cache = cache_dir().context(
        "no home directory was found for the records of runs: set STARLING_CACHE_DIR to the directory that \
         was used during the run",
    )?;
    Ok(cache.join("runs"))
}

/// Converts an error. An unknown run name is wrong use.
pub fn told(error: HistoryError) -> anyhow::Error {
    match error {
        HistoryError::Unknown(_)
        | HistoryError::Ambiguous { .. }
        | HistoryError::Elsewhere { .. } => WrongUse(error.to_string()).into(),
        HistoryError::Open(_) | HistoryError::Damaged { .. } | HistoryError::Io { .. } => {
            error.into()
        }
    }
}

/// The run and proposal to undo, as requested by the user.
struct UndoRequest {
    run: Option<String>,
    proposal: Option<ProposalId>,
}

impl UndoArgs {
    /// Returns whether the user named a proposal.
    fn names_proposal(&self) -> bool {
        let is_number = |run: &String| run.starts_with('#');
        self.proposal.is_some() || self.run.as_ref().is_some_and(is_number)
    }
}

impl UndoRequest {
    /// Parses the arguments. `#3` in place of a run selects a proposal of the newest run.
    fn of(args: &UndoArgs) -> Result<UndoRequest, WrongUse> {
        match args.run.as_deref().and_then(|run| run.strip_prefix('#')) {
            Some(number) => {
                let wrong = || {
                    WrongUse(format!(
                        "#{number} is not the number of a proposal; expected a number such as #3"
                    ))
                };
                let number = number.parse().map_err(|_| wrong())?;
                Ok(UndoRequest {
                    run: None,
                    proposal: Some(ProposalId(number)),
                })
            }
            None => Ok(UndoRequest {
                run: args.run.clone(),
                proposal: args.proposal,
            }),
        }
    }

    fn chosen(&self, run: &PastRun) -> Result<BTreeSet<ProposalId>, WrongUse> {
        let all: BTreeSet<ProposalId> = run.changes.iter().map(|one| one.proposal).collect();
        match self.proposal {
            None => Ok(all),
            Some(id) if all.contains(&id) => Ok([id].into()),
            Some(id) => {
                let known: Vec<String> = all.iter().map(ToString::to_string).collect();
                Err(WrongUse(format!(
                    "run {} did not apply the proposal {id}; it applied {}",
                    run.id.0,
                    words::few(&known)
                )))
            }
        }
    }
}

/// Selects the named run; else a run with an interrupted undo; else the newest run with changes
/// that are not undone.
async fn choose(
    trajectories: &Path,
    root: &Path,
    named: Option<&str>,
    editor: &dyn Editor,
) -> anyhow::Result<Option<RunFile>> {
    if let Some(prefix) = named {
        return Ok(Some(
            starling_history::find(trajectories, root, prefix).map_err(told)?,
        ));
    }
    let all = starling_history::newest_first(trajectories, root);
    if let Some(interrupted) = all
        .iter()
        .find(|found| starling_history::is_interrupted(found))
    {
        return Ok(Some(interrupted.clone()));
    }
    for found in all {
        let mut run = PastRun::read(&found.path)?;
        run.detect_unrecorded_changes(editor).await;
        if run.applied().next().is_some() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Reports that everything is already undone.
fn nothing_left(
    args: &UndoArgs,
    run: &PastRun,
    chosen: &BTreeSet<ProposalId>,
) -> anyhow::Result<Outcome> {
    let id = &run.id.0;
    let line = match (chosen.len(), chosen.first()) {
        (0, _) => format!("run {id} changed nothing"),
        (1, Some(proposal)) => format!("{proposal} of run {id} is already taken back"),
        _ => format!("run {id} is already taken back"),
    };
    say(args.json, &[Line::plain(&line)])?;
    if args.json {
        print_json(&UndoOutput::of(Some(&run.id), &UndoOutcome::default()))?;
    }
    Ok(Outcome::NotSettled)
}

/// The data that the end of an undo reports in addition to its outcome.
#[derive(Default)]
struct UndoEnd {
    /// Number of proposals to undo.
    planned: usize,
    /// A warning about what the undo may break.
    warning: Option<String>,
    /// The warning, if the user did not see it before the undo.
    unforeseen: Option<String>,
}

impl UndoEnd {
    /// Reports the outcome of an undo.
    fn tell(
        self,
        args: &UndoArgs,
        run: &PastRun,
        outcome: &UndoOutcome,
    ) -> anyhow::Result<Outcome> {
        let mut lines: Vec<Line> = self
            .unforeseen
            .as_deref()
            .map(as_warning)
            .into_iter()
            .collect();
        lines.extend(summary(run, outcome, self.planned));
        let written = match args.json {
            true => print_json(&UndoOutput {
                warning: self.warning,
                ..UndoOutput::of(Some(&run.id), outcome)
            }),
            false => say(false, &lines),
        };
        if let Err(error) = written {
            return Ok(result_on_stderr(&error, &lines));
        }
        Ok(
            match outcome.refused.is_empty() && !outcome.taken_back().is_empty() {
                true => Outcome::Settled,
                false => Outcome::NotSettled,
            },
        )
    }
}

fn as_warning(warning: &str) -> Line {
    Line::of(Style::Warning, &format!("! {warning}"))
}

/// An undo that the user selected.
struct Undo<'a> {
    editor: Arc<dyn Editor>,
    root: &'a Path,
    trajectories: &'a Path,
    args: &'a UndoArgs,
}

impl Undo<'_> {
    async fn take_back(
        &self,
        mut open: OpenRun,
        wanted: &BTreeSet<ProposalId>,
    ) -> anyhow::Result<Outcome> {
        let relied_on = self.relied_on(&open.run, wanted).await;
        let (relied_on, breaks_others) = match self.args.names_proposal() {
            false => (relied_on, None),
            // A person who names a proposal is only warned.
            true => (
                Vec::new(),
                relied_on.first().map(|one| {
                    format!(
                        "this may break the code that stays: {}: {}",
                        one.proposal, one.why
                    )
                }),
            ),
        };
        let mut possible = wanted.clone();
        possible.retain(|id| relied_on.iter().all(|one| one.proposal != *id));
        let mut plan =
            starling_history::plan(self.editor.as_ref(), &open.run.changes, &possible).await;
        plan.refused.extend(relied_on.iter().cloned());
        let dependencies = starling_history::dependencies(&open.run.changes);
        let breaks = |gone: BTreeSet<ProposalId>, refused: &[UndoRefusal]| {
            let own = broken_in_words(&dependencies.broken_without(&gone))
                .or_else(|| left_alone(refused, &gone));
            let others = breaks_others.clone().filter(|_| !gone.is_empty());
            let all: Vec<String> = own.into_iter().chain(others).collect();
            (!all.is_empty()).then(|| all.join("; "))
        };
        let planned = plan.files.iter().flat_map(|file| file.undone.clone());
        let planned: BTreeSet<ProposalId> = planned.collect();
        let count = planned.len();
        let absent: usize = plan.files.iter().map(|file| file.absent.len()).sum();
        let foreseen = breaks(planned, &plan.refused);
        if !self.args.json {
            let refused = self.explained(&open.run, plan.refused).await;
            let mut lines = shown(&open.run, wanted, &plan.files, &refused);
            lines.extend(foreseen.as_deref().map(as_warning));
            before_a_change(say(false, &lines))?;
            if count == 0 {
                say(false, &[Line::of(Style::Bad, "nothing was taken back")])?;
                open.forget_journal();
                return Ok(Outcome::NotSettled);
            }
            let changing = count - absent;
            if changing > 0 && !self.args.yes && !agreed(changing)? {
                say(false, &[Line::plain("nothing was taken back")])?;
                open.forget_journal();
                return Ok(Outcome::NotSettled);
            }
        }
        let mut outcome = open.undo(&self.editor, self.root, &possible).await;
        outcome.refused.extend(relied_on);
        outcome.refused = self.explained(&open.run, outcome.refused).await;
        let undone = outcome.undone.iter().copied().collect();
        let warning = breaks(undone, &outcome.refused);
        let unforeseen = warning.clone().filter(|_| foreseen.is_none());
        let ended = UndoEnd {
            planned: count,
            warning,
            unforeseen,
        };
        ended.tell(self.args, &open.run, &outcome)
    }

    /// Returns the wanted proposals on which changes of other runs rely, and those that must stay with
    /// them.
    async fn relied_on(&self, run: &PastRun, wanted: &BTreeSet<ProposalId>) -> Vec<UndoRefusal> {
        let editor = self.editor.as_ref();
        let others = starling_history::other_runs(self.trajectories, self.root, &run.id);
        let others = starling_history::other_changes(others, editor).await;
        if others.is_empty() {
            return Vec::new();
        }
        let workspace = match Workspace::open(self.root.to_owned()) {
            Ok(workspace) => workspace,
            Err(error) => {
                tracing::warn!(%error, "it is unknown whether other runs rely on what is undone");
                return Vec::new();
            }
        };
        let snapshot = workspace.snapshot(Overlay::new());
        let index = match cache_dir() {
            Some(cache) => Index::open(snapshot, cache),
            None => Index::new(snapshot),
        };
        let of_run = (&run.id, &run.changes[..]);
        starling_history::relied_on(of_run, wanted, &others, editor, &index).await
    }

    /// Adds the later runs that block the undo.
    async fn explained(&self, run: &PastRun, mut refused: Vec<UndoRefusal>) -> Vec<UndoRefusal> {
        if refused
            .iter()
            .any(|one| one.blocker.is_none() && one.lines.is_some())
        {
            let mut later: Vec<PastRun> =
                starling_history::newest_first(self.trajectories, self.root)
                    .into_iter()
                    .take_while(|found| found.id != run.id)
                    .filter_map(|found| PastRun::read(&found.path).ok())
                    .collect();
            later.reverse();
            for run in &mut later {
                run.detect_unrecorded_changes(self.editor.as_ref()).await;
            }
            for one in &mut refused {
                let changes = later.iter().map(|run| (&run.id, &run.changes[..]));
                one.find_blocker_in_later_runs(&run.changes, changes);
            }
        }
        refused
    }
}

/// Warns if an undo reverts only some of the chosen proposals. Proposals of one run may depend on
/// each other without a record, because each was checked on top of the earlier ones.
fn left_alone(refused: &[UndoRefusal], gone: &BTreeSet<ProposalId>) -> Option<String> {
    let staying: BTreeSet<ProposalId> = refused.iter().map(|one| one.proposal).collect();
    let names = |ids: &BTreeSet<ProposalId>| {
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        words::few(&names)
    };
    let stays = if staying.len() == 1 { "stays" } else { "stay" };
    (!staying.is_empty() && !gone.is_empty()).then(|| {
        format!(
            "this may break the code that stays: {} {stays} without {} of the same run",
            names(&staying),
            names(gone)
        )
    })
}

/// Formats the planned undo.
fn shown(
    run: &PastRun,
    wanted: &BTreeSet<ProposalId>,
    plans: &[FileUndoPlan],
    refused: &[UndoRefusal],
) -> Vec<Line> {
    let task = run.task.trim().lines().next().unwrap_or_default();
    let head = format!("run {}", run.id.0);
    let when = run
        .started()
        .map_or(String::new(), |at| format!(" · {}", moment(at)));
    let mut lines = vec![
        Line::of(Style::Bold, &head)
            .with(Style::Dim, &when)
            .and(&format!(" · {}", harmless(task))),
    ];
    for change in run
        .changes
        .iter()
        .filter(|one| wanted.contains(&one.proposal))
    {
        let stays = refused.iter().any(|one| one.proposal == change.proposal);
        let (mark, style) = match stays {
            true => ("!", Style::Bad),
            false => ("↶", Style::Warning),
        };
        lines.push(
            Line::of(style, mark)
                .and(" ")
                .with(Style::Bold, &change.proposal.to_string())
                .and(&format!(" {}", symbols(&change.symbols))),
        );
    }
    for plan in plans {
        match plan.step() {
            UndoStep::Change => lines.extend(diff(&plan.diff())),
            UndoStep::Restore => {
                let line = format!("restores {}, which the run deleted", plan.file);
                lines.push(Line::of(Style::Warning, &line));
                lines.extend(diff(&plan.diff()));
            }
            UndoStep::Remove => {
                let line = format!("removes {}, which the run created", plan.file);
                lines.push(Line::of(Style::Warning, &line));
                lines.extend(diff(&plan.diff()));
            }
            UndoStep::Nothing if plan.undone.is_empty() => {}
            UndoStep::Nothing if plan.is_gone_already() => {
                let line = format!(
                    "{} does not exist any more; if you renamed it, the changes of the run are in the new file",
                    plan.file
                );
                lines.push(Line::of(Style::Warning, &line));
            }
            UndoStep::Nothing => {
                let line = format!("{} already has the text from before the run", plan.file);
                lines.push(Line::of(Style::Dim, &line));
            }
        }
    }
    lines.extend(stay(run, refused));
    lines
}

/// Formats the diffs of the proposals that stay, and why they stay.
fn stay(run: &PastRun, refused: &[UndoRefusal]) -> Vec<Line> {
    let mut lines = Vec::new();
    for one in refused.iter().filter(|one| !one.diff.is_empty()) {
        let head = format!("  the undo of {}, which was not applied:", one.proposal);
        lines.push(Line::of(Style::Dim, &head));
        lines.extend(diff(&one.diff));
    }
    for one in refused {
        let how = if one.held.is_some() {
            "stays"
        } else {
            "stays as a whole"
        };
        let line = Line::of(Style::Bad, "! ")
            .with(Style::Bold, &one.proposal.to_string())
            .and(&format!(" {how}: {}", one.why));
        lines.push(line);
    }
    if let Some(held) = refused.iter().find(|one| one.held.is_some()) {
        let (run, number) = (&run.id.0, held.proposal.0);
        let line = format!(
            "  changes that belong together are taken back together or not at all: resolve the problem and \
             undo again, or take back one proposal alone: `starling undo {run} {number}`"
        );
        lines.push(Line::of(Style::Dim, &line));
    }
    lines
}

fn summary(run: &PastRun, outcome: &UndoOutcome, planned: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    if outcome.undone.len() < planned {
        // A file changed while the user read the plan.
        lines.extend(stay(run, &outcome.refused));
    }
    let names = |ids: Vec<String>| words::few(&ids);
    let all = |mut ids: Vec<ProposalId>| {
        ids.sort();
        names(ids.iter().map(ToString::to_string).collect())
    };
    let taken_back = outcome.taken_back();
    if !taken_back.is_empty() {
        let line = format!("taken back: {}", all(taken_back));
        lines.push(Line::of(Style::Good, &line));
    }
    if !outcome.absent.is_empty() {
        let line = format!(
            "the changes are no longer in the files, so there is nothing to take back: {}",
            all(outcome.absent.clone())
        );
        lines.push(Line::of(Style::Warning, &line));
    }
    if !outcome.refused.is_empty() {
        let ids = outcome.refused.iter().map(|one| one.proposal.to_string());
        let ids = names(ids.collect());
        lines.push(Line::of(Style::Bad, &format!("not taken back: {ids}")));
    }
    if let Some(why) = &outcome.unrecorded {
        let line = format!("this is not recorded ({why}); the next start finds it in the files");
        lines.push(Line::of(Style::Warning, &line));
    }
    lines
}

pub fn symbols(symbols: &[SymbolPath]) -> String {
    let names: Vec<String> = symbols.iter().map(ToString::to_string).collect();
    words::few(&names)
}

/// Asks until the user answers; the end of stdin counts as no.
fn agreed(proposals: usize) -> anyhow::Result<bool> {
    let what = words::count(proposals as u64, "proposal");
    let question = format!("Take {what} back? [y/n/?] ");
    let mut shown = SurvivingWriter::new(Box::new(io::stdout()));
    loop {
        let Some(line) = question::ask(&question, &mut StdinAnswers, &mut shown)? else {
            note("starling: stdin is closed, so your answer cannot be read: use --yes");
            return Ok(false);
        };
        match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" | "q" | "" => return Ok(false),
            _ => print_line(format_args!(
                "  y  take {what} back\n  n  take nothing back; Enter alone does so, too\n  ?  show these keys"
            ))?,
        }
    }
}

/// Prints lines for the user; with `--json` they go to stderr.
pub fn say(json: bool, lines: &[Line]) -> io::Result<()> {
    for line in lines {
        match json {
            true => note(line.paint(Paint::Plain)),
            false => print_line(line.paint(Paint::of_stdout()))?,
        }
    }
    Ok(())
}

fn print_json(value: &impl Serialize) -> io::Result<()> {
    print_line(harmless_json(&serde_json::to_string_pretty(value)?))
}

/// The outcome of an undo, as JSON.
#[derive(Serialize)]
struct UndoOutput<'a> {
    /// `None` if there is no run to undo.
    run: Option<&'a RunId>,
    undone: Vec<ProposalId>,
    /// Proposals whose changes were no longer in the files, so that nothing was reverted.
    absent: Vec<ProposalId>,
    refused: Vec<RefusedOutput<'a>>,
    /// Why the undo could not be recorded. The next start finds it in the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    unrecorded: Option<&'a str>,
    /// A warning about code that may be broken, because related proposals stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// A proposal that was not undone, in the JSON output of `starling undo`.
#[derive(Serialize)]
struct RefusedOutput<'a> {
    proposal: ProposalId,
    file: Option<&'a str>,
    lines: Option<(usize, usize)>,
    /// The other proposal that prevents the undo, if nothing else does.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_by: Option<ProposalId>,
    why: &'a str,
}

impl<'a> UndoOutput<'a> {
    fn of(run: Option<&'a RunId>, outcome: &'a UndoOutcome) -> Self {
        let stays = |one: &'a UndoRefusal| RefusedOutput {
            proposal: one.proposal,
            file: one.file.as_ref().map(|file| file.as_str()),
            lines: one.lines,
            held_by: one.held.map(|held| held.by),
            why: &one.why,
        };
        UndoOutput {
            run,
            undone: outcome.taken_back(),
            absent: outcome.absent.clone(),
            refused: outcome.refused.iter().map(stays).collect(),
            unrecorded: outcome.unrecorded.as_deref(),
            warning: None,
        }
    }
}

/// Formats a time in UTC, for example `2026-11-23 04:10 UTC`.
pub fn moment(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    let minutes = since.map_or(0, |since| since.as_secs() / 60);
    let (days, minute) = (minutes / (24 * 60), minutes % (24 * 60));
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        minute / 60,
        minute % 60
    )
}

/// Returns the Gregorian date `days` days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Count from March 1 of year 0, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn partial_undo_warns_that_remaining_changes_may_break() {
        let ids = |ids: &[u32]| {
            ids.iter()
                .map(|id| ProposalId(*id))
                .collect::<BTreeSet<_>>()
        };
        let refused = |id: u32| UndoRefusal {
            proposal: ProposalId(id),
            file: None,
            lines: None,
            blocker: None,
            held: None,
            unsure: None,
            why: "changed since".to_owned(),
            diff: String::new(),
        };
        assert_eq!(
            left_alone(&[refused(2)], &ids(&[1, 3])).as_deref(),
            Some("this may break the code that stays: #2 stays without #1, #3 of the same run")
        );
        assert_eq!(left_alone(&[], &ids(&[1, 3])), None);
        assert_eq!(left_alone(&[refused(2)], &ids(&[])), None);
    }

    #[test]
    fn time_of_a_run_is_formatted_in_utc() {
        let at = |seconds| moment(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(at(1_795_405_800), "2026-11-23 03:50 UTC");
    }
}
