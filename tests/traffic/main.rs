//! What real editors say, played against the real server: VS Code, Neovim and Emacs as they were
//! recorded (`tests/traffic/record`), and as they would be with other options. Each request has to be
//! answered once, within what the client said that it can do, and the texts have to be equal at the end.

mod buffers;
mod can;
mod fixture;
mod replay;
mod wire;

use buffers::Sync;
use replay::{AS_RECORDED, Replay, Twist};
use serde_json::{Value, json};

/// All cheap recordings.
const SMALL: [&str; 3] = ["neovim-0.12", "neovim-0.10-plain", "emacs"];

fn twisted(twist: &Twist) {
    for client in SMALL {
        Replay::play(client, twist);
    }
}

fn hello(change: fn(&mut Value)) -> Twist {
    Twist {
        hello: change,
        ..AS_RECORDED
    }
}

fn encodings(list: Value) -> impl Fn(&mut Value) {
    move |hello| hello["capabilities"]["general"]["positionEncodings"] = list.clone()
}

/// Takes away each capability of a name, wherever it is.
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
fn neovim_alone() {
    Replay::play("neovim-0.10-plain", &AS_RECORDED);
}

#[test]
fn emacs() {
    Replay::play("emacs", &AS_RECORDED);
}

#[test]
fn utf_8_alone() {
    twisted(&hello(|hello| encodings(json!(["utf-8"]))(hello)));
}

#[test]
fn utf_32_first() {
    twisted(&hello(|hello| {
        encodings(json!(["utf-32", "utf-16"]))(hello)
    }));
}

#[test]
fn no_word_about_encodings() {
    twisted(&hello(|hello| {
        without(&mut hello["capabilities"], "general")
    }));
}

#[test]
fn the_whole_text_each_time() {
    twisted(&Twist {
        sync: Sync::Full,
        ..AS_RECORDED
    });
}

#[test]
fn nothing_is_registered_dynamically() {
    twisted(&hello(|hello| {
        without(&mut hello["capabilities"], "dynamicRegistration")
    }));
}

#[test]
fn no_workspace_folders() {
    twisted(&hello(|hello| {
        without(hello, "workspaceFolders");
        without(&mut hello["capabilities"], "workspaceFolders");
        let path = hello["rootUri"]
            .as_str()
            .unwrap()
            .trim_start_matches("file://")
            .to_owned();
        hello["rootPath"] = json!(path);
    }));
}

#[test]
fn a_root_path_alone() {
    twisted(&hello(|hello| {
        without(hello, "workspaceFolders");
        let path = hello["rootUri"]
            .as_str()
            .unwrap()
            .trim_start_matches("file://")
            .to_owned();
        hello["rootPath"] = json!(path);
        hello["rootUri"] = Value::Null;
    }));
}

/// Everything that rests on a run does not come about: commands are refused, in words.
const NO_RUN: &[&str] = &[
    "review_asked",
    "proposal_applied",
    "proposal_undone",
    "run_finished",
    "workspace/applyEdit",
    "window/workDoneProgress/create",
    "window/showMessageRequest",
    "window/showDocument",
];

#[test]
fn no_root_at_all() {
    let change = |hello: &mut Value| {
        for name in ["workspaceFolders", "rootUri", "rootPath"] {
            hello[name] = Value::Null;
        }
    };
    twisted(&Twist {
        hello: change,
        never: NO_RUN,
        ..AS_RECORDED
    });
}

/// A client that is not known to take versioned edits gets none.
const NO_EDIT: &[&str] = &[
    "proposal_applied",
    "proposal_undone",
    "run_finished",
    "workspace/applyEdit",
];

#[test]
fn no_versioned_edits() {
    let change = |hello: &mut Value| {
        without(hello, "clientInfo");
        without(&mut hello["capabilities"], "documentChanges");
    };
    twisted(&Twist {
        hello: change,
        never: NO_EDIT,
        ..AS_RECORDED
    });
}

#[test]
fn edits_are_not_taken() {
    let change = |hello: &mut Value| hello["capabilities"]["workspace"]["applyEdit"] = json!(false);
    twisted(&Twist {
        hello: change,
        never: NO_EDIT,
        ..AS_RECORDED
    });
}

#[test]
fn actions_are_commands_and_hovers_are_plain() {
    twisted(&hello(|hello| {
        without(&mut hello["capabilities"], "codeActionLiteralSupport");
        hello["capabilities"]["textDocument"]["hover"] = json!({"contentFormat": ["plaintext"]});
    }));
}

#[test]
fn no_windows_and_no_progress() {
    let change = |hello: &mut Value| without(&mut hello["capabilities"], "window");
    let never = &["window/workDoneProgress/create", "window/showDocument"];
    twisted(&Twist {
        hello: change,
        never,
        ..AS_RECORDED
    });
}

#[test]
fn no_lenses() {
    let change = |hello: &mut Value| without(&mut hello["capabilities"], "codeLens");
    twisted(&Twist {
        hello: change,
        ..AS_RECORDED
    });
}
