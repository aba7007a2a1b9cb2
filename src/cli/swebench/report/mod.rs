//! Static pages of a run over many instances: a table of all instances, and a page for each with
//! its run log.

mod page;
mod picture;

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::run::said;
use crate::cli::view::words;
use page::escaped;
use starling_bench::{
    Record, Report, Settings, earlier, file_name, instance_directory, records, settings,
};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("table.js");

/// Writes `report.html` and the page of each instance.
///
/// # Errors
/// Fails if a record cannot be read or a page cannot be written.
pub(super) fn write(out: &Path) -> anyhow::Result<()> {
    let records = records(out)?;
    for record in records.values() {
        let folder = instance_directory(out, &record.instance_id);
        let story = fs::read_to_string(folder.join("trajectory.jsonl")).unwrap_or_default();
        put(&folder.join("index.html"), &page::of(record, &story))?;
    }
    let settings = settings(out)?;
    let earlier = earlier(out)?;
    let sums = Report::of(records.values()).with_earlier(earlier.values());
    put(
        &out.join("report.html"),
        &table(&settings, &sums, records.values()),
    )
}

fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn table<'r>(
    settings: &Settings,
    sums: &Report,
    records: impl Iterator<Item = &'r Record>,
) -> String {
    let rows: String = records.map(row).collect();
    format!(
        r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Starling: {count} instances</title>
<style>{STYLE}</style>
<h1>{count} instances</h1>
<p>{said}</p>
<p>{settled} settled (their own tests hold) · {with_patch} with a change · {failed} failed · {calls} calls · {tokens} tokens · {dollars}</p>
<p><label>Show only <input id="filter" type="search" placeholder="words of a row"></label> <span id="shown" role="status"></span></p>
<div class="wide"><table id="instances">
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}</tbody>
</table></div>
<script>{SCRIPT}</script>
</html>
"#,
        count = sums.instances,
        said = escaped(&settings.to_string()),
        settled = sums.settled,
        with_patch = sums.with_patch,
        failed = sums.failed,
        calls = sums.calls,
        tokens = grouped(sums.prompt_tokens + sums.output_tokens),
        dollars = words::dollars(starling_core::Dollars(sums.dollars)),
        heads = HEADS.map(head).concat(),
    )
}

/// Formats a number with a comma between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

const HEADS: [&str; 7] = [
    "instance", "outcome", "symbols", "calls", "tokens", "dollars", "seconds",
];

/// Returns a table header that is a button, so that rows can be sorted by keyboard as well.
fn head(name: &str) -> String {
    format!("<th aria-sort=\"none\"><button type=\"button\">{name}</button></th>")
}

fn row(record: &Record) -> String {
    let spent = record.spent();
    let (class, mark) = match (record.is_settled(), record.patch().is_empty()) {
        (true, _) => ("good", "✓"),
        (false, false) => ("warning", "±"),
        (false, true) => ("bad", "✗"),
    };
    let id = escaped(&record.instance_id);
    let folder = escaped(&file_name(&record.instance_id));
    format!(
        "<tr><td><a href=\"instances/{folder}/index.html\">{id}</a></td><td class=\"{class}\">{mark} {outcome}</td>\
         <td>{symbols}</td><td>{calls}</td><td>{tokens}</td><td>{dollars:.4}</td><td>{seconds:.1}</td></tr>\n",
        outcome = escaped(&said(record)),
        symbols = record.applied().len(),
        calls = spent.calls,
        tokens = (spent.prompt_tokens + spent.output_tokens).0,
        dollars = spent.dollars.0,
        seconds = record.seconds,
    )
}

#[cfg(test)]
mod tests;
