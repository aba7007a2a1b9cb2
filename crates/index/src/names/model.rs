//! What a file says about names, as small flat values that point at one another by number.

use serde::{Deserialize, Serialize};

use super::table::NameId;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// As a place in its vector.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

number! {
    /// A scope of the file; 0 is the module.
    ScopeId
}
number! {
    /// An occurrence of an identifier, in the order of the text.
    OccurrenceId
}
number! {
    /// A symbol, in the order of its `SymbolTree`; 0 is the module body.
    SymbolNumber
}
number! {
    /// An import: one name that an import statement brings in, or one star.
    ImportId
}

impl ScopeId {
    pub const MODULE: ScopeId = ScopeId(0);
}

/// An expression as far as its type can matter: an occurrence (a name or an attribute), one of
/// [`Expr`], or nothing that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExprId(pub(super) u32);

impl ExprId {
    /// Not there.
    pub const NONE: ExprId = ExprId(0);
    /// There, but of a kind that nothing is known of.
    pub const UNKNOWN: ExprId = ExprId(1);

    /// The expression that an occurrence is.
    pub fn of(id: OccurrenceId) -> Self {
        ExprId(id.0 * 2 + 2)
    }

    pub(super) fn built(index: usize) -> Self {
        ExprId(index as u32 * 2 + 3)
    }

    pub fn is_some(self) -> bool {
        self != ExprId::NONE
    }

    /// The occurrence that it is.
    pub fn as_occurrence(self) -> Option<OccurrenceId> {
        (self.0 >= 2 && self.0.is_multiple_of(2)).then(|| OccurrenceId(self.0 / 2 - 1))
    }

    pub(super) fn as_built(self) -> Option<usize> {
        (self.0 >= 3 && !self.0.is_multiple_of(2)).then(|| (self.0 as usize - 3) / 2)
    }
}

/// A run of expressions in the file's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Run {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// An expression that is no mere name or attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Expr {
    /// `f(...)`.
    Call(ExprId),
    /// `type(x)`.
    TypeOf(ExprId),
    /// `super()` or `super(C, self)`, in this scope.
    Super(ScopeId),
    /// `x[a, b]`: a subscript, or the arguments of a type.
    Item(ExprId, Run),
    /// `a or b`, `a if c else b`, `A | B`.
    Either(ExprId, ExprId),
    Tuple(Run),
    /// A list, a set or a comprehension; its first element.
    List(ExprId),
    /// What one of several targets gets of a value: `a, b = value`; which one, from 0.
    Part(ExprId, u32),
    /// What `for x in iterable` gives.
    Element(ExprId),
    /// What `with value as x` gives.
    Entered(ExprId),
    /// What `except class as x` gives.
    Caught(ExprId),
    /// A literal of a built-in type.
    Literal,
    None,
}

/// What an identifier does where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    Read,
    /// It is called here.
    Call,
    Store,
    Delete,
    /// The name of a `def` or a `class`.
    Definition,
    Parameter,
    /// The name of an argument: `f(name=1)`. Its receiver is what is called.
    Keyword,
    /// A part of a module's dotted name in an import.
    ImportedModule,
    /// `f` in `from m import f`.
    ImportedName,
    /// `g` in `import m as g` and `from m import f as g`.
    Alias,
    /// A string in `__all__`.
    Export,
    /// In `global` or `nonlocal`.
    Declared,
}

/// An identifier in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// Byte offset.
    pub at: u32,
    pub name: NameId,
    pub scope: ScopeId,
    pub role: Role,
    /// Of an attribute, what it is taken from; of a keyword, what is called; in imports the number
    /// of the import.
    pub(super) receiver: u32,
}

impl Occurrence {
    /// What the name is an attribute of; `NONE` for a plain name.
    pub fn receiver(&self) -> ExprId {
        match self.role {
            Role::Read | Role::Call | Role::Store | Role::Delete => ExprId(self.receiver),
            Role::Definition
            | Role::Parameter
            | Role::Keyword
            | Role::ImportedModule
            | Role::ImportedName
            | Role::Alias
            | Role::Export
            | Role::Declared => ExprId::NONE,
        }
    }

    /// What is called with this keyword.
    pub fn called(&self) -> Option<ExprId> {
        (self.role == Role::Keyword).then_some(ExprId(self.receiver))
    }

    /// The import that it is part of.
    pub fn import(&self) -> Option<ImportId> {
        match self.role {
            Role::ImportedModule | Role::ImportedName | Role::Alias => {
                Some(ImportId(self.receiver))
            }
            Role::Read
            | Role::Call
            | Role::Store
            | Role::Delete
            | Role::Definition
            | Role::Parameter
            | Role::Keyword
            | Role::Export
            | Role::Declared => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScopeKind {
    Module,
    Class,
    Function,
    Lambda,
    Comprehension,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub kind: ScopeKind,
    /// The scope around it; the module's is itself.
    pub parent: ScopeId,
    /// The symbol whose scope it is; of lambdas and comprehensions the one around.
    pub symbol: SymbolNumber,
}

/// One way in which a name gets its meaning in a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub scope: ScopeId,
    pub name: NameId,
    pub occurrence: OccurrenceId,
    pub kind: BindingKind,
    /// How many bytes after the occurrence the value is there.
    pub(super) after: u32,
    /// How many bytes after the occurrence the block ends in which it stands.
    pub(super) reach: u32,
}

impl Binding {
    /// Whether it gives the name a value, and does not only change or declare it.
    pub(crate) fn gives(&self) -> bool {
        match self.kind {
            BindingKind::Value { annotation, value } => annotation.is_some() || value.is_some(),
            BindingKind::Import(_)
            | BindingKind::Class(_)
            | BindingKind::Function(_)
            | BindingKind::Parameter { .. } => true,
            BindingKind::Attribute { .. } | BindingKind::Global | BindingKind::Nonlocal => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingKind {
    Import(ImportId),
    Class(SymbolNumber),
    Function(SymbolNumber),
    Parameter {
        place: Place,
        annotation: ExprId,
        default: ExprId,
    },
    /// `x = value`, `x: annotation = value`, and every other target.
    Value {
        annotation: ExprId,
        value: ExprId,
    },
    /// `self.x = value` in a method: an attribute of the class whose scope it is in.
    Attribute {
        annotation: ExprId,
        value: ExprId,
    },
    Global,
    Nonlocal,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// The first one that can be given by position: `self` or `cls` in a method.
    First,
    Later,
    /// `*args` and `**kwargs`.
    Rest,
}

/// One name that an import brings in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    pub scope: ScopeId,
    /// How many dots a relative import starts with.
    pub level: u32,
    /// The first part of the module's dotted name.
    pub module: OccurrenceId,
    /// How many parts it has.
    pub parts: u32,
    pub what: Imported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Imported {
    /// `import a.b`: binds `a`.
    First,
    /// `import a.b as c`: binds the whole.
    Whole,
    /// `from a import name`.
    Name(NameId),
    /// `from a import *`.
    Star,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub symbol: SymbolNumber,
    pub scope: ScopeId,
    pub bases: Run,
    pub decorators: Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    pub symbol: SymbolNumber,
    pub scope: ScopeId,
    /// The scope that its name is bound in.
    pub outer: ScopeId,
    pub decorators: Run,
    /// The return annotation.
    pub returns: ExprId,
    pub role: FunctionRole,
}

/// How a function in a class is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionRole {
    /// A function, or a method that gets `self`.
    Plain,
    /// Reading the attribute calls it.
    Property,
    ClassMethod,
    StaticMethod,
}

/// What a function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The function's scope.
    pub scope: ScopeId,
    pub value: ExprId,
    pub how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    Return,
    Yield,
    /// `yield from`.
    YieldFrom,
}

/// In a part of the text a name is known to be an instance of a class: under `if isinstance(x, C)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// The name that is tested, or the whole chain.
    pub tested: ExprId,
    pub class: ExprId,
    pub start: u32,
    pub end: u32,
}

/// A loop: what its end binds, its start sees again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    pub start: u32,
    pub end: u32,
}

/// Where a symbol stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolPlace {
    /// Byte offsets of its definition with decorators.
    pub start: u32,
    pub end: u32,
    pub parent: SymbolNumber,
}
