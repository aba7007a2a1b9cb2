//! `starling index`: indexes a project and reports its size.

use std::time::Instant;

use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;

use super::super::Outcome;
use super::super::view::text::Line;
use super::args::IndexArgs;
use super::output::{print_json, print_lines};
use super::{CacheUse, open};
use starling_index::Index;

/// The JSON output of `starling index`.
#[derive(Debug, Serialize)]
struct IndexOutput {
    files: usize,
    symbols: u64,
    references: u64,
    bytes: u64,
    seconds: f64,
    peak_rss_bytes: Option<u64>,
    from_cache: bool,
    /// Text files that are not in the index, with the reasons.
    skipped: Vec<String>,
}

/// Extensions of files with code that the index treats as plain text.
const WITHOUT_SYMBOLS: [(&str, &str); 3] = [
    ("ipynb", "a notebook: read as plain text, without symbols"),
    ("pyx", "Cython: read as plain text, without symbols"),
    ("pxd", "Cython: read as plain text, without symbols"),
];

/// Runs the command.
pub fn index(args: &IndexArgs) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let cache = match args.no_cache {
        true => CacheUse::LeftAlone,
        false => CacheUse::Used,
    };
    let index = open(&args.code, cache)?;
    let report = index.report();
    let answer = IndexOutput {
        files: report.files,
        symbols: report.symbols,
        references: report.references,
        bytes: report.bytes,
        seconds: began.elapsed().as_secs_f64(),
        peak_rss_bytes: peak_memory(),
        from_cache: report.from_cache,
        skipped: skipped(&index),
    };
    if args.code.json {
        return print_json(&answer);
    }
    let mut lines = vec![Line::plain(&in_words(&answer))];
    if args.skipped {
        lines.extend(answer.skipped.iter().map(|line| Line::plain(line)));
    }
    print_lines(&lines)
}

/// Returns one line for each file whose code is not in the index.
fn skipped(index: &Index) -> Vec<String> {
    let mut lines: Vec<String> = index.skipped().iter().map(ToString::to_string).collect();
    for file in index.snapshot().files() {
        let extension = file.name().rsplit_once('.').map(|(_, extension)| extension);
        let known = WITHOUT_SYMBOLS.iter();
        let found = known.clone().find(|(one, _)| Some(*one) == extension);
        lines.extend(found.map(|(_, reason)| format!("{file}: {reason}")));
    }
    lines.sort();
    lines
}

fn in_words(answer: &IndexOutput) -> String {
    let origin = if answer.from_cache {
        ", from the cache"
    } else {
        ""
    };
    let memory = answer
        .peak_rss_bytes
        .map(|bytes| format!(", {} of memory at most", HumanBytes(bytes)))
        .unwrap_or_default();
    let skipped = match answer.skipped.len() {
        0 => String::new(),
        1 => "; 1 file is not indexed (--skipped names it)".to_owned(),
        count => format!("; {count} files are not indexed (--skipped lists them)"),
    };
    let many = |number: u64, noun: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{} {noun}{plural}", HumanCount(number))
    };
    format!(
        "{}, {}, {}, {} in {:.2} s{origin}{memory}{skipped}",
        many(answer.files as u64, "file"),
        many(answer.symbols, "symbol"),
        many(answer.references, "reference"),
        HumanBytes(answer.bytes),
        answer.seconds,
    )
}

/// Returns the peak memory of this process in bytes, or `None` if the system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_summary_is_formatted_as_one_line() {
        let mut answer = IndexOutput {
            files: 1_200,
            symbols: 3,
            references: 4_000,
            bytes: 2048,
            seconds: 0.5,
            peak_rss_bytes: Some(1 << 20),
            from_cache: true,
            skipped: Vec::new(),
        };
        let figures = "1,200 files, 3 symbols, 4,000 references, 2.00 KiB in 0.50 s";
        let all = format!("{figures}, from the cache, 1.00 MiB of memory at most");
        assert_eq!(in_words(&answer), all);
        (answer.from_cache, answer.peak_rss_bytes) = (false, None);
        assert_eq!(in_words(&answer), figures);
        answer.files = 1;
        assert!(in_words(&answer).starts_with("1 file, 3 symbols, "));
        answer.files = 1_200;
        answer.skipped = vec![String::new()];
        let named = format!("{figures}; 1 file is not indexed (--skipped names it)");
        assert_eq!(in_words(&answer), named);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn peak_memory_is_read_on_linux() {
        assert!(peak_memory().unwrap() > 1 << 20);
    }
}
