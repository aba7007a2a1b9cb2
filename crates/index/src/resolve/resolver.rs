//! The state of the resolver: its caches, and the limits of an evaluation.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::class::ResolutionOrder;
use super::module::Module;
use super::source::{FileId, Source};
use super::value::{Def, ModuleId, SetId, Target, TupleId, Value, Values, Variable};
use crate::names::{ExprId, ExprRange, Imported, Names, OccurrenceId};
use starling_syntax::FilePath;

/// Maximum number of evaluation steps for one query, to bound its running time.
const MOST_STEPS: u32 = 400_000;
/// Maximum depth of nested evaluations.
const MOST_DEPTH: u32 = 60;

/// The class of `self` in the evaluated expression, or `None` if the method was not accessed
/// through a class.
pub(super) type Receiver = Option<Def>;

/// Resolves names across all files of a source. The resolver caches results, so each resolver is
/// valid for a single state of the workspace.
pub struct Resolver<'s, S: Source> {
    pub(super) source: &'s S,
    files: FxHashMap<FileId, Arc<Names>>,
    paths: FxHashMap<FileId, FilePath>,
    pub(super) modules: Vec<Module>,
    pub(super) module_ids: FxHashMap<String, ModuleId>,
    /// Cache of the directories in which the dotted names of imports are found.
    pub(super) bases: FxHashMap<(FileId, OccurrenceId, Imported), Option<String>>,
    pub(super) lines: FxHashMap<Def, Option<Rc<ResolutionOrder>>>,
    /// Cache of each class with its subclasses; the list starts with the class itself.
    pub(super) heirs: FxHashMap<Def, Rc<[Def]>>,
    pub(super) sets: Vec<Values>,
    pub(super) set_ids: FxHashMap<Values, SetId>,
    pub(super) tuples: Vec<Tuple>,
    pub(super) tuple_ids: FxHashMap<Tuple, TupleId>,
    /// Cache of the targets to which variables refer after imports are followed.
    pub(super) followed: FxHashMap<Variable, Rc<[Target]>>,
    memo: FxHashMap<EvaluationKey, CachedResult>,
    /// Keys of the partial results in `memo`, in the order in which they were added.
    partial: Vec<EvaluationKey>,
    depth: u32,
    /// The smallest depth of an evaluation in progress on which the current evaluation depends.
    lowest: u32,
    steps: u32,
}

/// A tuple expression: its file, its elements, and the class of `self`.
pub(super) type Tuple = (FileId, ExprRange, Receiver);

/// The key of a cached evaluation: the evaluated item, and the class of `self`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EvaluationKey {
    Expr(FileId, ExprId, Receiver),
    Annotation(FileId, ExprId, Receiver),
    Variable(Variable, Receiver),
    Returns(Def, Receiver),
}

/// The state of a cached evaluation.
enum CachedResult {
    /// The evaluation is in progress at this depth.
    Open(u32),
    Done(Values),
    /// A result that is valid only while the evaluation at this depth is in progress.
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
            heirs: FxHashMap::default(),
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

    /// Returns the names of a file. Empty if the file cannot be read.
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

    /// Resets the step counter at the start of a query.
    pub(super) fn start(&mut self) {
        self.steps = 0;
    }

    /// Returns whether the current query ran out of steps.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps >= MOST_STEPS
    }

    /// Interns a set of values and returns its id.
    pub(super) fn set(&mut self, values: Values) -> SetId {
        if let Some(id) = self.set_ids.get(&values) {
            return *id;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(values.clone());
        self.set_ids.insert(values, id);
        id
    }

    /// Interns a tuple expression and returns it as a value.
    pub(super) fn tuple(&mut self, tuple: Tuple) -> Value {
        let next = TupleId(self.tuples.len() as u32);
        let id = *self.tuple_ids.entry(tuple).or_insert(next);
        if id == next {
            self.tuples.push(tuple);
        }
        Value::Tuple(id)
    }

    /// Returns the values of a tuple's elements.
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

    /// Returns the cached values of a key, or evaluates them. A recursive evaluation of the same
    /// key returns no values; results that depend on such an incomplete result are not cached
    /// permanently.
    pub(super) fn remembered(
        &mut self,
        key: EvaluationKey,
        evaluate: impl FnOnce(&mut Self) -> Values,
    ) -> Values {
        match self.memo.get(&key) {
            Some(CachedResult::Done(values)) => return values.clone(),
            Some(CachedResult::Open(depth)) => {
                self.lowest = self.lowest.min(*depth);
                return no_values();
            }
            Some(CachedResult::Partial(values, depth)) => {
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
        self.memo.insert(key, CachedResult::Open(depth));
        self.depth += 1;
        let values = evaluate(self);
        self.depth -= 1;
        if self.lowest >= depth || depth == 0 {
            self.memo.insert(key, CachedResult::Done(values.clone()));
            self.lowest = around;
            for key in self.partial.split_off(partial) {
                self.memo.remove(&key);
            }
        } else {
            let lowest = self.lowest;
            self.memo
                .insert(key, CachedResult::Partial(values.clone(), lowest));
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
