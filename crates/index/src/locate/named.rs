//! Finds code that the text names explicitly: definitions, owners, base classes, dotted names,
//! paths and stack frames.

use std::collections::HashMap;

use super::around::stem;
use super::corpus::Corpus;
use super::query::is_identifier;
use super::query::{CodeLocation, Mention, Query};
use super::sections::Section;
use starling_syntax::SymbolKind;

/// Strength of each way in which a text can name a symbol. The strength is lower if more
/// definitions share the name.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Named {
    /// Strength of a name in the title that looks like code (`max_length`, `f()`).
    pub(super) title: f32,
    /// Strength of a plain word in the title.
    pub(super) title_plain: f32,
    pub(super) quote: f32,
    /// Strength of a call in a code block.
    pub(super) called: f32,
    pub(super) block: f32,
    pub(super) error: f32,
    /// Strength of a name in prose that looks like code.
    pub(super) prose: f32,
    /// Strength of a plain word in prose.
    pub(super) plain: f32,
}

impl Named {
    fn of(mention: &Mention, rarity: f32) -> Self {
        let holds = |section, also: bool| {
            if mention.stands_in(section) && also {
                rarity
            } else {
                0.0
            }
        };
        let code = mention.looks_like_code;
        Named {
            title: holds(Section::Title, code),
            title_plain: holds(Section::Title, !code),
            quote: holds(Section::Quote, true),
            called: if mention.called && mention.stands_in(Section::Block) {
                rarity
            } else {
                0.0
            },
            block: holds(Section::Block, true),
            error: holds(Section::Error, true),
            prose: holds(Section::Prose, code).max(holds(Section::Lead, code)),
            plain: holds(Section::Prose, !code).max(holds(Section::Lead, !code)),
        }
    }

    pub(super) fn add(&mut self, other: &Named) {
        self.title = self.title.max(other.title);
        self.title_plain = self.title_plain.max(other.title_plain);
        self.quote = self.quote.max(other.quote);
        self.called = self.called.max(other.called);
        self.block = self.block.max(other.block);
        self.error = self.error.max(other.error);
        self.prose = self.prose.max(other.prose);
        self.plain = self.plain.max(other.plain);
    }

    /// Combines all ways into one strength.
    pub(super) fn strength(&self) -> f32 {
        let best = self
            .title
            .max(self.quote)
            .max(self.called)
            .max(self.prose * 0.8);
        best.max(self.block * 0.5)
            .max(self.error * 0.6)
            .max(self.title_plain * 0.4)
            .max(self.plain * 0.1)
    }
}

/// The symbols and files that the text names, by number, with the strength of the reference.
#[derive(Default)]
pub(super) struct NamedItems {
    pub(super) symbols: HashMap<u32, Named>,
    /// Scores of the base classes of classes that the text names.
    pub(super) bases: HashMap<u32, f32>,
    /// Symbols whose full name ends in a dotted name (`a.b`) that the text contains.
    pub(super) dotted: HashMap<u32, f32>,
    pub(super) inside: HashMap<u32, f32>,
    pub(super) frames: HashMap<u32, (f32, u32)>,
    pub(super) links: HashMap<u32, f32>,
    pub(super) files: HashMap<u32, NamedFile>,
}

/// How strongly the text names one file, separately for each way of naming it; 0 if it does not name
/// the file in this way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NamedFile {
    pub(super) path: f32,
    pub(super) module: f32,
    pub(super) module_part: f32,
    pub(super) stem_title: f32,
    pub(super) stem_code: f32,
    pub(super) stem_plain: f32,
    pub(super) directory: f32,
    pub(super) frame: f32,
    pub(super) frame_last: f32,
    pub(super) link: f32,
}

impl NamedFile {
    /// Returns whether a word of the text is the name of the file's module.
    pub(super) fn is_called(&self) -> bool {
        self.stem_title > 0.0 || self.stem_code > 0.0 || self.stem_plain > 0.0
    }
}

impl NamedItems {
    pub(super) fn new(corpus: Corpus<'_>, query: &Query) -> Self {
        let mut names = NamedItems::default();
        names.definitions(corpus, query);
        names.find_bases(corpus);
        names.find_dotted(corpus, query);
        names.find_places(corpus, query);
        names.find_files(corpus, query);
        names
    }

    fn definitions(&mut self, corpus: Corpus<'_>, query: &Query) {
        for (name, mention) in query
            .names
            .iter()
            .filter(|(name, mention)| can_name(name, mention) && !mention.own)
        {
            let all = corpus.defined(name);
            let code = all.iter().filter(|id| !corpus.is_test(**id)).count().max(1);
            let named = Named::of(mention, 1.0 / (code as f32).sqrt());
            for id in all {
                self.symbols.entry(*id).or_default().add(&named);
            }
        }
    }

    fn find_bases(&mut self, corpus: Corpus<'_>) {
        let is_class = |id: u32| corpus.symbol(id).kind == SymbolKind::Class && !corpus.is_test(id);
        let mut round: Vec<(u32, f32)> = self
            .symbols
            .iter()
            .filter(|(id, _)| is_class(**id))
            .map(|(id, named)| (*id, named.strength()))
            .filter(|(_, strength)| *strength > 0.05)
            .collect();
        for _ in 0..3 {
            let mut next = Vec::new();
            for (class, strength) in round {
                let own = corpus.base_name(class);
                let signature = corpus
                    .signature(class)
                    .split_once('(')
                    .map_or("", |(_, bases)| bases);
                for name in signature
                    .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .filter(|name| is_identifier(name))
                {
                    let bases: Vec<u32> = corpus
                        .defined(name)
                        .iter()
                        .copied()
                        .filter(|id| is_class(*id))
                        .collect();
                    if bases.len() > 4 {
                        continue;
                    }
                    for base in &bases {
                        if corpus.base_name(*base) == own {
                            continue;
                        }
                        let value = 0.8 * strength / (bases.len() as f32).sqrt();
                        let known = self.bases.entry(*base).or_default();
                        if value > *known {
                            *known = value;
                            next.push((*base, value));
                        }
                    }
                }
            }
            round = next;
        }
    }

    fn find_dotted(&mut self, corpus: Corpus<'_>, query: &Query) {
        for (dotted, _) in &query.dotted {
            let parts: Vec<&str> = dotted.split('.').collect();
            let Some((last, before)) = parts.split_last() else {
                continue;
            };
            for id in corpus.defined(last).iter().copied() {
                let module = &corpus.file_of(id).module;
                let whole = format!("{module}.{}", corpus.name(id));
                let whole: Vec<&str> = whole.split('.').collect();
                let tail = whole
                    .iter()
                    .rev()
                    .zip(parts.iter().rev())
                    .take_while(|(a, b)| a == b)
                    .count();
                let mut rest = whole[..whole.len() - 1].iter();
                let inside = before.iter().all(|part| rest.any(|other| other == part));
                if tail > 1 {
                    let known = self.dotted.entry(id).or_default();
                    *known = known.max((tail - 1).min(3) as f32 / 3.0);
                }
                if inside && !before.is_empty() {
                    let known = self.inside.entry(id).or_default();
                    *known = known.max(before.len().min(3) as f32 / 3.0);
                }
            }
        }
    }

    fn find_places(&mut self, corpus: Corpus<'_>, query: &Query) {
        let mut depth = 0;
        for place in query.frames.iter().rev() {
            let files = files_at(corpus, &place.path);
            if files.is_empty() {
                continue;
            }
            let value = 1.0 / (1.0 + depth as f32).sqrt();
            for file in files {
                let known = self.files.entry(file).or_default();
                known.frame = known.frame.max(value);
                known.frame_last = known.frame_last.max(if depth == 0 { 1.0 } else { 0.0 });
                for id in symbols_at(corpus, file, place) {
                    self.frames
                        .entry(id)
                        .or_insert((value, place.line.unwrap_or(0)));
                }
            }
            depth += 1;
        }
        for place in &query.links {
            for file in files_at(corpus, &place.path) {
                self.files.entry(file).or_default().link = 1.0;
                for id in symbols_at(corpus, file, place) {
                    self.links.insert(id, 1.0);
                }
            }
        }
    }

    fn find_files(&mut self, corpus: Corpus<'_>, query: &Query) {
        for path in &query.paths {
            let files = files_at(corpus, path);
            let value = 1.0 / (files.len().max(1) as f32).sqrt();
            for file in files {
                let known = self.files.entry(file).or_default();
                known.path = known.path.max(value);
            }
        }
        let mut names: Vec<(&String, &Mention)> = query.names.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let in_lower_case: HashMap<String, &Mention> = names
            .into_iter()
            .filter(|(name, mention)| name.len() > 2 && !mention.own)
            .map(|(name, mention)| (name.to_lowercase(), mention))
            .collect();
        let mut stems: HashMap<&str, u32> = HashMap::new();
        for file in corpus.files().iter().filter(|file| !file.is_test) {
            *stems.entry(stem(file)).or_default() += 1;
        }
        for (number, file) in corpus.files().iter().enumerate() {
            let mut named = self
                .files
                .get(&(number as u32))
                .copied()
                .unwrap_or_default();
            let module = &file.module;
            for (dotted, _) in &query.dotted {
                let below = dotted.strip_prefix(module.as_str());
                if module.contains('.')
                    && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                {
                    named.module = 1.0;
                }
                let part = module
                    .strip_suffix(dotted.as_str())
                    .is_some_and(|rest| rest.ends_with('.'));
                if part {
                    named.module_part = 1.0;
                }
            }
            let of_stem = stem(file);
            let shared = stems.get(of_stem).copied().unwrap_or(1).max(1) as f32;
            // Prose writes the name of a module in its own way: the CLI is in `cli.py`.
            let written = || in_lower_case.get(of_stem).copied();
            if let Some(mention) = mention_of(query, of_stem).or_else(written) {
                let value = 1.0 / shared.sqrt();
                named.stem_title = if mention.stands_in(Section::Title) {
                    value
                } else {
                    0.0
                };
                let code = mention.looks_like_code
                    || mention.stands_in(Section::Block)
                    || mention.stands_in(Section::Quote);
                named.stem_code = if code { value } else { 0.0 };
                named.stem_plain = if code { 0.0 } else { value };
            }
            let directories = file
                .path
                .directory()
                .split('/')
                .filter(|part| mention_of(query, part).is_some());
            named.directory = directories.count().min(3) as f32 / 3.0;
            self.files.insert(number as u32, named);
        }
    }
}

/// Returns whether a word can name a symbol. A word of one or two letters must look like code:
/// `Q()`, `models.F`, but not `A` or `is`.
fn can_name(name: &str, mention: &Mention) -> bool {
    name.len() > 2 || mention.looks_like_code
}

fn mention_of<'q>(query: &'q Query, word: &str) -> Option<&'q Mention> {
    let known = (word.len() > 2).then(|| query.names.get(word)).flatten();
    known.filter(|mention| !mention.own)
}

fn files_at(corpus: Corpus<'_>, path: &str) -> Vec<u32> {
    let mut found: Vec<(usize, u32)> = Vec::new();
    for (number, file) in corpus.files().iter().enumerate() {
        let shared = shared_end(file.path.as_str(), path);
        if shared > 0 {
            found.push((shared, number as u32));
        }
    }
    // Only files with the longest common suffix are kept. So a path in an installed package is
    // matched by its part below the package directory.
    let best = found.iter().map(|(shared, _)| *shared).max().unwrap_or(0);
    found
        .into_iter()
        .filter(|(shared, _)| *shared == best)
        .map(|(_, number)| number)
        .collect()
}

/// Returns the number of trailing parts that two paths share. Returns 0 unless one path is a suffix
/// of the other or they share at least two parts.
fn shared_end(file: &str, printed: &str) -> usize {
    let parts = |path| str::rsplit(path, ['/', '\\']).filter(|part: &&str| !part.is_empty());
    let (mut file, mut printed) = (parts(file).peekable(), parts(printed).peekable());
    let mut shared = 0;
    while file.peek().is_some() && file.peek() == printed.peek() {
        shared += 1;
        file.next();
        printed.next();
    }
    let whole = file.peek().is_none() || printed.peek().is_none();
    if whole || shared >= 2 { shared } else { 0 }
}

/// Returns the symbols of a file at a position that the text names by line or function.
fn symbols_at(corpus: Corpus<'_>, file: u32, place: &CodeLocation) -> Vec<u32> {
    let ids = corpus.files()[file as usize].symbols.clone();
    let holds = |id: &u32| {
        let lines = corpus.lines(*id);
        place
            .line
            .is_some_and(|line| lines.0 <= line && line <= lines.1)
    };
    match place.function.as_deref() {
        Some("<module>") => ids.take(1).collect(),
        Some(function) => {
            let same: Vec<u32> = ids.filter(|id| corpus.base_name(*id) == function).collect();
            let near: Vec<u32> = same.iter().copied().filter(holds).collect();
            if near.is_empty() { same } else { near }
        }
        None => ids.rev().find(holds).into_iter().collect(),
    }
}
