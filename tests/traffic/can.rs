//! Checks that the server uses only the capabilities that a client has announced.

use serde_json::Value;

/// The capabilities that a client announced, with which all requests and results are checked.
pub struct ClientCapabilities(pub Value);

impl ClientCapabilities {
    fn has(&self, path: &str) -> bool {
        self.0
            .pointer(path)
            .is_some_and(|value| *value != Value::Null && *value != Value::Bool(false))
    }

    fn lists(&self, path: &str, name: &str) -> bool {
        let list = self.0.pointer(path).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|one| one == name))
    }

    /// Returns whether the client announced a Starling plugin. Other clients get only standard LSP.
    pub fn has_plugin(&self) -> bool {
        self.has("/experimental/starling")
    }

    /// Checks a request from the server.
    pub fn asked(&self, method: &str, params: &Value) {
        let allowed = match method {
            "workspace/applyEdit" => {
                self.edit(&params["edit"]);
                self.has("/workspace/applyEdit")
            }
            "workspace/codeLens/refresh" => self.has("/workspace/codeLens/refreshSupport"),
            "workspace/inlayHint/refresh" => self.has("/workspace/inlayHint/refreshSupport"),
            "window/workDoneProgress/create" => self.has("/window/workDoneProgress"),
            "window/showDocument" => self.has("/window/showDocument/support"),
            "client/registerCapability" => self.registers(params),
            "window/showMessageRequest" => self.has("/window/showMessage"),
            "starling/definition"
            | "starling/references"
            | "starling/implementation"
            | "starling/diagnostics" => {
                let name = method.trim_start_matches("starling/");
                self.lists("/experimental/starling/bridge", name)
            }
            _ => false,
        };
        assert!(allowed, "the client cannot do this: {method} {params}");
    }

    fn registers(&self, params: &Value) -> bool {
        let all = params["registrations"].as_array().unwrap();
        all.iter().all(|one| {
            let method = one["method"].as_str().unwrap();
            self.has(&format!("/{method}/dynamicRegistration"))
        })
    }

    fn edit(&self, edit: &Value) {
        let changes = edit["documentChanges"].as_array();
        assert!(
            changes.is_some() && edit.get("changes").is_none(),
            "an edit without versions: {edit}"
        );
        let annotated = edit["changeAnnotations"].is_object();
        assert!(
            !annotated || self.has("/workspace/workspaceEdit/changeAnnotationSupport"),
            "{edit}"
        );
        for change in changes.unwrap() {
            match change["kind"].as_str() {
                Some(kind) => {
                    assert!(
                        self.lists("/workspace/workspaceEdit/resourceOperations", kind),
                        "{edit}"
                    );
                }
                None => {
                    let version = &change["textDocument"]["version"];
                    assert!(version.is_i64() || version.is_null(), "{edit}");
                    for one in change["edits"].as_array().unwrap() {
                        assert!(
                            one["range"]["start"]["line"].is_u64() && one["newText"].is_string(),
                            "{edit}"
                        );
                        assert!(annotated || one.get("annotationId").is_none(), "{edit}");
                    }
                }
            }
        }
    }

    /// Checks the result of a request from the client.
    pub fn answered(&self, method: &str, result: &Value) {
        match method {
            "initialize" => self.agreed(&result["capabilities"]),
            "textDocument/codeAction" => self.actions(result),
            "textDocument/codeLens" => lenses(result),
            "textDocument/hover" => self.hover(result),
            _ => {}
        }
    }

    fn agreed(&self, server: &Value) {
        let encoding = server["positionEncoding"].as_str().unwrap();
        let offered = self.lists("/general/positionEncodings", encoding);
        assert!(
            offered || encoding == "utf-16",
            "{encoding} was not offered"
        );
        let text = server["textDocumentSync"]["openClose"].as_bool();
        assert_eq!(text, Some(true), "{server}");
    }

    fn actions(&self, result: &Value) {
        for action in result.as_array().into_iter().flatten() {
            assert!(action["title"].is_string(), "{action}");
            let is_command = action["command"].is_string();
            if !self.has("/textDocument/codeAction/codeActionLiteralSupport") {
                assert!(
                    is_command,
                    "the client knows no action but a command: {action}"
                );
            }
            let own = if is_command {
                action
            } else {
                &action["command"]
            };
            assert!(
                own["command"].is_string() && own["arguments"].is_array(),
                "{action}"
            );
            let parts = |path| self.has(path);
            assert!(
                action.get("disabled").is_none()
                    || parts("/textDocument/codeAction/disabledSupport")
            );
            assert!(
                action.get("isPreferred").is_none()
                    || parts("/textDocument/codeAction/isPreferredSupport")
            );
            assert!(action.get("data").is_none() || parts("/textDocument/codeAction/dataSupport"));
        }
    }

    fn hover(&self, result: &Value) {
        if result.is_null() {
            return;
        }
        let kind = result["contents"]["kind"].as_str().unwrap();
        let formats = "/textDocument/hover/contentFormat";
        let silent = !self.has(formats);
        assert!(silent || self.lists(formats, kind), "a hover in {kind}");
    }
}

/// Code lenses must be complete, because the client never resolves them.
fn lenses(result: &Value) {
    for lens in result.as_array().into_iter().flatten() {
        assert!(lens["command"]["title"].is_string(), "{lens}");
        assert_eq!(
            lens["range"]["start"]["line"], lens["range"]["end"]["line"],
            "{lens}"
        );
    }
}
