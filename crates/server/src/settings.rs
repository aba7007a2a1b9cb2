//! The settings that are negotiated with the client at `initialize`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tower_lsp::lsp_types::{
    InitializeParams, MarkupKind, PositionEncodingKind, ResourceOperationKind,
};

use super::paths::disk_path;
use super::protocol::{ClientCommand, EditorProvider};
use starling_text::Encoding;

/// The client's capabilities, as far as the server uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// The root directory of the first workspace folder.
    pub root: Option<PathBuf>,
    pub encoding: Encoding,
    /// `workspace/applyEdit` accepts `documentChanges` with versions.
    pub versioned_edits: bool,
    pub annotations: bool,
    /// The client can create and delete files.
    pub creates: bool,
    pub deletes: bool,
    /// The client refuses to create a file that exists. Neovim and Helix empty the file instead.
    pub refuses_existing: bool,
    pub progress: bool,
    /// The client shows lenses, and accepts requests to refresh them.
    pub lenses: bool,
    pub lens_refresh: bool,
    /// The client asks for the place of a name before it renames the name.
    pub prepares_renames: bool,
    /// The client opens documents on request.
    pub documents: bool,
    /// The client shows questions with buttons (`window/showMessageRequest`).
    pub questions: bool,
    /// The client accepts code actions that are more than commands.
    pub action_literals: bool,
    /// The client shows hovers in Markdown.
    pub markdown: bool,
    /// The commands that the client implements; `None` for a client without a Starling plugin. Such
    /// a client receives only standard LSP, no `starling/*` notifications.
    pub commands: Option<BTreeSet<ClientCommand>>,
    /// A question of the server takes no keyboard focus in the client, so it may open by itself.
    pub notices: bool,
    /// The language providers that the client's plugin forwards requests to.
    pub bridge: BTreeSet<EditorProvider>,
}

impl ClientSettings {
    /// Uses the first position encoding of the client that Starling supports; UTF-16 if there is
    /// none.
    pub fn negotiate(params: &InitializeParams) -> ClientSettings {
        let capabilities = &params.capabilities;
        let workspace = capabilities.workspace.as_ref();
        let text_document = capabilities.text_document.as_ref();
        let edit = workspace.and_then(|workspace| workspace.workspace_edit.as_ref());
        let kinds = edit
            .and_then(|edit| edit.resource_operations.as_deref())
            .unwrap_or_default();
        let encodings = capabilities
            .general
            .as_ref()
            .and_then(|general| general.position_encodings.as_deref())
            .unwrap_or_default();
        let lens_refresh = workspace
            .and_then(|workspace| workspace.code_lens.as_ref())
            .and_then(|lens| lens.refresh_support)
            == Some(true);
        ClientSettings {
            root: root_of(params),
            encoding: encodings
                .iter()
                .find_map(encoding_of)
                .unwrap_or(Encoding::Utf16),
            versioned_edits: takes_versioned_edits(params),
            annotations: edit.is_some_and(|edit| edit.change_annotation_support.is_some()),
            creates: kinds.contains(&ResourceOperationKind::Create),
            deletes: kinds.contains(&ResourceOperationKind::Delete),
            refuses_existing: refuses_existing(params),
            progress: capabilities
                .window
                .as_ref()
                .and_then(|window| window.work_done_progress)
                == Some(true),
            // lsp-mode announces its lenses only by the refresh capability.
            lenses: lens_refresh
                || text_document.is_some_and(|document| document.code_lens.is_some()),
            lens_refresh,
            prepares_renames: text_document
                .and_then(|document| document.rename.as_ref()?.prepare_support)
                == Some(true),
            documents: capabilities
                .window
                .as_ref()
                .and_then(|window| window.show_document.as_ref())
                .is_some_and(|show| show.support),
            questions: capabilities
                .window
                .as_ref()
                .is_some_and(|window| window.show_message.is_some()),
            action_literals: text_document
                .and_then(|document| document.code_action.as_ref())
                .is_none_or(|action| action.code_action_literal_support.is_some()),
            markdown: text_document
                .and_then(|document| document.hover.as_ref()?.content_format.as_ref())
                .is_none_or(|formats| formats.contains(&MarkupKind::Markdown)),
            commands: commands_of(capabilities.experimental.as_ref()),
            notices: shows_notices(capabilities.experimental.as_ref()),
            bridge: bridge_of(capabilities.experimental.as_ref()),
        }
    }

    pub fn brings(&self, command: ClientCommand) -> bool {
        self.commands.iter().flatten().any(|own| *own == command)
    }

    /// Returns whether the client announced `experimental.starling`.
    pub fn has_plugin(&self) -> bool {
        self.commands.is_some()
    }

    /// Returns whether the client can show a proposal only as a message.
    pub fn is_plain(&self) -> bool {
        !self.lenses && !self.has_plugin()
    }

    pub fn encoding_kind(&self) -> PositionEncodingKind {
        match self.encoding {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }
}

fn is_neovim(params: &InitializeParams) -> bool {
    let client = params.client_info.as_ref();
    client.is_some_and(|client| client.name == "Neovim")
}

/// Returns whether the client refuses to create an existing file. No capability announces this, so
/// it is assumed only for clients with a Starling plugin, which all refuse, except Neovim. A wrong
/// assumption could overwrite a file that appeared meanwhile.
fn refuses_existing(params: &InitializeParams) -> bool {
    let has_plugin = commands_of(params.capabilities.experimental.as_ref()).is_some();
    has_plugin && !is_neovim(params)
}

/// Returns whether the client checks the versions of edits. Neovim does but does not announce it.
fn takes_versioned_edits(params: &InitializeParams) -> bool {
    let silent = is_neovim(params);
    let Some(workspace) = &params.capabilities.workspace else {
        return silent;
    };
    let edit = workspace.workspace_edit.as_ref();
    let said = edit.and_then(|edit| edit.document_changes) == Some(true);
    workspace.apply_edit != Some(false) && (said || silent)
}

/// Returns whether the client announced that its messages with buttons take no keyboard focus.
fn shows_notices(experimental: Option<&serde_json::Value>) -> bool {
    let said = experimental.and_then(|all| all.get("starling")?.get("notices"));
    said == Some(&serde_json::Value::Bool(true))
}

/// Reads the announced language providers. Unknown ones belong to a newer plugin and are ignored.
fn bridge_of(experimental: Option<&serde_json::Value>) -> BTreeSet<EditorProvider> {
    let named = experimental.and_then(|all| all.get("starling")?.get("bridge")?.as_array());
    let named = named.map_or(&[][..], Vec::as_slice);
    let is_named = |provider: &EditorProvider| named.iter().any(|name| name == provider.name());
    EditorProvider::ALL.into_iter().filter(is_named).collect()
}

/// Reads the announced client commands. Unknown ones belong to a newer plugin and are ignored.
fn commands_of(experimental: Option<&serde_json::Value>) -> Option<BTreeSet<ClientCommand>> {
    let starling = experimental?.get("starling")?;
    if matches!(
        starling,
        serde_json::Value::Null | serde_json::Value::Bool(false)
    ) {
        return None;
    }
    let named = starling["commands"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let is_named = |command: &ClientCommand| named.iter().any(|name| name == command.name());
    Some(ClientCommand::ALL.into_iter().filter(is_named).collect())
}

fn encoding_of(kind: &PositionEncodingKind) -> Option<Encoding> {
    match kind.as_str() {
        "utf-8" => Some(Encoding::Utf8),
        "utf-16" => Some(Encoding::Utf16),
        "utf-32" => Some(Encoding::Utf32),
        _ => None,
    }
}

#[allow(deprecated, reason = "older clients send only rootUri or rootPath")]
fn root_of(params: &InitializeParams) -> Option<PathBuf> {
    let folders = params.workspace_folders.as_deref().unwrap_or_default();
    if !folders.is_empty() {
        // The client has these folders open, whatever its `rootUri` says.
        return folders.iter().find_map(|folder| disk_path(&folder.uri));
    }
    let root = params.root_uri.as_ref().and_then(disk_path);
    root.or_else(|| params.root_path.as_ref().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn negotiate(params: serde_json::Value) -> ClientSettings {
        ClientSettings::negotiate(&serde_json::from_value(params).unwrap())
    }

    #[test]
    fn first_supported_position_encoding_of_the_client_is_used() {
        let ask = |list: serde_json::Value| {
            negotiate(json!({"capabilities": {"general": {"positionEncodings": list}}})).encoding
        };
        assert_eq!(ask(json!(["utf-32", "utf-8"])), Encoding::Utf32);
        assert_eq!(ask(json!(["utf-7", "utf-8", "utf-16"])), Encoding::Utf8);
        assert_eq!(ask(json!(["utf-7"])), Encoding::Utf16);
        assert_eq!(ask(json!([])), Encoding::Utf16);
        assert_eq!(
            negotiate(json!({"capabilities": {}})).encoding,
            Encoding::Utf16
        );
    }

    #[test]
    fn first_workspace_folder_takes_precedence_over_root_uri() {
        let folder = |path: &str| json!({"uri": format!("file://{path}"), "name": "x"});
        let with = negotiate(json!({
            "capabilities": {}, "rootUri": "file:///old",
            "workspaceFolders": [folder("/a%20b"), folder("/c")],
        }));
        assert_eq!(with.root, Some(PathBuf::from("/a b")));
        let old = negotiate(json!({"capabilities": {}, "rootUri": "file:///old"}));
        assert_eq!(old.root, Some(PathBuf::from("/old")));
        let elsewhere = negotiate(json!({
            "capabilities": {}, "rootUri": "file:///old",
            "workspaceFolders": [{"uri": "file://server/old", "name": "x"}],
        }));
        assert_eq!(elsewhere.root, None);
        assert_eq!(negotiate(json!({"capabilities": {}})).root, None);
    }

    #[test]
    fn capabilities_that_the_client_omits_count_as_absent() {
        let silent = negotiate(json!({"capabilities": {}}));
        assert!(!silent.versioned_edits && !silent.annotations && !silent.progress);
        assert!(!silent.creates && !silent.deletes);
        assert!(!silent.lenses && !silent.lens_refresh && !silent.documents);
        assert!(silent.is_plain() && !silent.questions && !silent.has_plugin());
        let full = negotiate(json!({"capabilities": {
            "workspace": {
                "workspaceEdit": {
                    "documentChanges": true, "changeAnnotationSupport": {},
                    "resourceOperations": ["rename", "create", "delete"],
                },
                "codeLens": {"refreshSupport": true},
            },
            "window": {"workDoneProgress": true, "showDocument": {"support": true}},
            "textDocument": {"codeLens": {}},
        }}));
        assert!(full.lenses && full.lens_refresh && full.documents && !full.is_plain());
        assert!(full.versioned_edits && full.annotations && full.progress);
        assert!(full.creates && full.deletes);
    }

    #[test]
    fn capabilities_of_lsp_mode_are_read() {
        let lsp_mode = negotiate(json!({"capabilities": {
            "workspace": {"codeLens": {"refreshSupport": true}},
            "textDocument": {},
            "window": {"workDoneProgress": true, "showMessage": null, "showDocument": null},
        }}));
        assert!(lsp_mode.lenses && lsp_mode.lens_refresh && !lsp_mode.is_plain());
        assert!(!lsp_mode.questions && !lsp_mode.documents && !lsp_mode.has_plugin());
        let asks = json!({"window": {"showMessage": {"messageActionItem": {}}}});
        assert!(negotiate(json!({"capabilities": asks})).questions);
    }

    #[test]
    fn versioned_edits_need_capability_except_in_neovim() {
        let takes = |client: &str, edit: serde_json::Value| {
            let client = json!({"name": client});
            let capabilities = json!({"workspace": {"applyEdit": edit, "workspaceEdit": {}}});
            negotiate(json!({"clientInfo": client, "capabilities": capabilities})).versioned_edits
        };
        assert!(takes("Neovim", json!(true)) && takes("Neovim", json!(null)));
        assert!(!takes("Neovim", json!(false)) && !takes("Another", json!(true)));
    }

    #[test]
    fn code_action_and_hover_formats_are_read_from_the_capabilities() {
        let silent = negotiate(json!({"capabilities": {}}));
        assert!(silent.action_literals && silent.markdown);
        let old = negotiate(json!({"capabilities": {"textDocument": {
            "codeAction": {}, "hover": {"contentFormat": ["plaintext"]},
        }}}));
        assert!(!old.action_literals && !old.markdown);
    }

    #[test]
    fn bridged_language_providers_are_read_from_the_capabilities() {
        let bridge = |value: serde_json::Value| {
            negotiate(json!({"capabilities": {"experimental": value}})).bridge
        };
        let named = json!({"starling": {"bridge": ["references", "colour", "definition"]}});
        assert_eq!(
            bridge(named),
            [EditorProvider::Definition, EditorProvider::References].into()
        );
        for none in [
            json!({"starling": {"bridge": true}}),
            json!({"starling": {}}),
            json!(3),
        ] {
            assert_eq!(bridge(none), [].into());
        }
    }

    #[test]
    fn commands_of_the_client_are_read_from_the_capabilities() {
        let brought = |value: serde_json::Value| {
            negotiate(json!({"capabilities": {"experimental": value}})).commands
        };
        let named = json!({"starling": {"commands": ["starling.client.why", "starling.fly", 3]}});
        assert_eq!(brought(named), Some([ClientCommand::Why].into()));
        assert_eq!(
            brought(json!({"starling": {"commands": "all"}})),
            Some([].into())
        );
        assert_eq!(brought(json!({"starling": {}})), Some([].into()));
        assert_eq!(brought(json!({"starling": false})), None);
        assert_eq!(brought(json!({"starling": null})), None);
        assert_eq!(brought(json!(true)), None);
    }
}
