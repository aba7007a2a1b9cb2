//! The resolver's state: what was looked up already, and how much work is left.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::class::Line;
use super::module::Module;
use super::source::{FileId, Source};
use super::value::{Def, ModuleId, SetId, Target, TupleId, Value, Values, Variable};
use crate::names::{ExprId, Imported, Names, OccurrenceId, Run};
use starling_syntax::FilePath;

/// Steps of evaluation in one question, so that no code can keep it busy for long.
const MOST_STEPS: u32 = 400_000;
/// How deep one value may lead to another.
const MOST_DEPTH: u32 = 60;

/// What an expression is evaluated for: the class that `self` is, if a method was reached by it.
pub(super) type Receiver = Option<Def>;

/// Answers questions about names over all files of a source. It remembers what it has seen, so it
/// belongs to one state of the workspace.
pub struct Resolver<'s, S: Source> {
    pub(super) source: &'s S,
    files: FxHashMap<FileId, Arc<Names>>,
    paths: FxHashMap<FileId, FilePath>,
    pub(super) modules: Vec<Module>,
    pub(super) module_ids: FxHashMap<String, ModuleId>,
    /// Where the dotted names of imports are found.
    pub(super) bases: FxHashMap<(FileId, OccurrenceId, Imported), Option<String>>,
    pub(super) lines: FxHashMap<Def, Option<Rc<Line>>>,
    pub(super) sets: Vec<Values>,
    pub(super) set_ids: FxHashMap<Values, SetId>,
    pub(super) tuples: Vec<Tuple>,
    pub(super) tuple_ids: FxHashMap<Tuple, TupleId>,
    /// Where variables lead when imports are followed.
    pub(super) followed: FxHashMap<Variable, Rc<[Target]>>,
    memo: FxHashMap<Key, Memo>,
    /// What is known in part, in the order in which it was found.
    partial: Vec<Key>,
    depth: u32,
    /// The shallowest evaluation that the present one has run into again.
    lowest: u32,
    steps: u32,
}

/// A tuple as it is written: its elements, and for which `self` they are evaluated.
pub(super) type Tuple = (FileId, Run, Receiver);

/// What is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Expr(FileId, ExprId, Receiver),
    Annotation(FileId, ExprId, Receiver),
    Variable(Variable, Receiver),
    Returns(Def, Receiver),
}

enum Memo {
    /// It is being evaluated, at this depth.
    Open(u32),
    Done(Values),
    /// Known as far as it can be while what is open at this depth is.
    Partial(Values, u32),
}

impl<'s, S: Source> Resolver<'s, S> {
    pub fn new(source: &'s S) -> Self {
        Resolver {
            source,
            files: FxHashMap::default(),
            paths: FxHashMap::default(),
            modules: Vec::new(),
            module_ids: FxHashMap::default(),
            bases: FxHashMap::default(),
            lines: FxHashMap::default(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            tuples: Vec::new(),
            tuple_ids: FxHashMap::default(),
            followed: FxHashMap::default(),
            memo: FxHashMap::default(),
            partial: Vec::new(),
            depth: 0,
            lowest: u32::MAX,
            steps: 0,
        }
    }

    /// The names of a file; of one that cannot be read: none.
    pub(super) fn names(&mut self, file: FileId) -> Arc<Names> {
        let source = self.source;
        let read = || source.names(file).unwrap_or_default();
        self.files.entry(file).or_insert_with(read).clone()
    }

    pub(super) fn path(&mut self, file: FileId) -> FilePath {
        let source = self.source;
        let path = self.paths.entry(file);
        path.or_insert_with(|| source.path(file)).clone()
    }

    /// A new question may take its steps.
    pub(super) fn start(&mut self) {
        self.steps = 0;
    }

    /// Whether the last question had to end before everything was looked at.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps >= MOST_STEPS
    }

    /// Writes a set of values down.
    pub(super) fn set(&mut self, values: Values) -> SetId {
        if let Some(id) = self.set_ids.get(&values) {
            return *id;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(values.clone());
        self.set_ids.insert(values, id);
        id
    }

    /// Writes a tuple down.
    pub(super) fn tuple(&mut self, tuple: Tuple) -> Value {
        let next = TupleId(self.tuples.len() as u32);
        let id = *self.tuple_ids.entry(tuple).or_insert(next);
        if id == next {
            self.tuples.push(tuple);
        }
        Value::Tuple(id)
    }

    /// The values of a tuple's elements.
    pub(super) fn tuple_elements(&mut self, id: TupleId) -> Vec<Values> {
        let (file, run, receiver) = self.tuples[id.0 as usize];
        let names = self.names(file);
        let elements = names.run(run).iter();
        elements
            .map(|element| self.values(file, *element, receiver))
            .collect()
    }

    pub(super) fn elements(&self, set: SetId) -> Values {
        self.sets[set.0 as usize].clone()
    }

    /// The values of a key, remembered. What runs into itself gives nothing the second time; what
    /// depends on such a gap is not remembered.
    pub(super) fn remembered(
        &mut self,
        key: Key,
        evaluate: impl FnOnce(&mut Self) -> Values,
    ) -> Values {
        match self.memo.get(&key) {
            Some(Memo::Done(values)) => return values.clone(),
            Some(Memo::Open(depth)) => {
                self.lowest = self.lowest.min(*depth);
                return no_values();
            }
            Some(Memo::Partial(values, depth)) => {
                self.lowest = self.lowest.min(*depth);
                return values.clone();
            }
            None => {}
        }
        self.steps += 1;
        if self.depth >= MOST_DEPTH || self.is_exhausted() {
            self.lowest = 0;
            return no_values();
        }
        let depth = self.depth;
        let around = std::mem::replace(&mut self.lowest, u32::MAX);
        let partial = self.partial.len();
        self.memo.insert(key, Memo::Open(depth));
        self.depth += 1;
        let values = evaluate(self);
        self.depth -= 1;
        if self.lowest >= depth || depth == 0 {
            self.memo.insert(key, Memo::Done(values.clone()));
            self.lowest = around;
            for key in self.partial.split_off(partial) {
                self.memo.remove(&key);
            }
        } else {
            let lowest = self.lowest;
            self.memo.insert(key, Memo::Partial(values.clone(), lowest));
            self.partial.push(key);
            self.lowest = self.lowest.min(around);
        }
        values
    }
}

pub(super) fn no_values() -> Values {
    let none: [Value; 0] = [];
    Rc::new(none)
}
