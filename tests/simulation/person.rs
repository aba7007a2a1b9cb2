//! The simulated person decides about proposals, types, saves, closes, steers, undoes and cancels.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use starling_core::{Approver, EditedPart, IntentView, ProposalView, ReviewAnswer, Verdict};
use starling_swarm::RunHandle;

use super::project::{BROKEN_SYNTAX, is_marked, version_in};
use super::world::World;

/// A person who reviews intents and proposals.
pub struct SimulatedPerson {
    pub world: Arc<World>,
}

impl SimulatedPerson {
    fn verdict(&self, key: &str) -> Verdict {
        let choices = &self.world.choices;
        if choices.deviates(&format!("{key} is rejected"), 12) {
            let reason = "not like that".to_owned();
            return Verdict::Reject { reason };
        }
        if choices.deviates(&format!("{key} is steered"), 8) {
            let text = "keep it small".to_owned();
            return Verdict::Steer { text };
        }
        Verdict::Accept
    }
}

#[async_trait]
impl Approver for SimulatedPerson {
    async fn intent(&self, view: IntentView) -> Verdict {
        let key = self
            .world
            .next_key(&format!("person intent {}", view.symbol));
        self.world
            .wait(&key, self.world.plan.latencies.person)
            .await;
        self.verdict(&key)
    }

    async fn proposal(&self, view: ProposalView) -> ReviewAnswer {
        let key = self
            .world
            .next_key(&format!("person review {}", view.symbol));
        self.world
            .wait(&key, self.world.plan.latencies.person)
            .await;
        if self.world.choices.deviates(&format!("{key} is edited"), 8)
            && let Some(part) = self.own_version(&view, &key)
        {
            return ReviewAnswer::Edited(vec![part]);
        }
        self.verdict(&key).into()
    }
}

impl SimulatedPerson {
    /// Returns another version of the proposed text, or `None`.
    fn own_version(&self, view: &ProposalView, key: &str) -> Option<EditedPart> {
        let world = &self.world;
        let unit = world.project.unit(&view.symbol.to_string())?;
        let before = world.desk().text(&unit.file)?;
        // The agents are shown the person's edit, so from now on a model may know the text.
        world.judge().model_knows(&before);
        let version = 1 + world.choices.number(&format!("{key} version"), 4);
        let lines = before
            .split_inclusive('\n')
            .map(|line| match version_in(line) {
                Some(old) if is_marked(line, &unit.name) => {
                    line.replacen(&format!("v = {old}"), &format!("v = {version}"), 1)
                }
                Some(_) | None => line.to_owned(),
            });
        Some(EditedPart {
            proposal: view.id,
            text: lines.collect::<String>().into(),
            before: before.into(),
        })
    }
}

/// Performs the person's own actions, one after the other.
pub async fn live(world: Arc<World>, handle: RunHandle) {
    let steps = world.choices.number("person steps", 8);
    let pace = *world.choices.pick("person pace", &[200, 4_000, 60_000]);
    for step in 0..steps {
        let key = format!("person step {step}");
        world.wait(&format!("{key} pause"), pace).await;
        if world.choices.deviates(&key, 60) {
            act(&world, &handle, &key).await;
        }
    }
}

async fn act(world: &Arc<World>, handle: &RunHandle, key: &str) {
    let choices = &world.choices;
    let units = &world.project.units;
    let unit = choices.pick(&format!("{key} unit"), units);
    let file = unit.file.clone();
    match choices.number(&format!("{key} kind"), 100) {
        0..=29 => comment_on_line(world, &file, &unit.name),
        30..=39 => add_comment(world, &file, &unit.name),
        40..=44 => type_look_alike(world, &file, &unit.name),
        45..=59 => change_version(world, &file, &unit.name, key),
        60..=62 => break_syntax(world, &file),
        63..=68 => {
            let now = world.now();
            let mut desk = world.desk();
            if let Some(text) = desk.open.remove(&file) {
                // The person closes the file with or without saving.
                if choices.number(&format!("{key} saves"), 2) == 0 {
                    desk.set(&file, &text);
                } else if desk.disk(&file).as_ref() != Some(&text) {
                    desk.typed.insert(file.clone(), now);
                }
            }
            drop(desk);
            texts_changed(world);
        }
        69..=76 => {
            let now = world.now();
            let mut desk = world.desk();
            if let Some(text) = desk.disk(&file) {
                // The person opens the file or reloads it from disk, which changes the text as
                // typing does.
                if desk.text(&file).as_ref() != Some(&text) {
                    desk.typed.insert(file.clone(), now);
                }
                desk.open.insert(file, text);
            }
            drop(desk);
            texts_changed(world);
        }
        77..=82 => {
            let mut desk = world.desk();
            if let Some(text) = desk.open.remove(&file) {
                desk.set(&file, &text);
                desk.open.insert(file, text);
            }
        }
        83..=88 => {
            let to = (choices.number(&format!("{key} to"), 2) == 0)
                .then(|| unit.path().parse().expect("a path of the project"));
            handle.steer(to, "please hurry".to_owned());
        }
        89..=94 => undo(world, handle).await,
        _ => {
            world.judge().cancelled();
            handle.cancel();
        }
    }
}

/// Undoes all applied changes.
pub async fn undo(world: &Arc<World>, handle: &RunHandle) {
    world.judge().undo_starts();
    let _ = handle.undo(None).await;
    world.judge().undo_ends();
}

/// Changes a text as the person would: the change counts as typed.
fn type_into(world: &World, file: &str, change: impl FnOnce(&str, &str) -> Option<String>) {
    let now = world.now();
    {
        let mut desk = world.desk();
        let Some(text) = desk.text(file) else { return };
        desk.tokens += 1;
        let token = format!("typed{}x", desk.tokens);
        let Some(changed) = change(&text, &token) else {
            return;
        };
        desk.set(file, &changed);
        desk.typed.insert(file.to_owned(), now);
    }
    texts_changed(world);
}

/// Reports the user's current texts to the judge.
fn texts_changed(world: &World) {
    let texts = world.desk().texts(&world.project);
    world.judge().user_changed_texts(texts);
}

fn comment_on_line(world: &World, file: &str, name: &str) {
    type_into(world, file, |text, token| {
        let lines = text.lines().map(|line| match is_marked(line, name) {
            true => format!("{line} {token}\n"),
            false => format!("{line}\n"),
        });
        Some(lines.collect())
    });
}

fn add_comment(world: &World, file: &str, name: &str) {
    type_into(world, file, |text, token| {
        let lines = text.lines().map(|line| match is_marked(line, name) {
            true => {
                let indent: String = line.chars().take_while(|c| *c == ' ').collect();
                format!("{line}\n{indent}# {token}\n")
            }
            false => format!("{line}\n"),
        });
        Some(lines.collect())
    });
}

/// Changes the line of a function, and types a copy of the function below it under another name.
/// The copy contains the original line.
fn type_look_alike(world: &World, file: &str, name: &str) {
    type_into(world, file, |text, token| {
        let lines: Vec<&str> = text.lines().collect();
        let marked = lines.iter().position(|line| is_marked(line, name))?;
        let head = *lines.get(marked.checked_sub(1)?)?;
        let (before, rest) = (head.split_once("def ")?.0, head.split_once('(')?.1);
        let body = &lines[marked..];
        let body = &body[..body
            .iter()
            .position(|line| line.is_empty())
            .unwrap_or(body.len())];
        let mut changed: Vec<String> = lines[..marked].iter().map(ToString::to_string).collect();
        changed.push(format!("{} {token}", body[0]));
        changed.extend(body[1..].iter().map(ToString::to_string));
        changed.extend(["".to_owned(), format!("{before}def alike_{token}({rest}")]);
        changed.extend(body.iter().map(ToString::to_string));
        changed.extend(lines[marked + body.len()..].iter().map(ToString::to_string));
        Some(changed.join("\n") + "\n")
    });
}

fn change_version(world: &World, file: &str, name: &str, key: &str) {
    let version = 1 + world.choices.number(&format!("{key} version"), 4);
    type_into(world, file, |text, token| {
        let lines = text.lines().map(|line| match version_in(line) {
            Some(old) if is_marked(line, name) => {
                let new = format!("v = {version}");
                let line = line.replacen(&format!("v = {old}"), &new, 1);
                format!("{line} {token}\n")
            }
            Some(_) | None => format!("{line}\n"),
        });
        Some(lines.collect())
    });
    world.judge().user_changed_behaviour();
}

fn break_syntax(world: &World, file: &str) {
    type_into(world, file, |text, token| {
        Some(format!("{text}{BROKEN_SYNTAX} # {token}\n"))
    });
    world.judge().user_changed_behaviour();
}

/// Time for which a run is watched after its end.
pub const AFTERMATH: Duration = Duration::from_secs(300);
