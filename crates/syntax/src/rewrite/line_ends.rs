//! Preserves the line breaks of a file with mixed line breaks.

/// Returns the new text with the line breaks of the old text. Lines at the beginning and end that
/// are equal in both texts keep their line breaks. The lines between them keep their line breaks
/// only if their number is unchanged.
pub(super) fn kept(old: &str, new: &str) -> String {
    let (was, is): (Vec<&str>, Vec<&str>) = (
        old.split_inclusive('\n').collect(),
        new.split_inclusive('\n').collect(),
    );
    if !was.iter().any(|line| line.ends_with("\r\n")) || is_of_one_kind(&was) {
        return new.to_owned();
    }
    let front = was
        .iter()
        .zip(&is)
        .take_while(|(a, b)| bare(a) == bare(b))
        .count();
    let behind = was[front..].iter().rev().zip(is[front..].iter().rev());
    let back = behind.take_while(|(a, b)| bare(a) == bare(b)).count();
    let pairs = was.len() == is.len();
    let own = |at: usize| {
        let from_back = at + was.len() >= is.len() + front && at >= is.len() - back;
        match (at < front || pairs, from_back) {
            (true, _) => was.get(at),
            (false, true) => was.get(at + was.len() - is.len()),
            (false, false) => None,
        }
    };
    let lines = is.iter().enumerate();
    let ended = lines.map(|(at, line)| match own(at) {
        Some(own) if line.ends_with('\n') && own.ends_with('\n') => {
            format!("{}{}", bare(line), &own[bare(own).len()..])
        }
        Some(_) | None => (*line).to_owned(),
    });
    ended.collect()
}

fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn is_of_one_kind(lines: &[&str]) -> bool {
    let ended = lines.iter().filter(|line| line.ends_with('\n'));
    let mut kinds = ended.map(|line| line.ends_with("\r\n"));
    let first = kinds.next();
    kinds.all(|kind| Some(kind) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_lines_keep_their_line_breaks() {
        let old = "def f():\r\n    a\n    b\r\n    c\n";
        for (new, expected) in [
            (
                "def f():\n    a\n    B\n    c\n",
                "def f():\r\n    a\n    B\r\n    c\n",
            ),
            (
                "def f():\n    a\n    x\n    y\n    b\n    c\n",
                "def f():\r\n    a\n    x\n    y\n    b\r\n    c\n",
            ),
            ("def f():\n    c\n", "def f():\r\n    c\n"),
            ("def f():\n    a\n    b", "def f():\r\n    a\n    b"),
            ("new\n", "new\n"),
        ] {
            assert_eq!(kept(old, new), expected, "{new:?}");
        }
        assert_eq!(kept("a\nb\n", "a\nc\n"), "a\nc\n");
        assert_eq!(kept("a\r\nb\r\n", "a\r\nc\r\n"), "a\r\nc\r\n");
    }
}
