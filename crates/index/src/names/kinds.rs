//! The node kinds and fields of the tree-sitter grammar that the reader uses, looked up by number.

use std::sync::OnceLock;

use tree_sitter::{Language, TreeCursor};

/// A kind of node that the reader treats specially. The grammar has more kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Punctuation, keywords, comments and numbers: the node and its children are skipped.
    Skip,
    /// Any other kind of node: only its children are read.
    Other,
    Identifier,
    Attribute,
    Call,
    Arguments,
    KeywordArgument,
    Subscript,
    Parenthesized,
    Await,
    BooleanOperator,
    Not,
    BinaryOperator,
    Conditional,
    NamedExpression,
    Lambda,
    Comprehension,
    ForInClause,
    Tuple,
    List,
    Literal,
    None,
    String,
    ConcatenatedString,
    AsPattern,
    AsPatternTarget,
    Type,
    GenericType,
    UnionType,
    MemberType,
    TypeParameter,
    Pattern,
    Splat,
    Assignment,
    AugmentedAssignment,
    Return,
    Yield,
    Delete,
    Global,
    Nonlocal,
    If,
    Assert,
    For,
    While,
    WithItem,
    Except,
    Import,
    ImportFrom,
    FutureImport,
    Aliased,
    DottedName,
    RelativeImport,
    ImportPrefix,
    Wildcard,
    Decorated,
    Decorator,
    Function,
    Class,
    Parameters,
    TypedParameter,
    DefaultParameter,
    CasePattern,
    ClassPattern,
    KeywordPattern,
    SplatPattern,
    TypeAlias,
    Block,
}

/// The kinds by their names in the grammar. All names that are not listed are [`Kind::Other`].
const KINDS: &[(&str, Kind)] = &[
    ("identifier", Kind::Identifier),
    ("attribute", Kind::Attribute),
    ("call", Kind::Call),
    ("argument_list", Kind::Arguments),
    ("keyword_argument", Kind::KeywordArgument),
    ("subscript", Kind::Subscript),
    ("parenthesized_expression", Kind::Parenthesized),
    ("await", Kind::Await),
    ("boolean_operator", Kind::BooleanOperator),
    ("not_operator", Kind::Not),
    ("binary_operator", Kind::BinaryOperator),
    ("conditional_expression", Kind::Conditional),
    ("named_expression", Kind::NamedExpression),
    ("lambda", Kind::Lambda),
    ("list_comprehension", Kind::Comprehension),
    ("set_comprehension", Kind::Comprehension),
    ("dictionary_comprehension", Kind::Comprehension),
    ("generator_expression", Kind::Comprehension),
    ("for_in_clause", Kind::ForInClause),
    ("tuple", Kind::Tuple),
    ("expression_list", Kind::Tuple),
    ("list", Kind::List),
    ("set", Kind::List),
    ("integer", Kind::Literal),
    ("float", Kind::Literal),
    ("true", Kind::Literal),
    ("false", Kind::Literal),
    ("none", Kind::None),
    ("string", Kind::String),
    ("concatenated_string", Kind::ConcatenatedString),
    ("as_pattern", Kind::AsPattern),
    ("as_pattern_target", Kind::AsPatternTarget),
    ("type", Kind::Type),
    ("generic_type", Kind::GenericType),
    ("union_type", Kind::UnionType),
    ("member_type", Kind::MemberType),
    ("type_parameter", Kind::TypeParameter),
    ("pattern_list", Kind::Pattern),
    ("tuple_pattern", Kind::Pattern),
    ("list_pattern", Kind::Pattern),
    ("list_splat_pattern", Kind::Splat),
    ("dictionary_splat_pattern", Kind::Splat),
    ("assignment", Kind::Assignment),
    ("augmented_assignment", Kind::AugmentedAssignment),
    ("return_statement", Kind::Return),
    ("yield", Kind::Yield),
    ("delete_statement", Kind::Delete),
    ("global_statement", Kind::Global),
    ("nonlocal_statement", Kind::Nonlocal),
    ("if_statement", Kind::If),
    ("elif_clause", Kind::If),
    ("assert_statement", Kind::Assert),
    ("for_statement", Kind::For),
    ("while_statement", Kind::While),
    ("with_item", Kind::WithItem),
    ("except_clause", Kind::Except),
    ("import_statement", Kind::Import),
    ("import_from_statement", Kind::ImportFrom),
    ("future_import_statement", Kind::FutureImport),
    ("aliased_import", Kind::Aliased),
    ("dotted_name", Kind::DottedName),
    ("relative_import", Kind::RelativeImport),
    ("import_prefix", Kind::ImportPrefix),
    ("wildcard_import", Kind::Wildcard),
    ("decorated_definition", Kind::Decorated),
    ("decorator", Kind::Decorator),
    ("function_definition", Kind::Function),
    ("class_definition", Kind::Class),
    ("parameters", Kind::Parameters),
    ("lambda_parameters", Kind::Parameters),
    ("typed_parameter", Kind::TypedParameter),
    ("default_parameter", Kind::DefaultParameter),
    ("typed_default_parameter", Kind::DefaultParameter),
    ("case_pattern", Kind::CasePattern),
    ("class_pattern", Kind::ClassPattern),
    ("keyword_pattern", Kind::KeywordPattern),
    ("splat_pattern", Kind::SplatPattern),
    ("type_alias_statement", Kind::TypeAlias),
    ("block", Kind::Block),
    ("comment", Kind::Skip),
    ("line_continuation", Kind::Skip),
    ("string_start", Kind::Skip),
    ("string_content", Kind::Skip),
    ("string_end", Kind::Skip),
    ("escape_sequence", Kind::Skip),
    ("escape_interpolation", Kind::Skip),
    ("type_conversion", Kind::Skip),
    ("ellipsis", Kind::Skip),
    ("pass_statement", Kind::Skip),
    ("break_statement", Kind::Skip),
    ("continue_statement", Kind::Skip),
    ("positional_separator", Kind::Skip),
    ("keyword_separator", Kind::Skip),
];

fn kind_named(name: &str) -> Kind {
    let known = KINDS.iter().find(|(known, _)| *known == name);
    known.map_or(Kind::Other, |(_, kind)| *kind)
}

/// The field of a parent node in which a node is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    None,
    Name,
    Left,
    Right,
    Type,
    Value,
    Alias,
    Attribute,
    Parameters,
    ReturnType,
    Body,
    Superclasses,
    Condition,
    Consequence,
    Operator,
    Module,
    Other,
}

fn field_named(name: &str) -> Field {
    match name {
        "name" => Field::Name,
        "left" => Field::Left,
        "right" => Field::Right,
        "type" => Field::Type,
        "value" => Field::Value,
        "alias" => Field::Alias,
        "attribute" => Field::Attribute,
        "parameters" => Field::Parameters,
        "return_type" => Field::ReturnType,
        "body" => Field::Body,
        "superclasses" => Field::Superclasses,
        "condition" => Field::Condition,
        "consequence" => Field::Consequence,
        "operator" | "operators" => Field::Operator,
        "module_name" => Field::Module,
        _ => Field::Other,
    }
}

/// Tables from the grammar's numbers to kinds and fields.
pub(super) struct Kinds {
    kinds: Vec<Kind>,
    fields: Vec<Field>,
}

impl Kinds {
    pub(super) fn get() -> &'static Kinds {
        static KINDS: OnceLock<Kinds> = OnceLock::new();
        KINDS.get_or_init(|| Kinds::of(&tree_sitter_python::LANGUAGE.into()))
    }

    fn of(language: &Language) -> Self {
        let kind = |id: u16| {
            let name = language.node_kind_for_id(id).unwrap_or_default();
            if language.node_kind_is_named(id) {
                kind_named(name)
            } else {
                Kind::Skip
            }
        };
        let count = language.node_kind_count() as u16;
        let fields = language.field_count() as u16;
        Kinds {
            kinds: (0..count).map(kind).collect(),
            fields: (0..=fields)
                .map(|id| {
                    language
                        .field_name_for_id(id)
                        .map_or(Field::None, field_named)
                })
                .collect(),
        }
    }

    pub(super) fn kind(&self, cursor: &TreeCursor<'_>) -> Kind {
        // The number of an error node is outside of the table. Its children are read as far as
        // possible.
        let id = cursor.node().kind_id() as usize;
        self.kinds.get(id).copied().unwrap_or(Kind::Other)
    }

    pub(super) fn field(&self, cursor: &TreeCursor<'_>) -> Field {
        let id = cursor.field_id().map_or(0, std::num::NonZero::get);
        self.fields
            .get(id as usize)
            .copied()
            .unwrap_or(Field::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kind_and_field_names_exist_in_the_grammar() {
        let language: Language = tree_sitter_python::LANGUAGE.into();
        let named = |name: &str| language.id_for_node_kind(name, true) != 0;
        for (name, _) in KINDS {
            assert!(named(name), "{name}");
        }
        for name in [
            "left",
            "superclasses",
            "return_type",
            "module_name",
            "consequence",
            "alias",
        ] {
            assert!(language.field_id_for_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn punctuation_and_keywords_have_the_kind_skip() {
        let kinds = Kinds::get();
        let language: Language = tree_sitter_python::LANGUAGE.into();
        let kind = |name, named| kinds.kinds[language.id_for_node_kind(name, named) as usize];
        assert_eq!(kind("(", false), Kind::Skip);
        assert_eq!(kind("identifier", true), Kind::Identifier);
        assert_eq!(kind("lambda", true), Kind::Lambda);
        assert_eq!(kind("lambda", false), Kind::Skip);
    }
}
