//! `textDocument/codeLens`: review actions on the first lines of their symbols. The lenses contain
//! their commands, so clients need not resolve them.

use ropey::Rope;
use tower_lsp::lsp_types::{CodeLens, Position, Range};

use super::documents::DocumentView;
use super::review_actions::ReviewAction;
use super::settings::ClientSettings;
use super::symbol_markers::SymbolMarker;
use starling_text::{Encoding, position_of};

pub fn lenses(
    review_actions: &[ReviewAction],
    document: &DocumentView,
    client: &ClientSettings,
) -> Vec<CodeLens> {
    let mut lenses = Vec::new();
    for action in review_actions {
        let Some(marker) = document.markers.find(&action.symbol.name) else {
            continue;
        };
        let line = first_line(marker, &document.text);
        let before = lenses.iter().filter(|lens| is_on(line, lens)).count();
        // Some clients order the lenses of a line by their columns.
        let lens = |(place, command)| {
            let place = Position::new(line, place);
            CodeLens {
                range: Range::new(place, place),
                command: Some(command),
                data: None,
            }
        };
        let places = u32::try_from(before).unwrap_or(u32::MAX)..;
        let mut commands = action.commands(client);
        // The actions come first because a narrow window cuts off the end.
        if commands.len() > 1 {
            commands.rotate_left(1);
        }
        lenses.extend(places.zip(commands).map(lens));
    }
    lenses
}

fn is_on(line: u32, lens: &CodeLens) -> bool {
    lens.range.start.line == line
}

/// Returns the first line of a symbol's definition.
pub fn first_line(marker: &SymbolMarker, text: &Rope) -> u32 {
    position_of(text, marker.definition_start, Encoding::Utf8).line
}

/// Returns whether a line is in a symbol's header: from the first line of its definition to the
/// line with its name.
pub fn is_on_header(line: u32, marker: &SymbolMarker, text: &Rope) -> bool {
    (first_line(marker, text)..=position_of(text, marker.name_start, Encoding::Utf8).line)
        .contains(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{BASE, client, document, review_actions, waiting};
    use starling_swarm::RunId;
    use starling_syntax::FilePath;

    #[test]
    fn lenses_are_on_first_lines_of_symbols() {
        let view = waiting(&[(1, "a.py::f"), (2, "a.py::C.m"), (3, "a.py::g")]);
        let review_actions = review_actions(&RunId("r".to_owned()), &view, &FilePath::new("a.py"));
        let lines = |text: &str| {
            let lenses = lenses(&review_actions, &document(text), &client(&[]));
            assert!(lenses.iter().all(|lens| lens.command.is_some()), "resolved");
            let mut lines: Vec<u32> = lenses.iter().map(|lens| lens.range.start.line).collect();
            lines.dedup();
            lines
        };
        assert_eq!(lines(BASE), [0, 5, 9]);
        let decorated = BASE.replace("    def m", "    # why\n    @property\n    def m");
        assert_eq!(lines(&decorated), [0, 6, 11]);
        let gone = BASE.replace("    def m(self):\n        return 2\n", "    pass\n");
        assert_eq!(lines(&gone), [0, 4, 8], "what is gone: where it belongs");
    }

    #[test]
    fn lens_order_puts_actions_before_title() {
        let view = waiting(&[(1, "a.py::f"), (2, "a.py::f.gone")]);
        let review_actions = review_actions(&RunId("r".to_owned()), &view, &FilePath::new("a.py"));
        let lenses = lenses(&review_actions, &document(BASE), &client(&[]));
        let titles: Vec<&str> = lenses
            .iter()
            .filter_map(|lens| lens.command.as_ref())
            .map(|command| command.title.as_str())
            .collect();
        assert_eq!(titles[..4], ["Accept all 2", "Reject", "Why", "Diff"]);
        assert_eq!(titles[4], "Starling #1 with #2: reason 1");
        assert_eq!(titles[9], "Starling #2 with #1: reason 2");
        let places: Vec<u32> = lenses.iter().map(|one| one.range.start.character).collect();
        assert_eq!(places, (0..10).collect::<Vec<u32>>(), "in this order");
    }

    #[test]
    fn symbol_header_spans_the_decorators_to_the_name() {
        let text = "@one\n@two\ndef f():\n    pass\n";
        let document = document(text);
        let marker = document.markers.find("f").unwrap();
        let on = [0, 1, 2, 3].map(|line| is_on_header(line, marker, &document.text));
        assert_eq!(on, [true, true, true, false]);
    }
}
