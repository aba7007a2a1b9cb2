//! `starling review`: offers proposals again that waited for review when their run ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use starling_platform::files::identity;
use tokio::runtime::Handle;

use super::Outcome;
use super::args::{ConfigurationArgs, ReviewArgs};
use super::input::{InputSource, Inputs};
use super::killed::left_by_kills;
use super::project::{self, to_name};
use super::run::Viewer;
use super::screen::Screen;
use super::services::services;
use super::standard::{note, print_line};
use super::undo::{moment, symbols, told, trajectories};
use super::view::state::{Review, RunState};
use super::view::summary::{command, waiting};
use super::view::text::{Line, Style};
use super::view::words;
use starling_core::Verdict;
use starling_headless::HeadlessEditor;
use starling_history::{self, DiskEditor, PastRun};
use starling_server::protocol::{EventParams, RunReply};
use starling_server::{self, LockedRun, RestorePolicy, WaitingReview, WaitingRun};
use starling_swarm::{Event, FileChange, ProposalId, Record};
use starling_text::{deleted_file_diff, harmless, new_file_diff, unified_diff};

/// How a review ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reviewed {
    /// All waiting proposals were shown.
    Completed,
    /// The user stopped the review.
    Stopped,
}

/// Runs the command.
pub async fn run(args: ReviewArgs) -> anyhow::Result<Outcome> {
    let root = project::root(args.repo.as_deref())?;
    let trajectories = trajectories()?;
    if let (true, Some(prefix)) = (args.keep, &args.run) {
        return keep(&trajectories, &root, prefix, args.json);
    }
    super::undo::say(args.json, &left_by_kills(&trajectories, &root))?;
    let mut runs = starling_server::waiting_runs(&trajectories, &root);
    if let Some(prefix) = &args.run {
        let found = starling_history::find(&trajectories, &root, prefix).map_err(told)?;
        runs.retain(|run| run.id == found.id);
        if runs.is_empty() {
            // Report an error if the trajectory is damaged.
            PastRun::read(&found.path)?;
            let mut held = starling_server::locked_runs(&trajectories, &root);
            held.retain(|run| run.id == found.id);
            let line = format!("run {}: no proposal is waiting for review", found.id.0);
            return say_nothing(args.json, &held, &line);
        }
    }
    if runs.is_empty() {
        let held = starling_server::locked_runs(&trajectories, &root);
        let line = "no proposal of this project is waiting for review";
        return say_nothing(args.json, &held, line);
    }
    let before = applied(&runs);
    let names: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
    review(&runs, &root, args.json).await?;
    let still = starling_server::waiting_runs(&trajectories, &root);
    let still = still.iter().filter(|run| names.contains(&run.id));
    let still: usize = still.map(|run| run.reviews.len()).sum();
    if !args.json {
        let repo = to_name(&root);
        let applied = applied(&runs).saturating_sub(before);
        let asked = runs.iter().map(|run| run.reviews.len()).sum();
        let mut lines = vec![Line::plain(&ended(asked, still, applied))];
        if applied > 0 {
            let undo = format!("Undo: `{}`", command("undo", repo));
            lines.push(Line::of(Style::Dim, &undo));
        }
        lines.extend(waiting(still, repo));
        Screen::lines(
            Box::new(io::stdout()),
            super::view::text::Paint::of_stdout(),
        )
        .say(&lines)?;
    }
    Ok(match still {
        0 => Outcome::Settled,
        _ => Outcome::NotSettled,
    })
}

/// Keeps what an interrupted run changed without a review.
fn keep(trajectories: &Path, root: &Path, prefix: &str, json: bool) -> anyhow::Result<Outcome> {
    let found = starling_history::find(trajectories, root, prefix).map_err(told)?;
    let id = &found.id.0;
    let killed = starling_server::killed_runs(trajectories, root);
    let left = killed
        .iter()
        .find(|run| run.id == found.id && !run.unreviewed.is_empty());
    let Some(run) = left else {
        let line = format!("run {id}: there is nothing to decide about what it changed");
        say(json, &line)?;
        return Ok(Outcome::Settled);
    };
    run.keep_unreviewed()
        .with_context(|| format!("run {id}: the record that its changes are kept"))?;
    let undo = command(&format!("undo {id}"), to_name(root));
    let line = format!(
        "run {id}: kept: {}; `{undo}` takes it back all the same",
        symbols(&run.unreviewed)
    );
    say(json, &line)?;
    Ok(Outcome::Settled)
}

/// Returns the end of a review in words: how many of the proposals that were `asked` about `still`
/// wait, and how many changes were applied.
fn ended(asked: usize, still: usize, applied: usize) -> String {
    let answered = asked.saturating_sub(still);
    let tests = match applied {
        0 => "",
        _ => "; no test ran after it: run them",
    };
    format!(
        "{answered} of {} answered, {} applied{tests}",
        words::count(asked as u64, "proposal"),
        words::count(applied as u64, "change")
    )
}

/// Reports why there is nothing to review: `nothing`, or the program that has the runs open.
fn say_nothing(json: bool, held: &[LockedRun], nothing: &str) -> anyhow::Result<Outcome> {
    if held.is_empty() {
        say(json, nothing)?;
        return Ok(Outcome::Settled);
    }
    for run in held {
        let (count, waits) = (words::count(run.reviews as u64, "proposal"), run.reviews);
        let wait = if waits == 1 { "waits" } else { "wait" };
        let holder = holder(&run.path)
            .unwrap_or_else(|| "another program (an editor, or another terminal)".to_owned());
        say(
            json,
            &format!(
                "run {}: {count} {wait} for review, and {holder} has the run open: review there, or end \
                 that program first",
                run.id.0
            ),
        )?;
    }
    Ok(Outcome::NotSettled)
}

/// Returns the program that holds a lock on a file, according to `/proc/locks`.
fn holder(path: &Path) -> Option<String> {
    let found = path.metadata().ok()?;
    let (_, inode) = identity(path, &found).ok()?.file;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = holder_in(&locks, inode)?;
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let command: String = command.trim().chars().take(60).collect();
    Some(match command.is_empty() {
        true => format!("process {pid}"),
        false => format!("`{}` (process {pid})", harmless(&command)),
    })
}

/// Returns the process that holds a lock on the file with this inode, from a line such as
/// `1: FLOCK  ADVISORY  WRITE 17 08:01:4711 0 EOF`.
fn holder_in(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK");
        let pid = words.nth(3)?.parse().ok()?;
        let of_file = words.next()?.rsplit(':').next()?.parse() == Ok(inode);
        of_file.then_some(pid)
    })
}

/// Whether all accepted proposals need a skipped one, directly or through each other.
fn all_stay<'n>(
    accepted: &BTreeSet<ProposalId>,
    skipped: &BTreeSet<ProposalId>,
    needs: impl Fn(ProposalId) -> &'n [ProposalId],
) -> bool {
    let mut stay = skipped.clone();
    loop {
        let needs_one = |id: &&ProposalId| needs(**id).iter().any(|needed| stay.contains(needed));
        let more: Vec<ProposalId> = accepted
            .difference(&stay)
            .filter(needs_one)
            .copied()
            .collect();
        if more.is_empty() {
            return accepted.is_subset(&stay);
        }
        stay.extend(more);
    }
}

/// Returns the number of proposals of these runs that were ever applied.
fn applied(runs: &[WaitingRun]) -> usize {
    let read = runs.iter().filter_map(|run| PastRun::read(&run.path).ok());
    read.map(|run| run.changes.len()).sum()
}

fn say(json: bool, line: &str) -> io::Result<()> {
    match json {
        true => {
            note(line);
            Ok(())
        }
        false => print_line(line),
    }
}

async fn review(runs: &[WaitingRun], root: &Path, json: bool) -> anyhow::Result<()> {
    let screen = || match json {
        true => Screen::json(Box::new(io::stdout())),
        false => Screen::lively(),
    };
    let mut first = Some(screen());
    let is_live = first.as_ref().is_some_and(Screen::is_live);
    let mut inputs = Inputs::of(match is_live {
        true => InputSource::Keys,
        false => InputSource::Lines,
    });
    for run in runs {
        let only = RestorePolicy::Only(run.id.clone());
        let services = services(&ConfigurationArgs::default(), Handle::current(), only)?;
        let editor = HeadlessEditor::start(services, root).await?;
        let followed = editor.follow(RunReply {
            run: run.id.clone(),
            trajectory: run.path.clone(),
        })?;
        let screen = first.take().unwrap_or_else(screen);
        let reviewed = Viewer::review(&editor, screen, followed, run, root, &mut inputs).await?;
        editor.shutdown().await?;
        if reviewed == Reviewed::Stopped {
            return Ok(());
        }
    }
    Ok(())
}

/// Maximum time for a server to offer a run again.
pub const OFFERED_WITHIN: Duration = Duration::from_secs(30);

/// A completed run under review.
pub struct EndedRun {
    root: PathBuf,
    reviews: Vec<WaitingReview>,
    started: Option<std::time::SystemTime>,
    /// Reviews to show once the server has sent all earlier events.
    held: VecDeque<Review>,
    /// The sequence number of the last earlier event.
    last: u64,
    /// Proposals with an answer that is not carried out yet.
    open: BTreeSet<ProposalId>,
    skipped: BTreeSet<ProposalId>,
}

impl EndedRun {
    pub fn new(run: &WaitingRun, root: &Path) -> EndedRun {
        let mut events = run.records.iter().filter(|record| match &record.record {
            // The server does not send the end of a restored run.
            Record::Event(event) => event.is_told() && !matches!(event, Event::RunFinished { .. }),
            Record::Exchange(_) => false,
        });
        EndedRun {
            root: root.to_owned(),
            reviews: run.reviews.clone(),
            started: starling_history::started(&run.id),
            held: held(run),
            last: events.next_back().map_or(0, |record| record.seq),
            open: BTreeSet::new(),
            skipped: BTreeSet::new(),
        }
    }

    /// Formats the first line of a review.
    pub fn head(run: &WaitingRun) -> Vec<Line> {
        let when = starling_history::started(&run.id)
            .map_or(String::new(), |at| format!(" · {}", moment(at)));
        let task = run.task.trim().lines().next().unwrap_or_default();
        let what = words::count(run.reviews.len() as u64, "proposal");
        vec![
            Line::of(Style::Bold, &format!("run {}", run.id.0))
                .with(Style::Dim, &when)
                .and(&format!(" · {} · {what} to review", harmless(task))),
        ]
    }

    /// Returns the state of the run at its end.
    pub fn state(run: &WaitingRun) -> RunState {
        let mut state = RunState::default();
        for record in &run.records {
            match &record.record {
                Record::Event(Event::RunFinished { .. }) | Record::Exchange(_) => {}
                Record::Event(event) => state.take(record.at_ms, event),
            }
        }
        state.reviews.clear();
        state.agents.clear();
        state.agents_are_gone = true;
        state
    }

    /// Whether an event asks for the review of a waiting proposal.
    pub fn asks(&self, params: &EventParams) -> bool {
        match &params.event {
            Event::ReviewAsked { proposal, .. } => {
                self.reviews.iter().any(|review| review.lead == *proposal)
            }
            _ => false,
        }
    }

    /// Whether an event happened before the run ended. The last such event starts the questions.
    pub fn is_earlier(&mut self, params: &EventParams, state: &mut RunState) -> bool {
        if params.seq <= self.last {
            if params.seq == self.last {
                state.reviews = std::mem::take(&mut self.held);
            }
            return true;
        }
        if let Event::ReviewAsked { proposal, .. }
        | Event::ProposalApplied { proposal, .. }
        | Event::ProposalReviewed {
            proposal,
            verdict: Verdict::Reject { .. },
            ..
        } = &params.event
        {
            let lead = self.lead_of(*proposal);
            self.open.remove(&lead);
        }
        false
    }

    fn lead_of(&self, proposal: ProposalId) -> ProposalId {
        let has =
            |review: &&WaitingReview| review.parts.iter().any(|part| part.proposal == proposal);
        let review = self.reviews.iter().find(has);
        review.map_or(proposal, |review| review.lead)
    }

    pub fn answered(&mut self, lead: ProposalId) {
        self.open.insert(lead);
    }

    pub fn skipped(&mut self, review: &Review) {
        if let Review::Proposal { id, .. } = review {
            self.skipped.insert(*id);
        }
    }

    /// Whether every proposal was answered or skipped, and at least one was skipped. If none was
    /// skipped, the run ends without this check. An accepted proposal that needs a skipped one is
    /// not waited for: it stays with it.
    pub fn is_through(&self, state: &RunState) -> bool {
        let needs = |id: ProposalId| {
            let evidence = state.proposal(id).and_then(|made| made.evidence.as_ref());
            evidence.map_or(&[][..], |evidence| evidence.needs())
        };
        !self.skipped.is_empty()
            && self.held.is_empty()
            && state.reviews.is_empty()
            && all_stay(&self.open, &self.skipped, needs)
    }

    /// Updates a proposal's diff against the current text.
    pub fn renew(&self, lead: ProposalId, state: &mut RunState) {
        let Some(review) = self.reviews.iter().find(|review| review.lead == lead) else {
            return;
        };
        let disk = DiskEditor::new(&self.root);
        let mut texts: BTreeMap<&str, (Option<String>, String)> = BTreeMap::new();
        let mut deleted: BTreeSet<&str> = BTreeSet::new();
        let (mut older, mut notes) = (BTreeSet::new(), Vec::new());
        let mut diffs = String::new();
        for part in &review.parts {
            let file = part.file.as_str();
            let now = disk.read_as_shown(&part.file, &part.base);
            let lost = now.as_ref().err().and_then(|error| part.lost(error));
            if let (Some(why), false) = (lost, texts.contains_key(file)) {
                notes.push(format!("conflict: {why}"));
                diffs += &part.diff();
                continue;
            }
            let (now, text) = texts.entry(file).or_insert_with(|| {
                let now = now.ok();
                let text = now.clone().unwrap_or_default();
                (now, text)
            });
            match over(part, text) {
                Ok(next) => {
                    // The base of a part is the text either without or with the other parts of the
                    // set.
                    let is_known = now.as_deref().unwrap_or_default() == &*part.base;
                    if !is_known && **text != *part.base {
                        older.insert(file);
                    }
                    *text = next;
                    if part.deleted {
                        deleted.insert(file);
                    }
                }
                Err(why) => {
                    notes.push(format!(
                        "conflict: {file}: {why}; it cannot be accepted as it is: reject or skip it"
                    ));
                    diffs += &part.diff();
                }
            }
        }
        for (file, (now, text)) in &texts {
            diffs += &match now {
                Some(now) if deleted.contains(file) => deleted_file_diff(file, now),
                Some(now) => unified_diff(file, now, text),
                None => new_file_diff(file, text),
            };
        }
        if diffs.is_empty() && notes.is_empty() {
            notes.push("its text is already there: accepting it changes nothing".to_owned());
        }
        let at = self
            .started
            .map(|started| started + Duration::from_millis(review.at_ms));
        let at = at.map_or_else(|| "then".to_owned(), moment);
        if !older.is_empty() {
            let files: Vec<String> = older.iter().map(ToString::to_string).collect();
            notes.insert(
                0,
                format!(
                    "checked at {at}, against an older text of {}",
                    words::few(&files)
                ),
            );
        }
        state.renew(lead, diffs, notes);
    }
}

fn over(part: &FileChange, text: &str) -> Result<String, String> {
    let changes = part
        .over(text)
        .map_err(|conflict| conflict.in_lines(&part.base))?;
    changes.apply(text).map_err(|error| error.to_string())
}

fn held(run: &WaitingRun) -> VecDeque<Review> {
    let symbol = |review: &WaitingReview| {
        let lead = review
            .parts
            .iter()
            .find(|part| part.proposal == review.lead);
        lead.map(|part| part.symbol.clone())
    };
    let held = |review: &WaitingReview| {
        Some(Review::Proposal {
            id: review.lead,
            symbol: symbol(review)?,
        })
    };
    run.reviews.iter().filter_map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_swarm::ActorId;
    use starling_syntax::FilePath;
    use starling_text::ChangeSet;

    #[test]
    fn end_of_a_review_counts_answered_proposals_and_applied_changes() {
        let told = "2 of 3 proposals answered, 1 change applied; no test ran after it: run them";
        assert_eq!(ended(3, 1, 1), told);
        let told = "0 of 1 proposal answered, 0 changes applied";
        assert_eq!(ended(1, 1, 0), told);
    }

    #[test]
    fn proposal_that_needs_a_skipped_one_is_not_awaited() {
        let set = |ids: &[u32]| ids.iter().copied().map(ProposalId).collect::<BTreeSet<_>>();
        // The third needs the second, which needs the first.
        let needs = |id: ProposalId| match id.0 {
            2 => &[ProposalId(1)][..],
            3 => &[ProposalId(2)][..],
            _ => &[],
        };
        assert!(all_stay(&set(&[]), &set(&[1]), needs));
        assert!(all_stay(&set(&[2, 3]), &set(&[1]), needs));
        assert!(!all_stay(&set(&[1, 2]), &set(&[3]), needs));
        assert!(!all_stay(&set(&[2, 4]), &set(&[1]), needs));
    }

    /// Adds a line at the end of `base`.
    fn part(proposal: u32, base: &str, line: &str) -> FileChange {
        FileChange {
            proposal: ProposalId(proposal),
            symbol: "work.py::".parse().unwrap(),
            symbols: Vec::new(),
            reason: String::new(),
            file: FilePath::new("work.py"),
            base: base.into(),
            changes: ChangeSet::between(base, &format!("{line}\n{base}")),
            deleted: false,
        }
    }

    #[test]
    fn text_of_a_waiting_set_is_older_only_if_the_file_changed() {
        let notes = |on_disk: &str, parts: Vec<FileChange>| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("work.py"), on_disk).unwrap();
            let lead = ProposalId(1);
            let review = WaitingReview {
                lead,
                parts,
                at_ms: 0,
            };
            let ended = EndedRun {
                root: dir.path().to_owned(),
                reviews: vec![review],
                started: None,
                held: VecDeque::new(),
                last: 0,
                open: BTreeSet::new(),
                skipped: BTreeSet::new(),
            };
            let mut state = RunState::default();
            let made = Event::ProposalMade {
                proposal: lead,
                agent: ActorId::Agent("work.py::".parse().unwrap()),
                symbols: Vec::new(),
                reason: String::new(),
                diff: String::new(),
                revises: None,
            };
            state.take(0, &made);
            ended.renew(lead, &mut state);
            state.proposal(lead).unwrap().notes.clone()
        };
        let base = "a = 1\nb = 2\n";
        let parts = |second: &str| vec![part(1, base, "x = 1"), part(2, second, "y = 1")];
        assert_eq!(notes(base, parts("x = 1\na = 1\nb = 2\n")), [""; 0]);
        let beside = vec![part(1, base, "x = 1"), {
            let changes = ChangeSet::between(base, &format!("{base}z = 1\n"));
            let second = part(2, base, "");
            FileChange { changes, ..second }
        }];
        assert_eq!(notes(base, beside.clone()), [""; 0]);
        let typed = notes("a = 1\nb = 2\nc = 3\n", beside);
        assert_eq!(
            typed[0],
            "checked at then, against an older text of work.py"
        );
    }

    #[test]
    fn process_that_holds_a_lock_is_found_by_the_inode_of_the_file() {
        let locks = "1: POSIX  ADVISORY  READ 5 08:01:4711 128 128\n\
                     2: FLOCK  ADVISORY  WRITE 17 08:01:4711 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 18 08:01:4711 0 EOF\n";
        assert_eq!(holder_in(locks, 4711), Some(17));
        assert_eq!(holder_in(locks, 4712), None);
        assert_eq!(holder_in("3: FLOCK", 4711), None);
    }
}
