//! The page of one instance: its outcome, the messages between agents, the run log, and the patch.

use std::fmt::Write;

use super::picture::picture;
use super::{STYLE, said};
use crate::cli::view::state::RunState;
use crate::cli::view::story;
use crate::cli::view::text::{Line, Style};
use crate::cli::view::words;
use starling_bench::Record;
use starling_swarm::{Event, Record as Logged, Stamped};

/// Legend of the lines in the picture.
const KEY: &str = "<p class=\"key dim\"><span><i class=\"accent\"></i>question</span>\
    <span><i class=\"warning\"></i>change request</span><span><i class=\"dashed\"></i>follow-up</span>\
    <span><i class=\"good\"></i>green ring: the symbol was changed</span></p>\n";

pub(super) fn of(record: &Record, trajectory: &str) -> String {
    let events = events(trajectory);
    let id = escaped(&record.instance_id);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{id}</title>\n<style>{STYLE}</style>\n\
         <p><a href=\"../../report.html\">all instances</a></p>\n<h1>{id}</h1>\n\
         <p>{outcome} · {spent} · {seconds:.1} s in all</p>\n",
        outcome = escaped(&said(record)),
        spent = escaped(&words::spent(
            &record.spent(),
            &words::cost(&record.spent())
        )),
        seconds = record.seconds,
    );
    if let Some(drawn) = picture(&events) {
        let _ = write!(
            page,
            "<h2>Who talked to whom</h2>\n<div class=\"wide\">{drawn}</div>\n{KEY}"
        );
    }
    if !events.is_empty() {
        let _ = write!(
            page,
            "<h2>Story</h2>\n<pre class=\"story\">{}</pre>\n",
            told(&events)
        );
    }
    if !record.patch().is_empty() {
        let lines: String = story::diff(record.patch())
            .map(|line| html(&line))
            .collect();
        let _ = write!(page, "<h2>The change</h2>\n<pre>{lines}</pre>\n");
    }
    page.push_str("</html>\n");
    page
}

/// Returns the events of a trajectory with their times in milliseconds. Unreadable lines are
/// skipped.
fn events(trajectory: &str) -> Vec<(u64, Event)> {
    let read = |line| match serde_json::from_str(line).ok()? {
        Stamped {
            at_ms,
            record: Logged::Event(event),
            ..
        } => Some((at_ms, event)),
        Stamped {
            record: Logged::Exchange(_),
            ..
        } => None,
    };
    trajectory.lines().filter_map(read).collect()
}

/// Returns the run log as the terminal shows it, in HTML.
fn told(events: &[(u64, Event)]) -> String {
    let mut state = RunState::default();
    let mut text = String::new();
    for (at_ms, event) in events {
        state.take(*at_ms, event);
        text.extend(story::tell(event, &state).iter().map(html));
    }
    text
}

fn html(line: &Line) -> String {
    let mut text = String::new();
    for (style, span) in line.spans() {
        let class = match style {
            Style::Plain => "",
            Style::Bold => "bold",
            Style::Dim => "dim",
            Style::Good => "good",
            Style::Bad => "bad",
            Style::Warning => "warning",
            Style::Accent => "accent",
        };
        let span = escaped(span);
        match class {
            "" => text.push_str(&span),
            class => text.push_str(&format!("<span class=\"{class}\">{span}</span>")),
        }
    }
    text.push('\n');
    text
}

/// Escapes text for HTML, because it comes from models and files.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}
