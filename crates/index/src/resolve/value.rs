//! The possible values of an expression, as far as the resolver distinguishes them.

use std::rc::Rc;

use super::outside::OutsideKind;
use super::source::FileId;
use crate::names::{NameId, ScopeId, SymbolNumber};

/// A class or function of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Def {
    pub(super) file: FileId,
    pub(super) symbol: SymbolNumber,
}

/// Index of a module of the workspace in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ModuleId(pub(super) u32);

/// Index of an interned set of values in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SetId(pub(super) u32);

/// Index of an interned tuple expression in the resolver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TupleId(pub(super) u32);

/// A name in a scope of a file. Attributes of instances are in the scope of their class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Variable {
    pub(super) file: FileId,
    pub(super) scope: ScopeId,
    pub(super) name: NameId,
}

/// The object that a name refers to after imports, but not assignments, are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Target {
    Variable(Variable),
    Module(ModuleId),
    /// An object outside of the workspace.
    Outside,
}

/// A possible value of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Value {
    Module(ModuleId),
    Class(Def),
    Instance(Def),
    /// A function, and for a method the class through which it is accessed.
    Function(Def, Option<Def>),
    /// A callable that returns one of the values of this set.
    Callable(SetId),
    /// `super()`: the classes after `after` in the method resolution order of `of`.
    Super {
        after: Def,
        of: Def,
    },
    /// An iterable value whose elements are in this set.
    Sequence(SetId),
    /// A tuple expression.
    Tuple(TupleId),
    /// A value from outside the workspace.
    Outside(OutsideKind),
}

/// All possible values of an expression. Empty if unknown.
pub(super) type Values = Rc<[Value]>;

/// Maximum number of values of an expression. Further values are dropped.
const MOST_VALUES: usize = 16;

/// A list of values without duplicates, up to a maximum length.
#[derive(Debug, Default)]
pub(super) struct ValueSet(Vec<Value>);

impl ValueSet {
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
