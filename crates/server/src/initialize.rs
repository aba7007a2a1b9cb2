//! Tolerates client capabilities that cannot be parsed: they count as absent, and the others are
//! kept.

use serde_json::{Value, json};
use tower_lsp::jsonrpc::Request;
use tower_lsp::lsp_types::InitializeParams;

/// Removes the capabilities that cannot be parsed from an `initialize` request. Other requests are
/// returned unchanged.
pub(super) fn drop_unreadable_capabilities(request: Request) -> Request {
    if request.method() != "initialize" {
        return request;
    }
    let (method, id, params) = request.into_parts();
    let request = Request::build(method);
    let request = match id {
        Some(id) => request.id(id),
        None => request,
    };
    match params {
        Some(params) => request.params(without_unreadable(params)).finish(),
        None => request.finish(),
    }
}

fn without_unreadable(mut params: Value) -> Value {
    if can_parse(&params) {
        return params;
    }
    if let Some(capabilities) = params.get_mut("capabilities") {
        let only = |capabilities| json!({"capabilities": capabilities});
        if !keep_readable("capabilities", capabilities, &only) {
            *capabilities = json!({});
        }
    }
    params
}

/// Removes the fields and list items that cannot be parsed from a capability, at any depth. Returns
/// whether the rest can be parsed. `only` returns the parameters that contain only this capability.
fn keep_readable(place: &str, said: &mut Value, only: &dyn Fn(Value) -> Value) -> bool {
    if can_parse(&only(said.clone())) {
        return true;
    }
    match said {
        Value::Object(fields) => fields.retain(|name, field| {
            let place = format!("{place}.{name}");
            keep_readable(&place, field, &|field| only(json!({ (name): field })))
        }),
        Value::Array(items) => {
            items.retain_mut(|item| keep_readable(place, item, &|item| only(json!([item]))));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    let can_parse = can_parse(&only(said.clone()));
    if !can_parse {
        tracing::warn!("{place} cannot be read and counts as absent: {said}");
    }
    can_parse
}

fn can_parse(params: &Value) -> bool {
    serde_json::from_value::<InitializeParams>(params.clone()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreadable_client_capabilities_are_dropped() {
        let params = json!({
            "processId": 7,
            "capabilities": {
                "textDocument": {
                    "codeAction": {"codeActionLiteralSupport": {}},
                    "hover": {"dynamicRegistration": true},
                },
                "window": 5,
                "workspace": {"applyEdit": true},
            },
        });
        let request = Request::build("initialize").id(1).params(params).finish();
        let params = drop_unreadable_capabilities(request)
            .params()
            .cloned()
            .unwrap();
        let read: InitializeParams = serde_json::from_value(params).unwrap();
        let said = read.capabilities;
        let document = said.text_document.unwrap();
        let action = document.code_action.unwrap();
        assert!(action.code_action_literal_support.is_none() && document.hover.is_some());
        assert_eq!(said.workspace.unwrap().apply_edit, Some(true));
        assert_eq!(read.process_id, Some(7));
    }

    #[test]
    fn unknown_values_in_lists_of_capabilities_are_skipped() {
        let params = json!({
            "capabilities": {
                "general": {"positionEncodings": [8, "utf-8", null]},
                "textDocument": {
                    "hover": {"contentFormat": ["html", "markdown"]},
                    "codeAction": {"codeActionLiteralSupport": {
                        "codeActionKind": {"valueSet": ["quickfix", 3]},
                    }},
                },
                "workspace": {
                    "applyEdit": true,
                    "workspaceEdit": {
                        "documentChanges": true,
                        "failureHandling": "explode",
                        "resourceOperations": ["explode", "create", 1],
                        "changeAnnotationSupport": {"groupsOnLabel": "perhaps"},
                    },
                },
            },
        });
        let read: InitializeParams = serde_json::from_value(without_unreadable(params)).unwrap();
        let said = serde_json::to_value(read.capabilities).unwrap();
        let expected = json!({
            "general": {"positionEncodings": ["utf-8"]},
            "textDocument": {
                "hover": {"contentFormat": ["markdown"]},
                "codeAction": {"codeActionLiteralSupport": {
                    "codeActionKind": {"valueSet": ["quickfix"]},
                }},
            },
            "workspace": {
                "applyEdit": true,
                "workspaceEdit": {
                    "documentChanges": true,
                    "resourceOperations": ["create"],
                    "changeAnnotationSupport": {},
                },
            },
        });
        assert_eq!(said, expected);
    }

    #[test]
    fn readable_initialize_requests_stay_unchanged() {
        let params = json!({"capabilities": {"window": {"workDoneProgress": true}}, "more": 1});
        let request = Request::build("initialize")
            .id(1)
            .params(params.clone())
            .finish();
        assert_eq!(
            drop_unreadable_capabilities(request).params(),
            Some(&params)
        );
        let other = Request::build("other")
            .params(json!({"capabilities": 5}))
            .finish();
        assert_eq!(drop_unreadable_capabilities(other.clone()), other);
    }
}
