//! The log file: when each span of the work began and ended, as a trace that browsers draw as a
//! flame chart. It contains only the fields of Starling's own spans: names and numbers, but no
//! prompt, reply, text of a file or message.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// The modules of Starling. Spans of other crates may contain anything.
const OWN: &str = "starling";

/// Returns whether a span or an event belongs in the log file.
pub fn is_traced(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with(OWN)
}

/// Writes spans in Chrome's trace event format, one event a line. The list is not closed at the end,
/// which the format allows, so the file is whole at any time.
pub struct Trace {
    began: Instant,
    state: Mutex<TraceState>,
}

/// The open trace file and its lanes.
struct TraceState {
    /// Empty after a failed write.
    file: Option<File>,
    lanes: Lanes,
}

/// Spans that overlap without being nested are drawn in different lanes. Each lane is a stack of open
/// spans; the innermost is last.
#[derive(Debug, Default)]
struct Lanes(Vec<Vec<u64>>);

impl Lanes {
    /// Adds a span above its parent, if nothing else is there, or else to the first free lane.
    fn open(&mut self, span: u64, parent: Option<(u64, usize)>) -> usize {
        let above = parent.filter(|(parent, lane)| self.0[*lane].last() == Some(parent));
        let lane = above.map(|(_, lane)| lane);
        let free = || self.0.iter().position(Vec::is_empty);
        let lane = lane.or_else(free).unwrap_or(self.0.len());
        if lane == self.0.len() {
            self.0.push(Vec::new());
        }
        self.0[lane].push(span);
        lane
    }

    /// Removes a span. Spans above it have been removed before, because a span outlives its children.
    fn close(&mut self, span: u64, lane: usize) {
        self.0[lane].retain(|open| *open != span);
    }
}

/// An open span: its lane, its start, and the fields that were recorded later.
struct OpenSpan {
    lane: usize,
    label: String,
    /// Fields that were recorded after the begin.
    later: Map<String, Value>,
}

impl Trace {
    /// Creates the file, or replaces it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path) -> io::Result<Trace> {
        let mut file = File::create(path)?;
        let process = std::process::id();
        let name = json!({
            "ph": "M", "name": "process_name", "pid": process,
            "args": {"name": concat!("starling ", env!("CARGO_PKG_VERSION"))},
        });
        file.write_all(format!("[\n{name},\n").as_bytes())?;
        Ok(Trace {
            began: Instant::now(),
            state: Mutex::new(TraceState {
                file: Some(file),
                lanes: Lanes::default(),
            }),
        })
    }

    fn write(&self, state: &mut TraceState, phase: &str, open: (&str, &str, usize), args: &Value) {
        let (kind, label, lane) = open;
        let micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let line = json!({
            "ph": phase, "ts": micros, "pid": std::process::id(), "tid": lane,
            "cat": kind, "name": label, "args": args,
        });
        let Some(file) = &mut state.file else {
            return;
        };
        if let Err(error) = file.write_all(format!("{line},\n").as_bytes()) {
            state.file = None;
            // A log message here would come back to this layer.
            let _ = writeln!(io::stderr(), "starling: cannot write the log file: {error}");
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Trace {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        let kind = span.name();
        let label = match &fields.first {
            Some(first) => format!("{kind} {first}"),
            None => kind.to_owned(),
        };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            let lane = extensions.get::<OpenSpan>()?.lane;
            Some((parent.id().into_u64(), lane))
        });
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = state.lanes.open(id.into_u64(), parent);
        let args = Value::Object(fields.values);
        self.write(&mut state, "B", (kind, &label, lane), &args);
        drop(state);
        span.extensions_mut().insert(OpenSpan {
            lane,
            label,
            later: Map::new(),
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let mut fields = SpanFields::default();
        values.record(&mut fields);
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            open.later.extend(fields.values);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else {
            return;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let args = Value::Object(open.later);
        self.write(
            &mut state,
            "E",
            (span.name(), &open.label, open.lane),
            &args,
        );
        state.lanes.close(id.into_u64(), open.lane);
    }
}

/// The fields of a span as JSON.
#[derive(Default)]
struct SpanFields {
    values: Map<String, Value>,
    /// The first value as text.
    first: Option<String>,
}

impl SpanFields {
    fn add(&mut self, field: &Field, value: Value) {
        self.first.get_or_insert_with(|| match &value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        });
        self.values.insert(field.name().to_owned(), value);
    }
}

impl Visit for SpanFields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use tracing::{info, info_span};
    use tracing_subscriber::filter::filter_fn;
    use tracing_subscriber::prelude::*;

    use super::*;

    /// Runs `work` and returns the trace that was written meanwhile.
    fn written(work: impl FnOnce()) -> Vec<Value> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.json");
        let layer = Trace::create(&path)
            .unwrap()
            .with_filter(filter_fn(is_traced));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, work);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.trim_end().trim_end_matches(',');
        serde_json::from_str(&format!("{text}]")).unwrap()
    }

    fn of(event: &Value) -> (&str, &str, u64) {
        let text = |key: &str| event[key].as_str().unwrap();
        (text("ph"), text("name"), event["tid"].as_u64().unwrap())
    }

    #[test]
    fn trace_spans_are_nested_with_their_fields() {
        let events = written(|| {
            let run = info_span!("run", id = "r1", tokens = tracing::field::Empty);
            run.in_scope(|| {
                let _turn = info_span!("turn", agent = "a.py::f", number = 2).entered();
            });
            run.record("tokens", 7);
        });
        let shape: Vec<_> = events[1..].iter().map(of).collect();
        assert_eq!(
            shape,
            [
                ("B", "run r1", 0),
                ("B", "turn a.py::f", 0),
                ("E", "turn a.py::f", 0),
                ("E", "run r1", 0),
            ]
        );
        assert_eq!(events[2]["args"], json!({"agent": "a.py::f", "number": 2}));
        assert_eq!(events[4]["args"], json!({"tokens": 7}));
        assert_eq!(events[2]["cat"], "turn");
        let times: Vec<_> = events[1..].iter().map(|one| one["ts"].as_u64()).collect();
        assert!(times.is_sorted() && times[0].is_some(), "{times:?}");
    }

    #[test]
    fn concurrent_spans_are_drawn_in_separate_lanes() {
        let events = written(|| {
            let run = info_span!("run");
            let first = info_span!(parent: &run, "turn", agent = "a");
            let second = info_span!(parent: &run, "turn", agent = "b");
            let call = info_span!(parent: &second, "call");
            drop((first, call, second));
            let _third = info_span!(parent: &run, "turn", agent = "c");
        });
        let begins = events[1..]
            .iter()
            .map(of)
            .filter(|(phase, ..)| *phase == "B");
        let lanes: Vec<_> = begins.map(|(_, name, lane)| (name, lane)).collect();
        assert_eq!(
            lanes,
            [
                ("run", 0),
                ("turn a", 0),
                ("turn b", 1),
                ("call", 1),
                ("turn c", 0)
            ]
        );
    }

    #[test]
    fn log_messages_and_spans_of_other_crates_are_not_traced() {
        let events = written(|| {
            let _other = info_span!(target: "h2::client", "connection", key = "secret").entered();
            info!(prompt = "secret", "a message");
            let _own = info_span!("own").entered();
        });
        let names: Vec<_> = events[1..].iter().map(|event| of(event).1).collect();
        assert_eq!(names, ["own", "own"]);
    }

    #[test]
    fn open_span_is_already_in_the_trace_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace.json");
        let subscriber = tracing_subscriber::registry().with(Trace::create(&path).unwrap());
        tracing::subscriber::with_default(subscriber, || {
            let open = info_span!("request", method = "initialize");
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("request initialize") && text.ends_with(",\n"));
            drop(open);
        });
    }
}
