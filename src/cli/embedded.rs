//! The projects that are embedded in the program.

/// Paths and texts of files.
pub type EmbeddedFiles = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($folder:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../fixtures/", $folder, "/", $path)))),*]
    };
}

/// The broken project of `starling demo`.
pub const DEMO: EmbeddedFiles = files!("demo":
    "README.md",
    "loans/__init__.py",
    "loans/calendar.py",
    "loans/catalogue.py",
    "loans/desk.py",
    "loans/fees.py",
    "tests/__init__.py",
    "tests/test_calendar.py",
    "tests/test_desk.py",
    "tests/test_fees.py",
);

/// The project of the embedded recording.
pub const RECORDING_PROJECT: EmbeddedFiles = files!("replay-project":
    "TASK.md",
    "parcels/__init__.py",
    "parcels/advice.py",
    "parcels/invoice.py",
    "parcels/quote.py",
    "parcels/rates.py",
    "tests/__init__.py",
    "tests/test_invoice.py",
    "tests/test_quote.py",
);

/// The trajectory that `starling demo --replay` replays.
pub const RECORDING: Option<&str> = Some(include_str!("../../fixtures/replay/parcels.jsonl"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn collect(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().unwrap() != "__pycache__" {
                collect(root, &path, found);
            } else if path.is_file() {
                let inside = path.strip_prefix(root).unwrap();
                found.insert(inside.to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn every_file_of_the_demo_projects_is_embedded() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        for (name, files) in [("demo", DEMO), ("replay-project", RECORDING_PROJECT)] {
            let root = fixtures.join(name);
            let mut found = BTreeSet::new();
            collect(&root, &root, &mut found);
            let inside = files.iter().map(|(path, _)| (*path).to_owned());
            assert_eq!(inside.collect::<BTreeSet<_>>(), found, "{name}");
        }
    }
}
