//! Computes the features of each candidate (a file or symbol that a text may be about), as numbers
//! between about 0 and 1.

use super::around::is_apart;
use super::matches::Scores;
use super::named::Named;
use super::question::{Question, of};
use super::usage::usage;
use crate::facts::Field;
use starling_syntax::SymbolKind;

/// The features of one candidate by name, always in the same order.
pub(super) type Row = Vec<(&'static str, f32)>;

const SECTIONS: [&str; 6] = ["title×", "lead×", "prose×", "quote×", "block×", "error×"];

impl Question<'_> {
    pub(super) fn symbol_row(&self, id: u32) -> Row {
        let number = id as usize;
        let mut row = Row::new();
        push_scores(&mut row, &self.matches.symbols, number);
        row.extend([
            ("name covered", self.matches.name_covered[number]),
            ("name in title", self.matches.name_in_title[number]),
            ("title pairs", self.matches.title_pairs(id)),
            ("first", self.first[number]),
            ("comments", self.matches.comments[number]),
            ("strings", self.matches.strings[number]),
        ]);
        self.push_relative(&mut row, id);
        self.push_named(&mut row, id);
        row.extend([
            ("mentioned by named", self.near.mentioned_by_named.of(id)),
            ("mentions named", self.near.mentions_named.of(id)),
            ("mentioned by best", self.near.mentioned_by_best.of(id)),
            ("phrase", of(&self.phrases, id)),
            ("lent words", self.near.lent.0[number]),
            ("usage", usage(self.corpus, id)),
            (
                "imported",
                self.imported[self.corpus.symbol(id).file as usize],
            ),
            (
                "first of file",
                self.first_files[self.corpus.symbol(id).file as usize],
            ),
        ]);
        self.push_kind(&mut row, id);
        row
    }

    /// Adds features that compare a symbol with the other symbols of its file and of its outermost
    /// symbol.
    fn push_relative(&self, row: &mut Row, id: u32) {
        let corpus = self.corpus;
        let words = |id: u32| self.matches.symbols.whole[id as usize];
        let all = corpus.file_of(id).symbols.clone();
        let home = corpus.symbol(id).home;
        let own = words(id);
        let best =
            |ids: &mut dyn Iterator<Item = u32>| ids.map(words).fold(f32::MIN_POSITIVE, f32::max);
        let better = all.clone().filter(|other| words(*other) > own).count();
        let in_home = &mut all
            .clone()
            .filter(|other| corpus.symbol(*other).home == home);
        row.extend([
            ("words of home", self.matches.homes.whole[home as usize]),
            ("of best in home", own / best(in_home)),
            ("place in file", 1.0 / (1.0 + better as f32)),
        ]);
    }

    fn push_named(&self, row: &mut Row, id: u32) {
        let named = self.named(id);
        push_ways(row, &named);
        let (depth, _) = self.names.frames.get(&id).copied().unwrap_or_default();
        let file = self.names.files[&self.corpus.symbol(id).file];
        let parent = self.corpus.symbol(id).parent;
        let (owner, owner_is_base) = if parent == id {
            (Named::default(), 0.0)
        } else {
            (self.named(parent), of(&self.names.bases, parent))
        };
        // The words of a compound name may occur separately in the text.
        let said = named
            .strength()
            .max(0.5 * self.matches.name_covered[id as usize]);
        row.extend([
            ("dotted", of(&self.names.dotted, id)),
            ("inside", of(&self.names.inside, id)),
            ("frame", depth),
            ("last frame", flag(depth >= 1.0)),
            ("link", of(&self.names.links, id)),
            ("path", file.path),
            ("module", file.module),
            ("owner named", owner.strength()),
            ("owner in title", owner.title),
            ("owner and name", owner.strength() * said),
            ("base", of(&self.names.bases, id)),
            ("owner is base", owner_is_base),
            ("base and name", owner_is_base * said),
        ]);
    }

    fn push_kind(&self, row: &mut Row, id: u32) {
        let symbol = self.corpus.symbol(id);
        let name = self.corpus.base_name(id);
        let words = symbol.lengths.iter().sum::<u32>() as f32;
        let size = (1.0 + words).ln() / 8.0;
        let code = symbol.lengths[Field::Code as usize] as f32;
        row.extend([
            ("size", size),
            ("code", code / words.max(1.0)),
            ("class", flag(symbol.kind == SymbolKind::Class)),
            ("module body", flag(symbol.kind == SymbolKind::Module)),
            ("method", flag(symbol.kind == SymbolKind::Method)),
            (
                "nested",
                flag(symbol.kind == SymbolKind::Function && symbol.home != id),
            ),
            ("dunder", flag(name.starts_with("__"))),
            ("initialiser", flag(matches!(name, "__init__" | "__new__"))),
            (
                "private",
                flag(name.starts_with('_') && !name.starts_with("__")),
            ),
            ("test", flag(self.corpus.is_test(id))),
        ]);
    }

    pub(super) fn file_row(&self, number: u32) -> Row {
        let at = number as usize;
        let mut row = Row::new();
        push_scores(&mut row, &self.matches.files, at);
        let named = self.names.files[&number];
        row.extend([
            ("first", self.first_files[at]),
            ("path words in title", self.matches.path_title[at]),
            ("path words", self.matches.path[at]),
            ("path", named.path),
            ("module", named.module),
            ("directory", named.directory),
            ("frame", named.frame),
            ("last frame", named.frame_last),
            ("link", named.link),
            ("lent words", self.near.lent.1[at]),
            ("tests of it", self.tests_of[at]),
            ("neighbours", self.neighbours[at]),
            ("imported", self.imported[at]),
            ("first place", (self.first_places[at] as f32).ln() / 6.0),
        ]);
        self.push_of_symbols(&mut row, number);
        self.push_place(&mut row, number);
        row
    }

    /// Adds features of a file that come from its symbols.
    fn push_of_symbols(&self, row: &mut Row, number: u32) {
        let ids = self.corpus.files()[number as usize].symbols.clone();
        let top = |score: &dyn Fn(u32) -> f32| -> (f32, f32) {
            let mut scores: Vec<f32> = ids.clone().map(score).collect();
            scores.sort_unstable_by(|a, b| b.total_cmp(a));
            let next: f32 = scores.iter().skip(1).take(3).sum();
            (scores.first().copied().unwrap_or(0.0), next / 3.0)
        };
        let mut push = |name: &'static str, next_name: &'static str, score: &dyn Fn(u32) -> f32| {
            let (best, next) = top(score);
            row.extend([(name, best), (next_name, next)]);
        };
        push("best symbol", "next symbols", &|id| {
            self.matches.symbols.whole[id as usize]
        });
        push("best home", "next home", &|id| {
            self.matches.homes.whole[self.corpus.symbol(id).home as usize]
        });
        push("best title covered", "next title covered", &|id| {
            self.matches.symbols.title_covered[id as usize]
        });
        push("best title pairs", "next title pairs", &|id| {
            self.matches.title_pairs(id)
        });
        push("best name covered", "next name covered", &|id| {
            self.matches.name_covered[id as usize]
        });
        push("best evidence", "next evidence", &|id| {
            self.evidence(id).min(3.0) / 3.0
        });
        let near = &self.near;
        for (name, next_name, spread) in [
            (
                "mentions named",
                "next mentions named",
                &near.mentions_named,
            ),
            (
                "mentioned by best",
                "next mentioned by best",
                &near.mentioned_by_best,
            ),
            ("exercised", "next exercised", &near.exercised),
        ] {
            push(name, next_name, &|id| spread.of(id));
        }
        let mut all = Named::default();
        ids.clone().for_each(|id| all.add(&self.named(id)));
        push_ways(row, &all);
        for (name, scores) in [
            ("dotted", &self.names.dotted),
            ("inside", &self.names.inside),
            ("base", &self.names.bases),
            ("phrase", &self.phrases),
        ] {
            row.push((
                name,
                ids.clone().map(|id| of(scores, id)).fold(0.0, f32::max),
            ));
        }
    }

    fn push_place(&self, row: &mut Row, number: u32) {
        let file = &self.corpus.files()[number as usize];
        let ids = file.symbols.clone();
        let path = file.path.as_str();
        let words = ids
            .flat_map(|id| self.corpus.symbol(id).lengths)
            .sum::<u32>() as f32;
        let size = (1.0 + words).ln() / 10.0;
        let init = path.ends_with("__init__.py");
        row.extend([
            ("size", size),
            ("test", flag(file.is_test)),
            ("init", flag(init)),
            ("apart", flag(is_apart(path))),
            ("depth", path.matches('/').count().min(6) as f32 / 6.0),
        ]);
    }
}

fn flag(holds: bool) -> f32 {
    f32::from(u8::from(holds))
}

fn push_scores(row: &mut Row, scores: &Scores, document: usize) {
    row.extend(SECTIONS.into_iter().zip(scores.sections[document]));
    row.extend([
        ("words", scores.whole[document]),
        ("rare words", scores.rare[document]),
        ("title covered", scores.title_covered[document]),
    ]);
}

fn push_ways(row: &mut Row, named: &Named) {
    row.extend([
        ("named in title", named.title),
        ("named in quotes", named.quote),
        ("named in prose", named.prose),
    ]);
}
