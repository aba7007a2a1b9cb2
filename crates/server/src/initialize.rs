//! Tolerates client capabilities that cannot be parsed: they count as absent, and the others are
//! kept.

use serde_json::{Map, Value, json};
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
    let sections = params
        .get_mut("capabilities")
        .and_then(Value::as_object_mut);
    for (section, said) in sections.into_iter().flatten() {
        if can_parse(&only(section, said.clone())) {
            continue;
        }
        match said.as_object_mut() {
            Some(said) => keep_readable(section, said),
            None => *said = Value::Null,
        }
    }
    params
}

/// Removes from a section of the capabilities, such as `textDocument`, those that cannot be parsed.
fn keep_readable(section: &str, said: &mut Map<String, Value>) {
    said.retain(|name, value| {
        let mut one = Map::new();
        one.insert(name.clone(), value.clone());
        let can_parse = can_parse(&only(section, Value::Object(one)));
        if !can_parse {
            tracing::warn!(
                "capabilities.{section}.{name} cannot be read and counts as absent: {value}"
            );
        }
        can_parse
    });
}

fn only(section: &str, said: Value) -> Value {
    json!({"capabilities": {section: said}})
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
        assert!(document.code_action.is_none() && document.hover.is_some());
        assert_eq!(said.workspace.unwrap().apply_edit, Some(true));
        assert_eq!(read.process_id, Some(7));
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
