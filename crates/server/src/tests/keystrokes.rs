//! Random typing sessions while agents write. After every step the server has the client's text,
//! nothing typed is lost or moved, and every accepted proposal is applied or reported. In one
//! session of four, the texts are not compared after every step.
//!
//! `STARLING_KEYSTROKES=200x5000` runs 200 sessions of 5,000 steps each.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::testing::*;
use starling_core::Editor;
use starling_rpc::{Connection, Incoming};
use starling_swarm::sending::{Failure, Purpose, send};
use starling_swarm::{Event, StopReason};
use starling_text::{ByteRange, ChangeSet, ContentHash, Encoding};

const SLOTS: usize = 12;

/// A random number generator with a fixed algorithm, so that a seed always gives the same session.
struct SeededRandom(u64);

impl SeededRandom {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.roll(of.len())]
    }
}

/// Texts that a person types. Agents never write them.
const TYPED: &[&str] = &[
    "α",
    "β",
    "γ",
    "🙂",
    "é",
    "𝔘",
    "\t",
    " ",
    "\n",
    "\r\n",
    "(",
    "ω = ψ",
    "🧵🙂\r\n\tλ",
    "\u{301}",
];

/// Returns the characters that only a person types.
fn own(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii()).collect()
}

/// Returns the LSP position of a byte offset, computed as a simple editor does.
fn position(text: &str, offset: usize, encoding: Encoding) -> Value {
    let (mut line, mut start) = (0, 0);
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < offset {
        let breaks = match bytes[at] {
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => 2,
            b'\r' | b'\n' => 1,
            _ => 0,
        };
        at += breaks.max(1);
        if breaks > 0 {
            (line, start) = (line + 1, at);
        }
    }
    let before = &text[start..offset];
    let column = match encoding {
        Encoding::Utf8 => before.len(),
        Encoding::Utf16 => before.encode_utf16().count(),
        Encoding::Utf32 => before.chars().count(),
    };
    json!({"line": line, "character": column})
}

/// Returns the byte offset of an LSP position: the inverse of [`position`].
fn offset(text: &str, wanted: &Value, encoding: Encoding) -> usize {
    let (line, column) = (&wanted["line"], wanted["character"].as_u64().unwrap());
    let lines = text.replace("\r\n", " \n").replace('\r', "\n");
    let before = lines
        .split_inclusive('\n')
        .take(usize::try_from(line.as_u64().unwrap()).unwrap());
    let start: usize = before.map(str::len).sum();
    let mut units = 0;
    for (at, c) in text[start..].char_indices() {
        if units == column {
            return start + at;
        }
        units += match encoding {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        } as u64;
    }
    text.len()
}

/// Returns whether an offset is neither inside of a character nor inside of a line break.
fn is_place(text: &str, at: usize) -> bool {
    text.is_char_boundary(at) && !(text[..at].ends_with('\r') && text[at..].starts_with('\n'))
}

/// The document as the client of the simulated person has it.
struct TypingClient {
    text: String,
    version: i32,
    encoding: Encoding,
    uri: Value,
    /// The undo stack: for each change, the inverse as a range and the text to restore there.
    undo: Vec<(ByteRange, String)>,
    applied: usize,
}

impl TypingClient {
    /// Replaces ranges that are ordered and disjoint. The last one is reported first, as editors
    /// do.
    fn change(&mut self, edits: &[(ByteRange, &str)]) -> Value {
        let mut told = Vec::new();
        for (range, insert) in edits.iter().rev() {
            let (start, end) = (range.start, range.end);
            told.push(json!({"text": insert, "range": {
                "start": position(&self.text, start, self.encoding),
                "end": position(&self.text, end, self.encoding),
            }}));
            let was = self.text[start..end].to_owned();
            let now = ByteRange::new(start, start + insert.len());
            self.undo.push((now, was));
            self.text.replace_range(start..end, insert);
        }
        self.changed(told)
    }

    fn changed(&mut self, told: Vec<Value>) -> Value {
        self.version += 1;
        json!({"textDocument": {"uri": self.uri, "version": self.version}, "contentChanges": told})
    }

    fn place(&self, random: &mut SeededRandom) -> usize {
        let mut at = random.roll(self.text.len() + 1);
        while !is_place(&self.text, at) {
            at += 1;
        }
        at
    }

    /// Makes a random step of the simulated person: typing, deleting, undo, formatting and so on.
    fn step(&mut self, random: &mut SeededRandom) -> Option<Value> {
        let at = self.place(random);
        let end = |typist: &TypingClient, random: &mut SeededRandom, most: usize| {
            let mut end = (at + random.roll(most)).min(typist.text.len());
            while !is_place(&typist.text, end) {
                end += 1;
            }
            end
        };
        match random.roll(13) {
            0..=5 => Some(self.change(&[(ByteRange::new(at, at), random.pick(TYPED))])),
            6 | 7 => {
                // Sometimes cuts a part, so that the text does not grow without limit.
                let most = 4 + self.text.len().saturating_sub(1_000) / 20;
                let range = ByteRange::new(at, end(self, random, most));
                Some(self.change(&[(range, "")]))
            }
            8 => {
                let range = ByteRange::new(at, end(self, random, 12));
                let paste = format!(
                    "{}{}{}",
                    random.pick(TYPED),
                    random.pick(TYPED),
                    random.pick(TYPED)
                );
                Some(self.change(&[(range, &paste)]))
            }
            9 => {
                // Types at two cursors.
                let (first, second) = (at, self.place(random));
                let (first, second) = (first.min(second), first.max(second));
                let typed = random.pick(TYPED);
                let at = |place| (ByteRange::new(place, place), typed);
                (first < second
                    && joins(&self.text, first, typed)
                    && joins(&self.text, second, typed))
                .then(|| self.change(&[at(first), at(second)]))
            }
            10 => {
                let (range, was) = self.undo.pop()?;
                let change = self.change(&[(range, &was)]);
                self.undo.pop();
                Some(change)
            }
            11 => {
                let line = format!("\r\nslot_{} = 0\r\n", random.roll(SLOTS));
                Some(self.change(&[(ByteRange::new(at, at), &line)]))
            }
            _ => {
                // A formatter sends the whole text.
                let text = format!("{}\n", self.text.trim_end());
                self.undo.clear();
                self.text.clone_from(&text);
                Some(self.changed(vec![json!({"text": text})]))
            }
        }
    }

    /// Applies an edit of the server if it is for the current version. Nothing that a person typed
    /// is lost.
    fn apply(&mut self, params: &Value) -> Result<Value, String> {
        let change = &params["edit"]["documentChanges"][0];
        if change["textDocument"]["version"] != self.version {
            return Err("another version".to_owned());
        }
        let before = own(&self.text);
        let edits: Vec<(ByteRange, String)> = change["edits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|edit| {
                let at = |end: &str| offset(&self.text, &edit["range"][end], self.encoding);
                let insert = edit["newText"].as_str().unwrap().to_owned();
                (ByteRange::new(at("start"), at("end")), insert)
            })
            .collect();
        let edits: Vec<(ByteRange, &str)> = edits
            .iter()
            .map(|(range, text)| (*range, text.as_str()))
            .collect();
        let told = self.change(&edits);
        assert_eq!(
            own(&self.text),
            before,
            "what was typed stays, and stays in order"
        );
        self.applied += 1;
        Ok(told)
    }
}

/// Returns whether typing at an offset leaves the line breaks around it unchanged.
fn joins(text: &str, at: usize, typed: &str) -> bool {
    !(text[..at].ends_with('\r') || typed.ends_with('\r') || text[at..].starts_with('\n'))
}

/// Returns the change by which an agent replaces the number in the line `slot_N = NUMBER`.
fn rewritten(text: &str, slot: usize, number: usize) -> Option<(ChangeSet, String)> {
    let name = format!("slot_{slot} = ");
    let start = text.find(&name)? + name.len();
    let length = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    let token = format!("{number:07}");
    let range = ByteRange::new(start, start + length);
    let changes = ChangeSet::replace(text.len(), range, token.clone())?;
    Some((changes, token))
}

/// Returns a starter whose runs, as each message asks, report the version and hash of the server's
/// text or change the number in a slot line.
fn agents() -> crate::RunStarter {
    scripted(async |mut scene: RunScript| {
        let mut number = 0;
        // Agents base their edits on older texts, because a model needs time while the person
        // types.
        let mut thought_over = Vec::new();
        while let Some((_, text)) = scene.steered.recv().await {
            let editor = Arc::clone(&scene.outside.editor);
            let log = scene.log.clone();
            match text.split_once(' ') {
                None => {
                    let current = editor.current(&file("a.py")).await.unwrap();
                    let version = current.version.map_or(0, |version| version.0);
                    let hash = ContentHash::of(&current.text);
                    log.event(said(&format!("{version} {hash:?}")));
                }
                Some((_, slot)) => {
                    number += 1;
                    let slot = slot.parse().unwrap();
                    thought_over.push(editor.current(&file("a.py")).await.unwrap().text);
                    let oldest = thought_over.len().saturating_sub(1 + number % 3);
                    let base = Arc::clone(&thought_over[oldest]);
                    thought_over.drain(..thought_over.len().saturating_sub(2));
                    tokio::spawn(async move {
                        log.event(said(&write(&editor, &base, slot, number).await));
                    });
                }
            }
        }
        scene.log.event(finished(StopReason::Settled));
    })
}

async fn write(editor: &Arc<dyn Editor>, base: &Arc<str>, slot: usize, number: usize) -> String {
    let Some((changes, token)) = rewritten(base, slot, number) else {
        return "gone".to_owned();
    };
    let label = format!("slot {slot}");
    let name = file("a.py");
    let sent = send(editor, &name, base, &changes, &label, Purpose::TakeBack);
    match sent.await {
        Ok(sent) => {
            assert!(sent.after.contains(&token), "an applied change is there");
            let (before, after) = (own(&sent.before), own(&sent.after));
            assert_eq!(before, after, "and nothing that was typed is gone");
            "applied".to_owned()
        }
        Err(Failure::Conflict { .. }) => "conflict".to_owned(),
        Err(Failure::Editor { why }) => format!("not sent: {why}"),
    }
}

/// Counts of the steps of a typing session and of the results of the server's edits.
#[derive(Debug, Default)]
struct EditCounts {
    steps: usize,
    /// Steps before which the server's text was compared with the client's.
    compared: usize,
    applied: usize,
    conflicts: usize,
    gone: usize,
    /// Edits that failed because the person typed during each attempt.
    late: usize,
}

/// A client in which a simulated person types while agents of the server edit the same document.
struct TypingSession {
    client: TestClient,
    connection: Connection,
    typist: Arc<Mutex<TypingClient>>,
    run: String,
    asked: usize,
    random: SeededRandom,
    hasty: bool,
    /// The newest document version for which the server's text was compared with the client's.
    seen: i32,
    counts: EditCounts,
}

impl TypingSession {
    async fn begin(seed: u64) -> TypingSession {
        let encodings = [Encoding::Utf16, Encoding::Utf8, Encoding::Utf32];
        let encoding = encodings[usize::try_from(seed % 3).unwrap()];
        let text: String = (0..SLOTS)
            .map(|slot| format!("slot_{slot} = 0\r\ndef f{slot}():\n\tpass\n"))
            .collect();
        let folder = folder(&[("a.py", &text)]);
        let services = services(agents(), &folder.path().join(".trajectories"));
        let client = TestClient::over(services, folder);
        let kind = match encoding {
            Encoding::Utf8 => "utf-8",
            Encoding::Utf16 => "utf-16",
            Encoding::Utf32 => "utf-32",
        };
        client
            .initialize(json!({
                "general": {"positionEncodings": [kind]},
                "workspace": {"workspaceEdit": {"documentChanges": true}},
                "experimental": {"starling": {}},
            }))
            .await;
        let typist = TypingClient {
            uri: client.uri(),
            text,
            version: 1,
            encoding,
            undo: Vec::new(),
            applied: 0,
        };
        let open = json!({"textDocument": {
            "uri": typist.uri, "languageId": "python", "version": 1, "text": typist.text,
        }});
        client.connection.notify("textDocument/didOpen", open);
        let run = super::begin(&client, "x").await;
        TypingSession {
            connection: client.connection.clone(),
            client,
            typist: Arc::new(Mutex::new(typist)),
            run,
            asked: 0,
            random: SeededRandom(seed + 1),
            hasty: seed % 4 == 3,
            seen: 1,
            counts: EditCounts::default(),
        }
    }

    /// Handles one message of the server. Returns the server's text if it is reported.
    async fn hear(&mut self) -> Option<String> {
        match self.client.next().await {
            Incoming::Request { id, method, params } => {
                assert_eq!(method, "workspace/applyEdit");
                if self.has_looked() && self.random.roll(3) == 0 {
                    // The person types before the client applies the edit.
                    self.type_on();
                }
                let made = self.typist.lock().unwrap().apply(&params);
                let applied = made.is_ok();
                if let Ok(told) = made {
                    self.connection.notify("textDocument/didChange", told);
                }
                self.connection.reply(id, Ok(json!({"applied": applied})));
                None
            }
            Incoming::Notification { method, params } if method == "starling/event" => {
                let event: Event = serde_json::from_value(params["event"].clone()).unwrap();
                let Event::Steered { text, .. } = event else {
                    panic!("not in the script: {event:?}");
                };
                match text.as_str() {
                    "applied" => self.counts.applied += 1,
                    "conflict" => self.counts.conflicts += 1,
                    "gone" => self.counts.gone += 1,
                    late if late.starts_with("not sent") => self.counts.late += 1,
                    _ => return Some(text),
                }
                self.asked -= 1;
                None
            }
            Incoming::Notification { .. } => None,
        }
    }

    fn steer(&self, text: &str) {
        let argument = json!({"run": self.run, "text": text});
        let params = json!({"command": "starling.steer", "arguments": [argument]});
        drop(self.connection.request("workspace/executeCommand", params));
    }

    /// Returns whether the server's text was compared since the client's last change.
    fn has_looked(&self) -> bool {
        self.seen == self.typist.lock().unwrap().version
    }

    /// Checks that the server has the client's text.
    async fn compare(&mut self) {
        self.steer("tell");
        let told = loop {
            if let Some(told) = self.hear().await {
                break told;
            }
        };
        // The server's edits may have changed the client's text after the request; the newest
        // version counts.
        let (version, hash) = {
            let typist = self.typist.lock().unwrap();
            (typist.version, ContentHash::of(&typist.text))
        };
        if told.starts_with(&format!("{version} ")) {
            assert_eq!(told, format!("{version} {hash:?}"));
            self.seen = version;
        } else {
            Box::pin(self.compare()).await;
        }
    }

    /// Makes one step of the simulated person, and sends the change to the server.
    fn type_on(&mut self) {
        self.counts.compared += usize::from(self.has_looked());
        self.counts.steps += 1;
        let change = self.typist.lock().unwrap().step(&mut self.random);
        if let Some(change) = change {
            self.connection.notify("textDocument/didChange", change);
        }
    }

    async fn step(&mut self) {
        if self.random.roll(6) == 0 {
            self.asked += 1;
            let slot = self.random.roll(SLOTS);
            self.steer(&format!("write {slot}"));
        }
        if self.random.roll(40) == 0 {
            let typist = self.typist.lock().unwrap();
            std::fs::write(self.client.folder.path().join("a.py"), &typist.text).unwrap();
            let saved = json!({"textDocument": {"uri": typist.uri}});
            self.connection.notify("textDocument/didSave", saved);
        }
        self.type_on();
        if !self.hasty || self.random.roll(5) == 0 {
            self.compare().await;
        }
        // Pauses typing until all pending edits have ended.
        if !self.hasty && self.random.roll(12) == 0 {
            self.wait().await;
        }
    }

    /// Waits until all requests are answered.
    async fn wait(&mut self) {
        while self.asked > 0 {
            self.hear().await;
            if !self.hasty && !self.has_looked() {
                self.compare().await;
            }
        }
    }

    async fn end(mut self) -> EditCounts {
        self.wait().await;
        self.compare().await;
        let typist = self.typist.lock().unwrap();
        assert_eq!(
            typist.applied, self.counts.applied,
            "each applied once, each reported"
        );
        drop(typist);
        self.counts
    }
}

fn size() -> (u64, usize) {
    let wanted = std::env::var("STARLING_KEYSTROKES").ok();
    let parsed = wanted.as_deref().and_then(|size| size.split_once('x'));
    parsed.map_or((12, 150), |(sessions, steps)| {
        (sessions.parse().unwrap(), steps.parse().unwrap())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_text_survives_agent_edits() {
    let (sessions, steps) = size();
    let (mut all, mut careful) = (EditCounts::default(), 0);
    for seed in 0..sessions {
        let mut session = TypingSession::begin(seed).await;
        let hasty = session.hasty;
        for _ in 0..steps {
            session.step().await;
        }
        let counts = session.end().await;
        if !hasty {
            // Each step is preceded by a comparison.
            assert_eq!(counts.compared, counts.steps, "looked at after every step");
            careful += counts.compared;
        }
        all.steps += counts.steps;
        all.compared += counts.compared;
        all.applied += counts.applied;
        all.conflicts += counts.conflicts;
        all.gone += counts.gone;
        all.late += counts.late;
    }
    println!("{all:?}, of these {careful} steps in sessions looked at after every step");
    assert!(all.applied > 0, "{all:?}");
    assert!(all.conflicts + all.gone > 0, "{all:?}");
}
