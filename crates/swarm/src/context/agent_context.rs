//! Gathers the source code that the first prompts of a run show, without calling a model.

use crate::context::prompt_parts::{self, Caps};
use crate::context::scout_context::{Candidate, CandidateOrigin, candidates};
use crate::excerpt::excerpt;
use crate::lookup::Lookup;
use crate::state::run_context::RunContext;
use crate::task::asked;
use starling_core::prompts::Excerpt;
use starling_core::{Role, Tokens};
use starling_index::is_test_file;
use starling_syntax::{FilePath, SymbolKind, SymbolPath};

/// Maximum number of tests among the shown candidates.
const TESTS: usize = 1;
/// Number of top candidates whose files' imports are shown.
const IMPORTERS: usize = 2;
/// Maximum size of the imports of one file.
const IMPORTS_MOST: Tokens = Tokens(160);
/// Last words of the line that replaces an omitted part of a source.
const CUT: &str = " not shown";
/// Minimum size that must be left for a further excerpt.
const LEAST: Tokens = Tokens(80);

/// The source code that the first prompts show, the most relevant first.
#[derive(Debug, Default)]
pub(crate) struct AgentContext {
    pub shown: Vec<Excerpt>,
    /// The imports of the files of the best candidates.
    pub imports: String,
}

/// Returns the sources of the best candidates and their callees. The first candidates are shown
/// whole if their size allows it.
pub(crate) fn material(run: &RunContext, role: Role) -> AgentContext {
    let profile = match role {
        Role::Scout => run.services.models.scout.profile(),
        Role::Agent | Role::Editor | Role::Proxy => run.services.models.agent.profile(),
    };
    let caps = Caps::of(profile);
    let lookup = run.lookup();
    let mut order = candidates(run, &lookup);
    // Test files are left out for a small model, which would mistake the failing test for the code
    // to change.
    order.retain(|one| !prompt_parts::is_small(profile) || !is_test_file(&one.symbol.file));
    let about_parameters = asked::speaks_of_parameters(&run.task.text);
    let mut material = AgentContext::default();
    let mut left = caps.candidates;
    let mut best = caps.best_count;
    let mut tests = TESTS;
    for Candidate {
        symbol,
        why,
        standing,
    } in order
    {
        let is_around = |shown: &Excerpt| encloses(&symbol, &shown.symbol);
        let is_whole =
            |shown: &Excerpt| !shown.source.contains(CUT) && is_inside(&symbol, &shown.symbol);
        let is_known = material
            .shown
            .iter()
            .any(|one| is_around(one) || is_whole(one));
        let is_test = is_test_file(&symbol.file);
        let is_best = best > 0 && !is_test && standing == CandidateOrigin::Itself;
        if is_known || left < LEAST || is_test && tests == 0 {
            continue;
        }
        tests -= usize::from(is_test);
        let most = room(&lookup, &symbol, is_best, caps).min(left);
        let Some(mut one) = shown(&lookup, &symbol, why, most) else {
            continue;
        };
        if is_best && about_parameters {
            one.uses = prompt_parts::callers(&lookup, &symbol, caps);
        }
        best -= usize::from(is_best);
        left = left.saturating_sub(Tokens::estimate(&one.source) + Tokens(20));
        material.shown.push(one);
    }
    if !prompt_parts::is_small(profile) {
        material.imports = imports_of_best(&lookup, &material.shown);
    }
    material
}

fn imports_of_best(lookup: &Lookup, shown: &[Excerpt]) -> String {
    let mut files: Vec<FilePath> = Vec::new();
    for one in shown {
        let file = one.symbol.parse::<SymbolPath>().map(|symbol| symbol.file);
        files.extend(
            file.ok()
                .filter(|file| !files.contains(file) && !is_test_file(file)),
        );
    }
    let imports = files
        .iter()
        .take(IMPORTERS)
        .map(|file| imports(lookup, file));
    let imports: Vec<String> = imports.filter(|text| !text.is_empty()).collect();
    imports.join("\n")
}

/// Returns the import statements at the top of a file, one per line, as far as they fit.
fn imports(lookup: &Lookup, file: &FilePath) -> String {
    let Ok(tree) = lookup.tree(file) else {
        return String::new();
    };
    let mut statements = Vec::new();
    let mut is_open = false;
    for line in tree.text().lines() {
        let begins = line.starts_with("import ") || line.starts_with("from ");
        let part = line.split('#').next().unwrap_or_default().trim();
        match (is_open, statements.last_mut()) {
            (true, Some(last)) => *last = format!("{last}{part}"),
            (false, _) | (true, None) if begins => statements.push(part.to_owned()),
            (_, None) | (false, Some(_)) => continue,
        }
        is_open = !part.contains(')') && (is_open || part.ends_with('('));
    }
    let mut shown = String::new();
    for statement in statements {
        if Tokens::estimate(&shown) + Tokens::estimate(&statement) > IMPORTS_MOST {
            break;
        }
        shown = format!("{shown}\n{statement}");
    }
    match shown.is_empty() {
        true => shown,
        false => format!("{file} has:{shown}"),
    }
}

/// Returns the size limit for a symbol. A class that does not fit gets a lower limit, because
/// single lines of a class are of little use.
fn room(lookup: &Lookup, symbol: &SymbolPath, is_best: bool, caps: Caps) -> Tokens {
    let most = if is_best { caps.best } else { caps.candidate };
    match lookup.symbol(symbol) {
        Ok(found) if found.symbol.kind == SymbolKind::Class => {
            let fits = Tokens::estimate(found.source()) <= most;
            if fits { most } else { caps.class }
        }
        Ok(_) | Err(_) => most,
    }
}

fn is_inside(symbol: &SymbolPath, shown: &str) -> bool {
    shown
        .parse::<SymbolPath>()
        .is_ok_and(|shown| shown.encloses(symbol))
}

/// Returns whether the shown symbol is `symbol` itself or a part of it.
fn encloses(symbol: &SymbolPath, shown: &str) -> bool {
    shown.parse().is_ok_and(|shown| symbol.encloses(&shown))
}

/// Returns the source of a symbol as an excerpt.
pub(crate) fn shown(
    lookup: &Lookup,
    path: &SymbolPath,
    why: String,
    most: Tokens,
) -> Option<Excerpt> {
    let found = lookup.symbol(path).ok()?;
    Some(Excerpt {
        symbol: path.to_string(),
        line: found.symbol.lines.0,
        why,
        source: excerpt(&found, lookup.focus(), most)
            .0
            .trim_end()
            .to_owned(),
        uses: Vec::new(),
    })
}
