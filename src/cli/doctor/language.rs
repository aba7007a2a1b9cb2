//! The findings about language servers.

use std::path::Path;

use super::Finding;
use starling_config::LanguageSettings;
use starling_lang::{self, ProgramSearch};

const WHAT: &str = "language server";

/// Reports the available servers with path and version, or why none can be used.
pub(super) async fn examine(
    config: &LanguageSettings,
    places: &ProgramSearch,
    cache: &Path,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let looked_for = [
        (&config.servers, "checks every proposal"),
        (
            &config.thorough,
            "checks proposals a second time, more thoroughly",
        ),
    ];
    for (entries, job) in looked_for {
        let mut used = false;
        let mut absent: Vec<String> = Vec::new();
        for entry in entries {
            let program = match places.find(entry) {
                Ok(program) => program,
                Err(why) => {
                    absent.push(match why {
                        starling_lang::NotUsed::Missing { .. } => format!("{entry}: not installed"),
                        why => format!("{entry}: {why}"),
                    });
                    continue;
                }
            };
            let path = program.path.display();
            let finding = match starling_lang::version(&program, places, cache).await {
                Ok(tool) if used => {
                    let why =
                        "not used, because another server comes before it in language.servers";
                    Finding::ok(WHAT, format!("{tool} ({path}): {why}"))
                }
                Ok(tool) => Finding::ok(WHAT, format!("{tool} ({path}): {job}")),
                Err(why) => Finding::warn(
                    WHAT,
                    format!("{entry} ({path}): {why}"),
                    "fix it, or remove it from language.servers",
                ),
            };
            used = true;
            findings.push(finding);
        }
        if !used && !entries.is_empty() {
            findings.push(Finding::warn(
                WHAT,
                format!(
                    "no language server was found, so proposals are checked without diagnostics ({})",
                    absent.join("; ")
                ),
                "install one, for example with `pip install ty`",
            ));
        }
    }
    findings
}
