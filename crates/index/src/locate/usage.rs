//! Measures how widely a definition is used.

use super::corpus::Corpus;

/// Returns how much a definition's name is mentioned: from 0 for no mention to 1 for mentions in
/// every file. The mentions are divided among all definitions with that name.
pub(super) fn usage(corpus: Corpus<'_>, id: u32) -> f32 {
    let name = corpus.base_name(id);
    let shared = corpus.defined(name).len().max(1);
    let mentions = corpus.mentions(name) as f32 / shared as f32;
    (1.0 + mentions).ln() / (1.0 + corpus.files().len() as f32).ln()
}

#[cfg(test)]
mod tests {
    use super::super::corpus::Table;
    use super::*;
    use crate::testing::{code_of, snapshot_of};

    #[test]
    fn name_mentioned_in_more_files_has_higher_usage() {
        let files = [
            ("a.py", "def one():\n    pass\n\ndef two():\n    pass\n"),
            ("b.py", "from a import one\n\none()\n"),
            ("c.py", "from a import one, two\n"),
            ("d.py", "def lone_():\n    pass\n"),
        ];
        let (code, snapshot) = (code_of(files), snapshot_of(&files));
        let table = Table::new(&code);
        let corpus = Corpus::new(&code, &table, &snapshot);
        let usage = |name| usage(corpus, corpus.defined(name)[0]);
        assert!(usage("one") > usage("two") && usage("two") > usage("lone_"));
        assert!(usage("one") <= 1.0);
    }
}
