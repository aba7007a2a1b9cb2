//! Finds names in the expressions of templates: `{{ plot.area }}`, `{% for x in list.rows %}`.

use starling_syntax::FilePath;

/// Extensions of files that may be templates.
const ENDINGS: [&str; 17] = [
    "djhtml", "ejs", "htm", "html", "j2", "jinja", "jinja2", "mako", "mjml", "svg", "svelte",
    "template", "tmpl", "tpl", "txt", "vue", "xml",
];
/// The delimiters of expressions and statements.
const DELIMITERS: [(&str, &str); 4] = [("{{", "}}"), ("{%", "%}"), ("<%", "%>"), ("${", "}")];
/// Statements whose words name blocks and files.
const NO_EXPRESSIONS: [&str; 6] = ["block", "endblock", "extends", "include", "load", "static"];

pub(super) fn is_template(file: &FilePath) -> bool {
    let ending = file.name().rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Returns the numbers of the lines, counted from 1, on which an expression of a template uses a name. A
/// name that looks like a word of prose counts only as an attribute, a call, a filter or a string: the
/// template may have a variable of that name.
pub(super) fn lines(text: &str, name: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(name) {
        if is_word(text, at, name) && is_in_expression(text, at, name) {
            found.push(1 + text[..at].matches('\n').count() as u32);
        }
    }
    found.dedup();
    found
}

fn is_word(text: &str, at: usize, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
}

fn is_in_expression(text: &str, at: usize, name: &str) -> bool {
    let inside = DELIMITERS.iter().find_map(|(open, close)| {
        let start = text[..at].rfind(open)? + open.len();
        let is_open = !text[start..at].contains(close) && text[at..].contains(close);
        is_open.then(|| &text[start..at])
    });
    let Some(before) = inside else {
        return false;
    };
    let after = &text[at + name.len()..];
    let statement = before.trim_start_matches(['-', '+', ' ']);
    let statement = statement.split_whitespace().next().unwrap_or_default();
    let is_path =
        before.ends_with(['/', '-']) || after.starts_with(['/', '-']) && !after.starts_with("-}");
    if NO_EXPRESSIONS.contains(&statement) || is_path {
        return false;
    }
    let looks_like_code = name.contains('_') || name.chars().skip(1).any(char::is_uppercase);
    let is_string = before.ends_with(['"', '\'', '.']) && after.starts_with(['"', '\'']);
    let is_filter = before.trim_end().ends_with('|');
    looks_like_code || before.ends_with('.') || after.starts_with('(') || is_string || is_filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_in_an_expression_of_a_template_is_found() {
        for line in [
            "<p>{{ plot.area }} m²</p>",
            "{{ plot.area() }}",
            "{% for x in plot.area %}",
            "{%- if plot.area > 3 -%}",
            "{{\n  plot.area\n}}",
            "{{ area(plot) }}",
            "{{ plot | area }}",
            "{{ url_for('area') }}",
            "{{ url_for(\"plots.area\") }}",
            "<%= plot.area %>",
            "${plot.area}",
        ] {
            let expected = if line.contains('\n') { 3 } else { 2 };
            assert_eq!(lines(&format!("\n{line}\n"), "area"), [expected], "{line}");
        }
        assert_eq!(lines("{{ yearly_fee }}", "yearly_fee"), [1]);
    }

    #[test]
    fn word_outside_expressions_and_other_names_are_not_found() {
        for line in [
            "<p class=\"area\">The area of a.area</p>",
            "{{ plot.name }} plot.area {{ plot.name }}",
            "{{ plot.areas }} {{ plot.my_area }}",
            "{% block area %}{% endblock area %}",
            "{% include 'plot.area' %}",
            "{{ area }}",
            "{{ url('a/area/b') }}",
        ] {
            assert_eq!(lines(line, "area"), [0; 0], "{line}");
        }
    }
}
