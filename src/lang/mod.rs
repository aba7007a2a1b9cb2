//! Language servers.

use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::{Diagnostics, LanguageService};
use crate::syntax::FilePath;

/// No language server: nothing is known of any text, and that is said.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLanguageService;

#[async_trait]
impl LanguageService for NoLanguageService {
    async fn diagnostics(&self, _file: &FilePath, _text: Arc<str>) -> Diagnostics {
        Diagnostics::Unknown {
            reason: "no language server is configured".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_known_is_not_no_problems() {
        let file = FilePath::new("a.py");
        let answer = NoLanguageService.diagnostics(&file, "x = ".into());
        let Diagnostics::Unknown { reason } = answer.await else {
            panic!("diagnostics without a language server");
        };
        assert!(reason.contains("no language server"));
    }
}
