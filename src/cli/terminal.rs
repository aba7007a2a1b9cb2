//! Properties of the terminal.

use crossterm::terminal;

/// Columns and rows if the terminal does not report its size.
const SIZE: (u16, u16) = (80, 24);

/// Returns the columns and rows of the terminal.
pub fn size() -> (u16, u16) {
    usable(terminal::size().ok())
}

/// Replaces a size of 0, which serial lines, some containers and `script` report.
fn usable(reported: Option<(u16, u16)>) -> (u16, u16) {
    let (columns, rows) = reported.unwrap_or_default();
    let or = |reported: u16, default| if reported == 0 { default } else { reported };
    (or(columns, SIZE.0), or(rows, SIZE.1))
}

/// Whether the terminal supports neither colours nor cursor movement.
pub fn is_dumb() -> bool {
    is_dumb_as(std::env::var("TERM").ok().as_deref())
}

fn is_dumb_as(term: Option<&str>) -> bool {
    matches!(term, None | Some("" | "dumb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_terminal_size_falls_back_to_80_by_24() {
        assert_eq!(usable(None), (80, 24));
        assert_eq!(usable(Some((0, 0))), (80, 24));
        assert_eq!(usable(Some((0, 50))), (80, 50));
        assert_eq!(usable(Some((132, 43))), (132, 43));
    }

    #[test]
    fn terminal_without_a_term_variable_is_dumb() {
        assert!(is_dumb_as(None) && is_dumb_as(Some("")) && is_dumb_as(Some("dumb")));
        assert!(!is_dumb_as(Some("xterm-256color")));
    }
}
