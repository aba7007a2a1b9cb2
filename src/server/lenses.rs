//! `textDocument/codeLens`: offers on the first lines of their symbols, already resolved.

use ropey::Rope;
use tower_lsp::lsp_types::{CodeLens, Position, Range};

use super::documents::Sight;
use super::marks::Mark;
use super::offers::Offer;
use super::settings::Settings;
use crate::text::{Encoding, position_of};

pub fn lenses(offers: &[Offer], sight: &Sight, client: &Settings) -> Vec<CodeLens> {
    let mut lenses = Vec::new();
    for offer in offers {
        let Some(mark) = sight.marks.find(&offer.symbol.name) else {
            continue;
        };
        let line = first_line(mark, &sight.text);
        // Some clients order the lenses of a line by their places.
        let lens = |(place, command)| CodeLens {
            range: Range::new(Position::new(line, place), Position::new(line, place)),
            command: Some(command),
            data: None,
        };
        lenses.extend((0..).zip(offer.commands(client)).map(lens));
    }
    lenses
}

/// The first line of a symbol's definition.
pub fn first_line(mark: &Mark, text: &Rope) -> u32 {
    position_of(text, mark.top, Encoding::Utf8).line
}

/// The lines from the first of a symbol's definition to that with its name.
pub fn is_on_head(line: u32, mark: &Mark, text: &Rope) -> bool {
    (first_line(mark, text)..=position_of(text, mark.head, Encoding::Utf8).line).contains(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::offers::offers;
    use crate::server::testing::{BASE, client, sight, waiting};
    use crate::swarm::RunId;
    use crate::syntax::FilePath;

    #[test]
    fn lenses_stand_on_the_first_lines_of_their_symbols() {
        let board = waiting(&[(1, "a.py::f"), (2, "a.py::C.m"), (3, "a.py::g")]);
        let offers = offers(&RunId("r".to_owned()), &board, &FilePath::new("a.py"));
        let lines = |text: &str| {
            let lenses = lenses(&offers, &sight(text), &client(&[]));
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
    fn the_head_of_a_symbol_is_its_first_lines() {
        let text = "@one\n@two\ndef f():\n    pass\n";
        let sight = sight(text);
        let mark = sight.marks.find("f").unwrap();
        let on = [0, 1, 2, 3].map(|line| is_on_head(line, mark, &sight.text));
        assert_eq!(on, [true, true, true, false]);
    }
}
