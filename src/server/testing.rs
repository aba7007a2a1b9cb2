//! Values for the tests of this module.

use crate::swarm::{DiagnosticEvidence, Evidence, TestEvidence};

pub fn evidence() -> Evidence {
    let reason = "not looked at".to_owned();
    Evidence {
        tests: TestEvidence::Unknown {
            reason: reason.clone(),
        },
        diagnostics: DiagnosticEvidence::Unknown { reason },
        imports: Default::default(),
        losses: Vec::new(),
        contract: Vec::new(),
        callers: Vec::new(),
        together: None,
        millis: 0,
    }
}
