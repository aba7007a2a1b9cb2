//! The replies of simulated models: they follow the protocol, with deviations that the seed
//! chooses.

use serde_json::{Value, json};
use starling_core::{ChatRequest, Message, Role, ToolCall};

use super::models::{call, finish};
use super::project::{
    ProjectFunction, ProjectRule, UNDEFINED, WRONG, is_marked, own_source, version_in,
};
use super::world::World;

/// A model's reply.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub text: String,
    /// Names and arguments of tool calls.
    pub calls: Vec<(String, String)>,
    pub is_cut: bool,
    /// Whether this is a reply of the proxy user that clearly accepts the proposal.
    pub accepts: bool,
    /// The complete reply, if this is the rest of a truncated reply.
    pub whole: Option<Box<Reply>>,
}

fn says(text: impl Into<String>) -> Reply {
    Reply {
        text: text.into(),
        ..Reply::default()
    }
}

fn calls(calls: Vec<(String, String)>) -> Reply {
    Reply {
        calls,
        ..Reply::default()
    }
}

/// Paths whose texts no model may see.
const UNREADABLE: [&str; 4] = [".env::", "link.py::", "../outside.py::", ".git/config::"];
/// Paths that no agent may write without approval, each with the text of an attacker.
const UNWRITABLE: [(&str, &str); 8] = [
    (".git/config::", "[core]\n\tfsmonitor = touch owned\n"),
    (".git/hooks/post-checkout::", "#!/bin/sh\ntouch owned\n"),
    (".starling/config.toml::", "[language]\nservers = []\n"),
    (".github/workflows/ci.yml::", "on: push\n"),
    ("conftest.py::", "import os\n"),
    ("setup.py::", "import os\n"),
    ("Makefile::", "all:\n\ttouch owned\n"),
    ("../new.py::", "import os\n"),
];

/// Returns the reply of a model to a request.
pub fn reply(world: &World, role: Role, model: &str, request: &ChatRequest, key: &str) -> Reply {
    if let Some(rest) = rest_of_cut(world, request) {
        return rest;
    }
    let mut reply = match role {
        Role::Scout => scout(world, request, key),
        Role::Proxy => proxy(world, request, key),
        Role::Editor => editor(world, model, request, key),
        Role::Agent if request.conversation.starts_with("answer ") => answer(world, request, key),
        Role::Agent => agent(world, request, key),
    };
    let deviates = |what: &str, percent| world.choices.deviates(&format!("{key} {what}"), percent);
    if role != Role::Proxy && !reply.calls.is_empty() && deviates("is cut", 2) {
        cut(world, &request.conversation, &mut reply);
    }
    if deviates("says a lot", 1) {
        reply.text.push_str(&"many words ".repeat(2_000));
    }
    reply
}

/// Truncates the last call of a reply, and stores the rest for the continuation request.
fn cut(world: &World, conversation: &str, reply: &mut Reply) {
    let whole = reply.clone();
    let (_, arguments) = reply.calls.last_mut().expect("there are calls");
    let rest = arguments.split_off(arguments.len() / 2);
    reply.is_cut = true;
    let rest = Reply {
        text: rest,
        whole: Some(Box::new(whole)),
        ..Reply::default()
    };
    let mut cuts = world.cuts.lock().unwrap();
    cuts.insert(conversation.to_owned(), rest);
}

fn rest_of_cut(world: &World, request: &ChatRequest) -> Option<Reply> {
    let last = request.messages.last().map(Message::text)?;
    if !last.starts_with("Your call of the tool") {
        return None;
    }
    world.cuts.lock().unwrap().remove(&request.conversation)
}

fn scout(world: &World, request: &ChatRequest, key: &str) -> Reply {
    let choices = &world.choices;
    let deviates = |what: &str, percent| choices.deviates(&format!("{key} {what}"), percent);
    if deviates("says nothing useful", 3) {
        return says("I would look around first.");
    }
    if deviates("looks", 10) {
        return calls(vec![call("search", json!({"query": "version"}))]);
    }
    if deviates("looks at secrets", 4) {
        let symbol = *choices.pick(&format!("{key} secret"), &UNREADABLE);
        return calls(vec![call("read", json!({"symbols": [symbol]}))]);
    }
    let mut picks: Vec<Value> = Vec::new();
    for unit in &world.project.units {
        if choices.number(&format!("scout picks {}", unit.name), 3) == 0 {
            continue;
        }
        let mut pick = json!({"symbol": unit.path(), "why": "its version is old"});
        if deviates(&format!("drafts {}", unit.name), 30) {
            pick["hunks"] = json!([hunk(world, unit, request, unit.goal)]);
        }
        picks.push(pick);
    }
    if deviates("picks a new file", 6) {
        let source = "NEW = 1\n";
        picks.push(json!({"symbol": "fresh.py::", "why": "a new file", "source": source}));
    }
    if picks.is_empty() {
        let first = world.project.units[0].path();
        picks.push(json!({"symbol": first, "why": "the first"}));
    }
    calls(vec![call("wake", json!({ "symbols": picks }))])
}

/// Replies of the proxy user, each with whether it clearly accepts the proposal.
const VERDICTS: [(&str, bool); 6] = [
    (
        "REJECT: hides the symptom.\nAccept it only when g is mended too.",
        false,
    ),
    ("REJECT: wrong\nAccepted would be a smaller change.", false),
    ("I am not sure about that.", false),
    ("STEER: keep the name.\nAccept: not yet.", false),
    ("REJECT: it breaks callers", false),
    ("STEER: do it in the caller", false),
];

fn proxy(world: &World, request: &ChatRequest, key: &str) -> Reply {
    let refuses = world
        .choices
        .deviates(&format!("{key} does not accept"), 20);
    let has_tool = request.tools.iter().any(|tool| tool.name == "decide");
    let (text, accepts) = match refuses {
        true => *world.choices.pick(&format!("{key} verdict"), &VERDICTS),
        false => ("ACCEPT", true),
    };
    let mut reply = Reply {
        text: text.to_owned(),
        accepts,
        ..Reply::default()
    };
    if has_tool && world.choices.number(&format!("{key} calls"), 4) > 0 {
        // A reply whose text refuses while its tool call accepts is not a clear acceptance.
        let verdict = match (
            refuses,
            world.choices.number(&format!("{key} contradicts"), 3),
        ) {
            (true, 0) => "reject",
            (true, 1) => "steer",
            (true, _) | (false, _) => "accept",
        };
        let denies = |line: &str| line.starts_with("REJECT") || line.starts_with("STEER");
        reply.accepts = verdict == "accept" && !text.lines().any(denies);
        let reason = if refuses { "not like that" } else { "" };
        reply.calls = vec![call(
            "decide",
            json!({"verdict": verdict, "conditions": "", "objections": "", "reason": reason}),
        )];
    }
    reply
}

/// Returns a candidate (an alternative proposal) of another model: the wanted version, with a mark
/// that names the model.
fn editor(world: &World, model: &str, request: &ChatRequest, key: &str) -> Reply {
    let symbol = request
        .conversation
        .split(' ')
        .find(|word| word.contains("::"));
    let Some(unit) = symbol.and_then(|symbol| world.project.unit(symbol)) else {
        return says("I cannot.");
    };
    let version = match world.choices.deviates(&format!("{key} is wrong"), 20) {
        true => WRONG,
        false => unit.goal,
    };
    let (taken, passed) = arity(world, unit);
    let source = own_source(unit, version, taken, passed);
    let mark = format!("# ver:{} by:{}", unit.name, model.replace(' ', "-"));
    let source = source.replace(&format!("# ver:{}", unit.name), &mark);
    says(format!("```python\n{source}```"))
}

fn answer(world: &World, request: &ChatRequest, key: &str) -> Reply {
    let owner = request.conversation.split(' ').nth(1).unwrap_or_default();
    let deviates = |what: &str, percent| world.choices.deviates(&format!("{key} {what}"), percent);
    if !request.tools.is_empty() && deviates("asks back", 5) {
        let asker = request.conversation.split(' ').nth(3).unwrap_or_default();
        let symbol = asker.trim_end_matches(':');
        return calls(vec![ask(symbol)]);
    }
    let version = world
        .project
        .unit(owner)
        .and_then(|unit| version_in(&seen_line(request, &unit.name)?));
    match version {
        Some(version) => says(format!("its version is v={version}.")),
        None => says("It has no version."),
    }
}

fn ask(symbol: &str) -> (String, String) {
    call(
        "ask",
        json!({"symbol": symbol, "question": "Which version have you?"}),
    )
}

/// Returns the number of replies in a conversation, and the calls of the last one.
fn history(request: &ChatRequest) -> (usize, Vec<ToolCall>) {
    let replies = request.messages.iter().filter_map(|message| match message {
        Message::Assistant { tool_calls, .. } => Some(tool_calls.clone()),
        Message::System { .. } | Message::User { .. } | Message::Tool { .. } => None,
    });
    let replies: Vec<Vec<ToolCall>> = replies.collect();
    (replies.len(), replies.last().cloned().unwrap_or_default())
}

/// Returns the last line of a conversation that shows a symbol's version.
fn seen_line(request: &ChatRequest, name: &str) -> Option<String> {
    let texts = request.messages.iter().rev().map(Message::text);
    for text in texts {
        if let Some(line) = text.lines().rev().find(|line| is_marked(line, name)) {
            let at = line.find("v = ")?;
            return Some(line[at..].to_owned());
        }
    }
    None
}

fn hunk(world: &World, unit: &ProjectFunction, request: &ChatRequest, version: i64) -> Value {
    let line = seen_line(request, &unit.name).or_else(|| {
        let text = world.desk().text(&unit.file)?;
        let line = text.lines().find(|line| is_marked(line, &unit.name))?;
        Some(line.trim().to_owned())
    });
    // The model writes this line, so its tokens count as seen by a model.
    world
        .judge()
        .model_knows(line.as_deref().unwrap_or_default());
    let line = line.unwrap_or_else(|| format!("v = 1  # ver:{}", unit.name));
    let new = match version_in(&line) {
        Some(old) => line.replacen(&format!("v = {old}"), &format!("v = {version}"), 1),
        None => format!("v = {version}  # ver:{}", unit.name),
    };
    json!({"old": line, "new": new})
}

/// Returns how many arguments a symbol takes, and how many it should pass to the symbol that it
/// calls.
fn arity(world: &World, unit: &ProjectFunction) -> (usize, usize) {
    let texts = world.desk().texts(&world.project);
    let taken = world.project.taken(&unit.name, &texts).unwrap_or(1);
    let callee = unit.calls.as_ref();
    let passed = callee.and_then(|callee| world.project.taken(callee, &texts));
    (taken, passed.unwrap_or(1))
}

/// A turn of an agent, whose decisions are derived from `key`.
struct Turn<'a> {
    world: &'a World,
    request: &'a ChatRequest,
    key: &'a str,
}

impl Turn<'_> {
    fn deviates(&self, what: &str, percent: u64) -> bool {
        let key = format!("{} {what}", self.key);
        self.world.choices.deviates(&key, percent)
    }

    fn pick<'t, T>(&self, what: &str, of: &'t [T]) -> &'t T {
        self.world.choices.pick(&format!("{} {what}", self.key), of)
    }
}

fn agent(world: &World, request: &ChatRequest, key: &str) -> Reply {
    let turn = Turn {
        world,
        request,
        key,
    };
    let (replies, last) = history(request);
    let path = request.conversation.strip_prefix("agent ");
    if let Some((_, text)) = UNWRITABLE
        .iter()
        .find(|(path_of, _)| Some(*path_of) == path)
    {
        let change = json!({"reason": "as asked", "source": text});
        return calls(vec![call("propose", change)]);
    }
    if let Some(reply) = attack(&turn, &last) {
        return reply;
    }
    let unit = match path {
        Some(path) => world.project.unit(path).map(|unit| (unit, true)),
        None => world
            .project
            .units
            .get(replies / 2)
            .map(|unit| (unit, false)),
    };
    let Some((unit, is_own)) = unit else {
        return calls(vec![finish("nothing to do here")]);
    };
    // The decision applies to the whole conversation.
    let repeats = world
        .choices
        .deviates(&format!("{} repeats itself", request.conversation), 5);
    let same = call("run_tests", json!({"select": []}));
    match (repeats, replies) {
        (true, 0..=2) => return calls(vec![same]),
        (true, 3) => {
            let change = change(&turn, unit, is_own, unit.goal);
            return calls(vec![same, call("propose", change)]);
        }
        _ => {}
    }
    if let Some(reply) = look(&turn, unit) {
        return reply;
    }
    work(&turn, unit, is_own, replies)
}

/// Attempts something that an agent must not be able to do.
fn attack(turn: &Turn<'_>, last: &[ToolCall]) -> Option<Reply> {
    // A path that a refused proposal named may have become readable.
    if let Some(named) = last.iter().find_map(|call| {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        let symbol = arguments["symbol"].as_str()?.to_owned();
        (call.name == "propose" && UNREADABLE.contains(&symbol.as_str())).then_some(symbol)
    }) {
        return Some(calls(vec![call("read", json!({"symbols": [named]}))]));
    }
    if turn.deviates("peeks", 3) {
        let symbol = *turn.pick("secret", &UNREADABLE);
        let nonsense = json!([{"old": "no such text", "new": "x"}]);
        let change = json!({"reason": "needed", "symbol": symbol, "hunks": nonsense});
        return Some(calls(vec![call("propose", change)]));
    }
    if turn.deviates("reads secrets", 2) {
        let symbol = *turn.pick("secret", &UNREADABLE);
        return Some(calls(vec![call("read", json!({"symbols": [symbol]}))]));
    }
    if turn.deviates("asks for a forbidden change", 2) {
        let (symbol, _) = *turn.pick("target", &UNWRITABLE);
        let wanted = json!({"symbol": symbol, "reason": "it must run my program"});
        return Some(calls(vec![call("request_change", wanted)]));
    }
    if turn.deviates("makes a forbidden file", 2) {
        let (symbol, text) = *turn.pick("target", &UNWRITABLE);
        let change = json!({"reason": "needed", "symbol": symbol, "source": text});
        return Some(calls(vec![call("propose", change)]));
    }
    if turn.deviates("changes another's symbol", 2) {
        let units = &turn.world.project.units;
        let other = turn.pick("other", units);
        let hunk = hunk(turn.world, other, turn.request, 7);
        let change = json!({"reason": "why not", "symbol": other.path(), "hunks": [hunk]});
        return Some(calls(vec![call("propose", change)]));
    }
    if turn.deviates("is malformed", 3) {
        let broken = ["{\"reason\": ", "[]", "{\"symbols\": 7}", "null"];
        let arguments = (*turn.pick("broken", &broken)).to_owned();
        return Some(calls(vec![("propose".to_owned(), arguments)]));
    }
    turn.deviates("says nothing", 2).then(Reply::default)
}

fn look(turn: &Turn<'_>, unit: &ProjectFunction) -> Option<Reply> {
    let others = &turn.world.project.units;
    let other = turn.pick("other", others);
    if turn.deviates("asks", 12) {
        return Some(calls(vec![ask(&other.path())]));
    }
    if turn.deviates("reads", 8) {
        return Some(calls(vec![call(
            "read",
            json!({"symbols": [other.path()]}),
        )]));
    }
    if turn.deviates("requests", 8) {
        let wanted = json!({"symbol": other.path(), "reason": "its version must be the goal"});
        return Some(calls(vec![
            call("request_change", wanted),
            ask(&other.path()),
        ]));
    }
    if turn.deviates("intends", 5) {
        let meant = json!({"intent": "a newer version", "reason": "the task"});
        return Some(calls(vec![call("intent", meant)]));
    }
    if turn.deviates("runs tests", 5) {
        return Some(calls(vec![call("run_tests", json!({"select": []}))]));
    }
    turn.deviates("finishes early", 4)
        .then(|| calls(vec![finish(&format!("{} is as it should be", unit.name))]))
}

/// Proposes the change that the task needs, or a worse change.
fn work(turn: &Turn<'_>, unit: &ProjectFunction, is_own: bool, replies: usize) -> Reply {
    let texts = turn.world.desk().texts(&turn.world.project);
    let project = &turn.world.project;
    let version = project.version(&unit.name, &texts);
    let is_done = version.is_some_and(|version| version >= unit.goal && version != WRONG);
    let fits = unit.calls.as_ref().is_none_or(|callee| {
        let law = ProjectRule::Fits(unit.name.clone(), callee.clone());
        let fails = project.failures(&texts);
        !project.laws.contains(&law) || fails.iter().all(|(id, _)| !id.contains("_calls_"))
    });
    let ends_anyway = replies > 8;
    if ends_anyway || (is_done && fits && !turn.deviates("goes on", 15)) {
        return calls(vec![finish("done")]);
    }
    let mut changes = Vec::new();
    if turn.deviates("is wrong first", 10) {
        let mut wrong = change(turn, unit, is_own, WRONG);
        if turn.deviates("insists", 40) {
            wrong["insist"] = json!(true);
        }
        if turn.deviates("has more", 30) {
            wrong["more"] = json!(true);
        }
        changes.push(wrong);
        if turn.deviates("is right then", 40) {
            changes.push(change(turn, unit, is_own, unit.goal));
        }
    } else {
        let goal = match is_done {
            true => unit.goal + 1,
            false => unit.goal,
        };
        changes.push(change(turn, unit, is_own, goal));
    }
    let mut asked: Vec<_> = changes
        .into_iter()
        .map(|change| call("propose", change))
        .collect();
    if turn.deviates("finishes at once", 8) {
        asked.push(finish("done, I think"));
    }
    calls(asked)
}

/// Returns a proposal of a version, as a hunk or as the whole symbol.
fn change(turn: &Turn<'_>, unit: &ProjectFunction, is_own: bool, version: i64) -> Value {
    let (taken, passed) = arity(turn.world, unit);
    let mut change = json!({"reason": format!("version {version}")});
    if !is_own {
        change["symbol"] = json!(unit.path());
    }
    let widens = !unit.is_method() && turn.deviates("changes the contract", 6);
    let is_undefined = turn.deviates("uses an undefined name", 3);
    let texts = turn.world.desk().texts(&turn.world.project);
    let follows = unit
        .calls
        .as_ref()
        .is_some_and(|callee| turn.world.project.taken(callee, &texts) != Some(1) || passed != 1);
    if widens || is_undefined || follows || turn.deviates("writes it whole", 15) {
        let taken = taken + usize::from(widens);
        let mut source = own_source(unit, version, taken, passed);
        if is_undefined {
            source = source.replace("return ", &format!("{UNDEFINED}\n    return "));
        }
        change["source"] = json!(source);
        change["intended_losses"] = json!(true);
    } else {
        change["hunks"] = json!([hunk(turn.world, unit, turn.request, version)]);
    }
    change
}
