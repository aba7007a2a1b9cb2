//! Directives of reStructuredText that contain code or name a symbol.

use super::blocks::CodeBlock;
use starling_syntax::FilePath;
use starling_text::ByteRange;

/// Directives whose content is code. Without a language, it is Python.
const CODE: [&str; 3] = ["code", "code-block", "sourcecode"];

pub(super) fn is_rst(file: &FilePath) -> bool {
    file.name().to_lowercase().ends_with(".rst")
}

/// A line that begins a directive: `.. name:: argument`.
struct Directive<'l> {
    /// Number of bytes of white space before the directive.
    indentation: usize,
    name: &'l str,
    argument: &'l str,
}

impl<'l> Directive<'l> {
    fn read(line: &'l str) -> Option<Directive<'l>> {
        let trimmed = line.trim_start();
        let (name, argument) = trimmed.strip_prefix(".. ")?.split_once("::")?;
        Some(Directive {
            indentation: line.len() - trimmed.len(),
            name: name.trim(),
            argument: argument.trim(),
        })
    }
}

/// Returns the contents of the directives that contain code.
pub(super) fn code_blocks(text: &str) -> Vec<CodeBlock> {
    let mut found = Vec::new();
    // The indentation of the directive, whether its code is Python, and where its content begins.
    let mut open: Option<(usize, bool, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start().len();
        let is_empty = line.trim().is_empty();
        if let Some((outer, is_python, from)) = open
            && !is_empty
            && indentation <= outer
        {
            found.push(CodeBlock::new(ByteRange::new(from, start), is_python));
            open = None;
        }
        start += line.len();
        let directive = Directive::read(line).filter(|one| CODE.contains(&one.name));
        if let (None, Some(directive)) = (open, directive) {
            let is_python = CodeBlock::is_python(directive.argument);
            open = Some((directive.indentation, is_python, start));
        }
    }
    if let Some((_, is_python, from)) = open {
        found.push(CodeBlock::new(ByteRange::new(from, start), is_python));
    }
    found
}

/// Returns the range of the name that a directive documents: `.. autoclass:: NAME`, `.. py:function:: NAME`.
pub(super) fn documented_name(line: &str) -> Option<ByteRange> {
    let directive = Directive::read(line)?;
    let is_about_symbol = directive.name != "automodule"
        && (directive.name.starts_with("auto") || directive.name.starts_with("py:"));
    let name = directive.argument.split(['(', ' ']).next()?;
    if !is_about_symbol || name.is_empty() {
        return None;
    }
    let start = line.find("::")? + 2;
    let start = start + line[start..].find(name)?;
    Some(ByteRange::new(start, start + name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_with_code_and_with_names_are_found() {
        let text = "Title\n\n.. code-block:: python\n    :linenos:\n\n    f(1)\n\n    f(2)\n\nText f.\n\n\
                    .. code-block:: console\n\n    $ f\n";
        let blocks = code_blocks(text);
        let line = |part: &str| text.find(part).unwrap();
        assert_eq!(blocks.len(), 2);
        assert!(blocks[0].holds(line("    f(1)")) && blocks[0].holds(line("    f(2)")));
        assert!(!blocks[0].holds(line("Text f.")));
        let name = |line: &str| documented_name(line).map(|range| range.of(line).to_owned());
        assert_eq!(name(".. autoclass:: pkg.C\n").as_deref(), Some("pkg.C"));
        assert_eq!(name("   .. py:function:: f(x)\n").as_deref(), Some("f"));
        assert_eq!(name(".. automodule:: pkg\n"), None);
        assert_eq!(name(".. note:: f\n"), None);
    }
}
