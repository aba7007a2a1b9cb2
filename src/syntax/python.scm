; What the symbols of a Python file are made of. `language.rs` names the captures.

(class_definition name: (identifier) @name) @class
(function_definition name: (identifier) @name) @function
(decorated_definition definition: (_) @inner) @decorated

(comment) @comment
(string) @string

(raise_statement) @raise
(yield) @yield
