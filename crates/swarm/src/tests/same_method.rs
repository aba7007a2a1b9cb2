//! Methods that several classes define: their definitions, and the calls of the method on an object
//! of any of these classes, are changed together or not at all.

use starling_core::Approval;

use super::bed::*;
use crate::*;

const AI: &str = "\
from abc import ABC


class Brain(ABC):
    def choose_step(self, me, board):
        return me


class Nearest(Brain):
    pass


class Coward(Nearest):
    def choose_step(self, me, board):
        return super().choose_step(me, board)
";
const BATTLE: &str = "\
class Battle:
    def __init__(self, brain):
        self.brain = brain

    def turn(self, unit):
        return self.brain.choose_step(unit, self)
";
const FILES: [(&str, &str); 2] = [("ai.py", AI), ("battle.py", BATTLE)];
const BRAIN: &str = "def choose_step(self, me, board, taken):\n    return me\n";
const COWARD: &str =
    "def choose_step(self, me, board, taken):\n    return super().choose_step(me, board, taken)\n";
/// An override that has the new parameter, but calls the base method without it.
const HALF: &str =
    "def choose_step(self, me, board, taken):\n    return super().choose_step(me, board)\n";
const TURN: &str = "def turn(self, unit):\n    return self.brain.choose_step(unit, self, set())\n";
const TASK: &str = "Brain.choose_step gets a new parameter: choose_step(me, board, taken).";

/// Returns the applied proposals, each with the other proposals of its set.
fn applied(events: &[Event]) -> Vec<(ProposalId, Dependencies)> {
    let change = |event: &Event| match event {
        Event::ProposalApplied {
            proposal, change, ..
        } => Some((*proposal, change.clone()?.dependencies)),
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

fn evidence(events: &[Event]) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::ProposalChecked { evidence, .. } => Some(evidence.to_string()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn end() -> Line {
    finish("no other way")
}

async fn brains(approval: Approval, coward: Line, turn: Line) -> (Bed, Vec<Event>) {
    let model = Scripted::native()
        .on("agent ai.py::Brain.choose_step", [whole(BRAIN), end()])
        .on("agent ai.py::Coward.choose_step", [coward, end()])
        .on("agent battle.py::Battle.turn", [turn, end()])
        .always("agent", finish("nothing"))
        .always("proxy", say("ACCEPT"));
    let mut bed = Bed::new(&FILES, model)
        .begin(&["ai.py::Brain.choose_step"])
        .tests(|_| vec![])
        .with(|task| {
            task.text = TASK.to_owned();
            task.approval = approval;
        });
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn changed_method_is_applied_together_with_its_overrides_and_the_calls_that_reach_them() {
    for approval in [Approval::Auto, Approval::Proxy] {
        let (bed, events) = brains(approval, whole(COWARD), whole(TURN)).await;
        let applied = applied(&events);
        assert_eq!(applied.len(), 3, "{events:#?}");
        for (id, dependencies) in &applied {
            let others = applied.iter().map(|(one, _)| *one).filter(|one| one != id);
            assert_eq!(dependencies.set, others.collect(), "{events:#?}");
        }
        assert!(bed.read("battle.py").contains("set()"));
    }
}

#[tokio::test(start_paused = true)]
async fn changed_method_is_refused_if_a_call_on_super_or_on_an_object_is_not_adapted() {
    for approval in [Approval::Auto, Approval::Proxy] {
        for (coward, turn, why) in [
            (
                HALF,
                whole(TURN),
                "ai.py::Brain.choose_step is called without `taken`, and needs it in \
                 ai.py::Coward.choose_step",
            ),
            (
                COWARD,
                finish("nothing"),
                "is called without `taken`, and needs it in battle.py::Battle.turn",
            ),
        ] {
            let (bed, events) = brains(approval, whole(coward), turn).await;
            assert_eq!(applied(&events), [], "{events:#?}");
            assert_eq!(FILES.map(|file| bed.read(file.0)), [AI, BATTLE]);
            let refused = malformed(&events).join("\n");
            assert!(refused.contains(why), "{refused}");
        }
    }
}

const UNITS: &str = "\
class Unit:
    def take_damage(self, amount):
        return amount


class ArmorMixin:
    def take_damage(self, amount):
        return super().take_damage(amount - 1)


class Warrior(ArmorMixin, Unit):
    pass


def strike(target):
    return target.take_damage(4)


def bless(target):
    return target.take_damage(0)
";

#[tokio::test(start_paused = true)]
async fn owner_of_a_caller_is_started_if_a_changed_method_with_a_mixin_override_breaks_the_call() {
    for follows in [true, false] {
        let bless = match follows {
            true => whole("def bless(target):\n    return target.take_damage(0, None)\n"),
            false => finish("nothing"),
        };
        let unit = whole("def take_damage(self, amount, by):\n    return amount\n");
        let armor = whole(
            "def take_damage(self, amount, by):\n    return super().take_damage(amount - 1, by)\n",
        );
        let strike = whole("def strike(target):\n    return target.take_damage(4, None)\n");
        let model = Scripted::native()
            .on("agent units.py::Unit.take_damage", [unit, end()])
            .on("agent units.py::ArmorMixin.take_damage", [armor, end()])
            .on("agent units.py::strike", [strike, end()])
            .on("agent units.py::bless", [bless, end()])
            .always("agent", finish("nothing"));
        let begin = [
            "units.py::Unit.take_damage",
            "units.py::ArmorMixin.take_damage",
            "units.py::strike",
        ];
        let mut bed = Bed::new(&[("units.py", UNITS)], model)
            .begin(&begin)
            .tests(|_| vec![])
            .with(|task| task.approval = Approval::Auto);
        let events = bed.run().await;
        let woken: Vec<String> = woken(&events).into_iter().map(|(to, _)| to).collect();
        assert!(woken.contains(&"units.py::bless".to_owned()), "{woken:?}");
        let expected = if follows { 4 } else { 0 };
        assert_eq!(applied(&events).len(), expected, "{events:#?}");
        let evidence = evidence(&events).join("\n");
        assert!(!evidence.contains("follow up: none"), "{evidence}");
    }
}

/// Runs the owner of a method, which proposes this source. Returns the evidence that the review
/// shows.
async fn evidence_of(files: &[(&str, &str)], symbol: &str, source: &str) -> String {
    let model = Scripted::native()
        .on(&format!("agent {symbol}"), [whole(source)])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(files, model)
        .begin(&[symbol])
        .with(|task| task.approval = Approval::Ask);
    bed.run().await;
    let seen = bed.approver.seen.lock().unwrap();
    seen[0].evidence.clone()
}

#[tokio::test(start_paused = true)]
async fn review_lists_calls_that_may_reach_a_changed_method() {
    let typed = "from ai import Brain\n\n\ndef turn(brain: Brain, unit):\n    return brain.choose_step(unit, None)\n";
    let files = [("ai.py", AI), ("battle.py", typed)];
    let renamed = "def choose_step(self, unit, board):\n    return unit\n";
    let told = evidence_of(&files, "ai.py::Coward.choose_step", renamed).await;
    let expected = "callers to follow up: no direct caller; may be called through \
                    `Brain.choose_step` at battle.py:5\n";
    assert!(told.contains(expected), "{told}");
    // If two unrelated classes define the method, the object may be of either class.
    let other = "class Pen:\n    def choose_step(self, a):\n        return a\n";
    let files = [("ai.py", AI), ("battle.py", BATTLE), ("pen.py", other)];
    let told = evidence_of(
        &files,
        "pen.py::Pen.choose_step",
        "def choose_step(self):\n    return 1\n",
    )
    .await;
    let expected = "callers to follow up: no direct caller; may be called on objects of unknown \
                    type at battle.py:6\n";
    assert!(told.contains(expected), "{told}");
}

const FEE: &str = "def fee(x):\n    return x\n";
const SHOP: &str = "from fees import fee\n\n\ndef total(x):\n    return fee(x)\n";

/// A person accepts the two proposals of a set separately: first the definition and then the
/// caller, or in reverse order.
#[tokio::test(start_paused = true)]
async fn undo_of_a_changed_definition_or_its_caller_warns_about_the_other_one() {
    let wait = || call("read", serde_json::json!({"symbols": ["fees.py::fee"]}));
    let wider = whole("def fee(x, rate):\n    return x * rate\n");
    let fits = whole("def total(x):\n    return fee(x, 2)\n");
    for (fee, total) in [
        (vec![wider.clone()], vec![wait(), wait(), fits.clone()]),
        (vec![wait(), wait(), wider], vec![fits]),
    ] {
        let mut model = Scripted::native()
            .on("agent fees.py::fee", fee)
            .on("agent shop.py::total", total)
            .always("agent", finish("nothing"));
        model.latency = std::time::Duration::from_secs(60);
        let mut bed = Bed::new(&[("fees.py", FEE), ("shop.py", SHOP)], model)
            .begin(&["fees.py::fee", "shop.py::total"])
            .with(|task| task.approval = Approval::Ask);
        let events = bed.run().await;
        assert_eq!(bed.approver.seen.lock().unwrap().len(), 2, "one by one");
        let applied = applied(&events);
        let [(first, _), (second, _)] = applied[..] else {
            panic!("{events:#?}");
        };
        let graph = DependencyGraph::of(applied);
        for (one, other) in [(first, second), (second, first)] {
            let warning = broken_in_words(&graph.broken_without(&[one].into()));
            let expected = format!("{other} belongs together with {one}");
            assert!(
                warning
                    .as_ref()
                    .is_some_and(|said| said.contains(&expected)),
                "{warning:?}"
            );
        }
    }
}

/// The new parameter has a default value. The caller that passes it needs the definition, but the
/// definition does not need the caller.
#[tokio::test(start_paused = true)]
async fn undo_warns_only_about_code_that_needs_the_undone_change() {
    let model = Scripted::native()
        .on(
            "agent fees.py::fee",
            [whole("def fee(x, rate=1):\n    return x * rate\n")],
        )
        .on(
            "agent shop.py::total",
            [
                call("read", serde_json::json!({"symbols": ["fees.py::fee"]})),
                call("read", serde_json::json!({"symbols": ["shop.py::total"]})),
                whole("def total(x):\n    return fee(x, rate=2)\n"),
            ],
        );
    let mut bed = Bed::new(&[("fees.py", FEE), ("shop.py", SHOP)], model)
        .begin(&["fees.py::fee", "shop.py::total"])
        .with(|task| task.approval = Approval::Auto);
    let events = bed.run().await;
    let applied = applied(&events);
    let [(fee, _), (total, _)] = applied[..] else {
        panic!("{events:#?}");
    };
    let graph = DependencyGraph::of(applied);
    let warning = |gone| broken_in_words(&graph.broken_without(&[gone].into()));
    let expected = format!("this may break the code that stays: {total} may need {fee}");
    assert_eq!(warning(fee), Some(expected));
    assert_eq!(warning(total), None);
}

#[tokio::test(start_paused = true)]
async fn first_prompt_lists_the_definitions_and_calls_of_a_method_of_several_classes() {
    let expected = "`choose_step` is defined as ai.py::Brain.choose_step, \
                    ai.py::Coward.choose_step; called at ai.py:15 in Coward.choose_step, \
                    battle.py:6 in Battle.turn\n";
    for task in [
        TASK,
        "Rename the method `choose_step` to `pick_step`.",
        "Rename Brain.choose_step to pick_step, and say why.",
        "Add an argument `taken` to `Brain.choose_step`.",
    ] {
        let model = Scripted::native().always("agent", finish("nothing"));
        let mut bed = Bed::new(&FILES, model)
            .begin(&["ai.py::Brain.choose_step"])
            .with(|one| one.text = task.to_owned());
        bed.run().await;
        let prompt = &bed.model.prompts("agent ai.py::Brain.choose_step")[0];
        assert!(prompt.contains(expected), "{task}: {prompt}");
    }
    let model = Scripted::native().always("agent", finish("nothing"));
    let mut bed = Bed::new(&FILES, model)
        .begin(&["ai.py::Brain.choose_step"])
        .with(|one| one.text = "Brain.choose_step is slow.".to_owned());
    bed.run().await;
    let prompt = &bed.model.prompts("agent ai.py::Brain.choose_step")[0];
    assert!(!prompt.contains("is defined as"), "{prompt}");
}
