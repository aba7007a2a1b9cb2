//! What a name can stand for.

use std::rc::Rc;

use super::source::FileId;
use crate::names::{NameId, ScopeId, SymbolNumber};

/// A class or a function of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Def {
    pub(super) file: FileId,
    pub(super) symbol: SymbolNumber,
}

/// A module of the workspace, by its number in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ModuleId(pub(super) u32);

/// A set of values that was written down, by its number in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SetId(pub(super) u32);

/// A tuple as it is written, by its number in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TupleId(pub(super) u32);

/// A name in a scope of a file. Attributes of instances are in the scope of their class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Variable {
    pub(super) file: FileId,
    pub(super) scope: ScopeId,
    pub(super) name: NameId,
}

/// What a name refers to when imports are followed and values are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Target {
    Variable(Variable),
    Module(ModuleId),
    /// Something that the workspace does not hold.
    Outside,
}

/// What an expression can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Value {
    Module(ModuleId),
    Class(Def),
    Instance(Def),
    /// A function; of a method also the class that it is reached by.
    Function(Def, Option<Def>),
    /// Something that gives these when it is called.
    Callable(SetId),
    /// `super()`: what follows `after` among the classes of `of`.
    Super {
        after: Def,
        of: Def,
    },
    /// Something whose elements are these.
    Sequence(SetId),
    /// A tuple of expressions.
    Tuple(TupleId),
    /// Something that the workspace does not hold.
    Outside,
}

/// All that an expression can be; nothing: it is not known.
pub(super) type Values = Rc<[Value]>;

/// More than these are not told apart.
const MOST_VALUES: usize = 16;

/// Values without repetition.
#[derive(Debug, Default)]
pub(super) struct Collected(Vec<Value>);

impl Collected {
    pub(super) fn add(&mut self, value: Value) {
        if self.0.len() < MOST_VALUES && !self.0.contains(&value) {
            self.0.push(value);
        }
    }

    pub(super) fn extend(&mut self, values: &[Value]) {
        for value in values {
            self.add(*value);
        }
    }

    pub(super) fn finish(self) -> Values {
        self.0.into()
    }
}
