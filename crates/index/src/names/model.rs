//! The data model of the names in a file: small values that refer to one another by number.

use serde::{Deserialize, Serialize};

use super::table::NameId;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the number as an index of its vector.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

number! {
    /// A scope of the file. 0 is the module's scope.
    ScopeId
}
number! {
    /// An occurrence of an identifier, numbered in the order of the text.
    OccurrenceId
}
number! {
    /// A symbol, numbered in the order of its `SymbolTree`. 0 is the module body.
    SymbolNumber
}
number! {
    /// One name that an import statement binds, or one `*`.
    ImportId
}

impl ScopeId {
    pub const MODULE: ScopeId = ScopeId(0);
}

/// An expression, reduced to what can determine its type: an occurrence (a name or an attribute),
/// an [`Expr`], or an unknown expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExprId(pub(super) u32);

impl ExprId {
    /// There is no expression.
    pub const NONE: ExprId = ExprId(0);
    /// There is an expression, but nothing is known about its type.
    pub const UNKNOWN: ExprId = ExprId(1);

    /// Returns the expression for an occurrence of a name or an attribute.
    pub fn of(id: OccurrenceId) -> Self {
        ExprId(id.0 * 2 + 2)
    }

    pub(super) fn built(index: usize) -> Self {
        ExprId(index as u32 * 2 + 3)
    }

    pub fn is_some(self) -> bool {
        self != ExprId::NONE
    }

    /// Returns the occurrence that this id encodes, or `None` if it encodes another expression.
    pub fn as_occurrence(self) -> Option<OccurrenceId> {
        (self.0 >= 2 && self.0.is_multiple_of(2)).then(|| OccurrenceId(self.0 / 2 - 1))
    }

    pub(super) fn as_built(self) -> Option<usize> {
        (self.0 >= 3 && !self.0.is_multiple_of(2)).then(|| (self.0 as usize - 3) / 2)
    }
}

/// A range of the file's list of expressions, such as the elements of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ExprRange {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// An expression that is not only a name or an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Expr {
    /// `f(...)`.
    Call(ExprId),
    /// `type(x)`.
    TypeOf(ExprId),
    /// `super()` or `super(C, self)`, with the scope of the call.
    Super(ScopeId),
    /// `x[a, b]`: a subscript, or a generic type with its arguments.
    Item(ExprId, ExprRange),
    /// `a or b`, `a if c else b`, `A | B`.
    Either(ExprId, ExprId),
    Tuple(ExprRange),
    /// A list, a set or a comprehension, with its first element.
    List(ExprId),
    /// One element of a value that is assigned to several targets (`a, b = value`), with its index,
    /// counted from 0.
    Part(ExprId, u32),
    /// The element that `for x in iterable` assigns.
    Element(ExprId),
    /// The value that `with value as x` assigns.
    Entered(ExprId),
    /// The exception that `except class as x` assigns.
    Caught(ExprId),
    /// A literal of a built-in type.
    Literal,
    None,
}

/// The role of an identifier at its occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    Read,
    /// The name is called.
    Call,
    Store,
    Delete,
    /// The name of a `def` or a `class`.
    Definition,
    Parameter,
    /// The name of a keyword argument: `f(name=1)`. Its receiver is the called function.
    Keyword,
    /// A part of a module's dotted name in an import.
    ImportedModule,
    /// `f` in `from m import f`.
    ImportedName,
    /// `g` in `import m as g` and `from m import f as g`.
    Alias,
    /// A string in `__all__`.
    Export,
    /// A name in a `global` or `nonlocal` statement.
    Declared,
}

/// An identifier in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// Byte offset of the identifier.
    pub at: u32,
    pub name: NameId,
    pub scope: ScopeId,
    pub role: Role,
    /// For an attribute, the expression of the object; for a keyword, the called expression; in an
    /// import, the number of the import.
    pub(super) receiver: u32,
}

impl Occurrence {
    /// Returns the object of an attribute access, or [`ExprId::NONE`] for a plain name.
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

    /// Returns the function that is called with this keyword argument.
    pub fn called(&self) -> Option<ExprId> {
        (self.role == Role::Keyword).then_some(ExprId(self.receiver))
    }

    /// Returns the import that contains this occurrence.
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

/// The kind of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScopeKind {
    Module,
    Class,
    Function,
    Lambda,
    Comprehension,
}

/// A scope in which names are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub kind: ScopeKind,
    /// The enclosing scope. For the module's scope, the scope itself.
    pub parent: ScopeId,
    /// The symbol whose scope this is. For lambdas and comprehensions, the enclosing symbol.
    pub symbol: SymbolNumber,
}

/// One binding of a name in a scope: a definition, an import, a parameter, an assignment or a
/// declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub scope: ScopeId,
    pub name: NameId,
    pub occurrence: OccurrenceId,
    pub kind: BindingKind,
    /// Number of bytes from the occurrence to the position from which the value is visible.
    pub(super) after: u32,
    /// Number of bytes from the occurrence to the end of the enclosing block.
    pub(super) reach: u32,
}

impl Binding {
    /// Returns whether the binding sets the name to a value. An annotation without a value also
    /// counts. `global` and `nonlocal` do not count, nor do assignments to attributes.
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

/// The way in which a name is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindingKind {
    Import(ImportId),
    Class(SymbolNumber),
    Function(SymbolNumber),
    Parameter {
        place: ParameterPosition,
        annotation: ExprId,
        default: ExprId,
    },
    /// `x = value`, `x: annotation = value`, and every other kind of assignment target.
    Value {
        annotation: ExprId,
        value: ExprId,
    },
    /// `self.x = value` in a method. The binding belongs to the scope of the class.
    Attribute {
        annotation: ExprId,
        value: ExprId,
    },
    Global,
    Nonlocal,
}

/// The position of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParameterPosition {
    /// The first positional parameter: `self` or `cls` in a method.
    First,
    Later,
    /// `*args` and `**kwargs`.
    Rest,
}

/// One name that an import statement binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    pub scope: ScopeId,
    /// Number of leading dots of a relative import.
    pub level: u32,
    /// The first part of the module's dotted name.
    pub module: OccurrenceId,
    /// Number of parts of the module's dotted name.
    pub parts: u32,
    pub what: Imported,
}

/// The object that an import binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Imported {
    /// `import a.b`: binds `a`.
    First,
    /// `import a.b as c`: binds the module `a.b`.
    Whole,
    /// `from a import name`.
    Name(NameId),
    /// `from a import *`.
    Star,
}

/// A class definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    pub symbol: SymbolNumber,
    pub scope: ScopeId,
    pub bases: ExprRange,
    pub decorators: ExprRange,
}

/// A function or method definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    pub symbol: SymbolNumber,
    pub scope: ScopeId,
    /// The scope in which the function's name is bound.
    pub outer: ScopeId,
    pub decorators: ExprRange,
    /// The return annotation.
    pub returns: ExprId,
    pub role: FunctionRole,
}

/// The kind of a function in a class, which determines how the function is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionRole {
    /// A function, or a method with a `self` parameter.
    Plain,
    /// Reading the attribute calls the function.
    Property,
    ClassMethod,
    StaticMethod,
}

/// A value that a function returns or yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionResult {
    /// The scope of the function.
    pub scope: ScopeId,
    pub value: ExprId,
    pub how: ResultKind,
}

/// Whether a function returns or yields a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResultKind {
    Return,
    Yield,
    /// A value of `yield from`.
    YieldFrom,
}

/// A part of the text in which an expression is known to be an instance of a class, such as the
/// body of `if isinstance(x, C)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// The tested expression: a name or a chain of attributes.
    pub tested: ExprId,
    pub class: ExprId,
    pub start: u32,
    pub end: u32,
}

/// A loop. A binding at its end reaches its start in the next iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    pub start: u32,
    pub end: u32,
}

/// The position of a symbol's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolPlace {
    /// Byte offsets of the definition, including decorators.
    pub start: u32,
    pub end: u32,
    pub parent: SymbolNumber,
}
