//! Replays recorded sessions of real editors against the real server: VS Code, Neovim and Emacs as
//! recorded by `tests/traffic/record`, and with other options. Each request must be answered once,
//! within the client's announced capabilities, and the texts must be equal at the end.

#![allow(clippy::unwrap_used)]

mod buffers;
mod can;
mod fixture;
mod replay;
mod wire;

use buffers::SyncMode;
use replay::{AS_RECORDED, ClientVariation, Replay};
use serde_json::{Value, json};

/// Replays the small recordings with a modification, each as a separate test.
macro_rules! twisted {
    ($($twist:ident),*) => {$(
        mod $twist {
            #[test]
            fn neovim_with_the_plugin() {
                super::Replay::play("neovim-0.12", &super::$twist());
            }

            #[test]
            fn neovim_without_the_plugin() {
                super::Replay::play("neovim-0.10-plain", &super::$twist());
            }

            #[test]
            fn emacs() {
                super::Replay::play("emacs", &super::$twist());
            }
        }
    )*};
}

fn hello(change: fn(&mut Value)) -> ClientVariation {
    ClientVariation {
        hello: change,
        ..AS_RECORDED
    }
}

fn encodings(list: Value) -> impl Fn(&mut Value) {
    move |hello| hello["capabilities"]["general"]["positionEncodings"] = list.clone()
}

/// Removes every capability with a name, wherever it is.
fn without(value: &mut Value, name: &str) {
    match value {
        Value::Object(object) => {
            object.remove(name);
            object.values_mut().for_each(|inner| without(inner, name));
        }
        Value::Array(all) => all.iter_mut().for_each(|inner| without(inner, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn vscode() {
    Replay::play("vscode", &AS_RECORDED);
}

#[test]
fn neovim_with_the_plugin() {
    Replay::play("neovim-0.12", &AS_RECORDED);
}

#[test]
fn neovim_without_the_plugin() {
    Replay::play("neovim-0.10-plain", &AS_RECORDED);
}

#[test]
fn emacs() {
    Replay::play("emacs", &AS_RECORDED);
}

twisted!(
    utf_8_alone,
    utf_32_first,
    no_word_about_encodings,
    the_whole_text_each_time,
    nothing_is_registered_dynamically,
    no_workspace_folders,
    a_root_path_alone,
    no_root_at_all,
    no_versioned_edits,
    edits_are_not_taken,
    actions_are_commands_and_hovers_are_plain,
    no_windows_and_no_progress,
    no_lenses
);

fn utf_8_alone() -> ClientVariation {
    hello(|hello| encodings(json!(["utf-8"]))(hello))
}

fn utf_32_first() -> ClientVariation {
    hello(|hello| encodings(json!(["utf-32", "utf-16"]))(hello))
}

fn no_word_about_encodings() -> ClientVariation {
    hello(|hello| without(&mut hello["capabilities"], "general"))
}

fn the_whole_text_each_time() -> ClientVariation {
    ClientVariation {
        sync: SyncMode::Full,
        ..AS_RECORDED
    }
}

fn nothing_is_registered_dynamically() -> ClientVariation {
    hello(|hello| without(&mut hello["capabilities"], "dynamicRegistration"))
}

fn no_workspace_folders() -> ClientVariation {
    hello(|hello| {
        without(hello, "workspaceFolders");
        without(&mut hello["capabilities"], "workspaceFolders");
        let path = hello["rootUri"]
            .as_str()
            .unwrap()
            .trim_start_matches("file://")
            .to_owned();
        hello["rootPath"] = json!(path);
    })
}

fn a_root_path_alone() -> ClientVariation {
    hello(|hello| {
        without(hello, "workspaceFolders");
        let path = hello["rootUri"]
            .as_str()
            .unwrap()
            .trim_start_matches("file://")
            .to_owned();
        hello["rootPath"] = json!(path);
        hello["rootUri"] = Value::Null;
    })
}

/// Facts that need a run and do not occur without a root: commands are refused with a message.
const NO_RUN: &[&str] = &[
    "intent",
    "review_asked",
    "proposal_applied",
    "proposal_undone",
    "run_finished",
    "workspace/applyEdit",
    "window/workDoneProgress/create",
    "window/showMessageRequest",
    "window/showDocument",
];

fn no_root_at_all() -> ClientVariation {
    let change = |hello: &mut Value| {
        for name in ["workspaceFolders", "rootUri", "rootPath"] {
            hello[name] = Value::Null;
        }
    };
    ClientVariation {
        hello: change,
        never: NO_RUN,
        ..AS_RECORDED
    }
}

/// Facts that do not occur for a client that is not known to support versioned edits.
const NO_EDIT: &[&str] = &[
    "proposal_applied",
    "proposal_undone",
    "run_finished",
    "workspace/applyEdit",
];

fn no_versioned_edits() -> ClientVariation {
    let change = |hello: &mut Value| {
        without(hello, "clientInfo");
        without(&mut hello["capabilities"], "documentChanges");
    };
    ClientVariation {
        hello: change,
        never: NO_EDIT,
        ..AS_RECORDED
    }
}

fn edits_are_not_taken() -> ClientVariation {
    let change = |hello: &mut Value| hello["capabilities"]["workspace"]["applyEdit"] = json!(false);
    ClientVariation {
        hello: change,
        never: NO_EDIT,
        ..AS_RECORDED
    }
}

fn actions_are_commands_and_hovers_are_plain() -> ClientVariation {
    hello(|hello| {
        without(&mut hello["capabilities"], "codeActionLiteralSupport");
        hello["capabilities"]["textDocument"]["hover"] = json!({"contentFormat": ["plaintext"]});
    })
}

fn no_windows_and_no_progress() -> ClientVariation {
    let change = |hello: &mut Value| without(&mut hello["capabilities"], "window");
    let never = &["window/workDoneProgress/create", "window/showDocument"];
    ClientVariation {
        hello: change,
        never,
        ..AS_RECORDED
    }
}

fn no_lenses() -> ClientVariation {
    let change = |hello: &mut Value| without(&mut hello["capabilities"], "codeLens");
    ClientVariation {
        hello: change,
        ..AS_RECORDED
    }
}
