//! The built-in language servers: start commands and settings.

use std::path::Path;

use serde_json::{Value, json};

/// A server that needs no configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BuiltInServer {
    pub name: &'static str,
    pub program: &'static str,
    pub arguments: &'static [&'static str],
}

/// The servers for Python.
pub(super) const KNOWN: [BuiltInServer; 5] = [
    BuiltInServer {
        name: "ty",
        program: "ty",
        arguments: &["server"],
    },
    BuiltInServer {
        name: "basedpyright",
        program: "basedpyright-langserver",
        arguments: &["--stdio"],
    },
    BuiltInServer {
        name: "pyright",
        program: "pyright-langserver",
        arguments: &["--stdio"],
    },
    BuiltInServer {
        name: "jedi-language-server",
        program: "jedi-language-server",
        arguments: &[],
    },
    BuiltInServer {
        name: "pylsp",
        program: "pylsp",
        arguments: &[],
    },
];

/// Whether a server searches the whole workspace for this request and blocks meanwhile. Such
/// requests are not sent, because the server's diagnostics are more valuable.
pub(super) fn is_deaf_over(server: &str, provider: &str) -> bool {
    ["basedpyright", "pyright"].contains(&server) && provider == "implementationProvider"
}

/// Returns the initialization options of a server. A server based on Jedi gets the interpreter to
/// start.
pub(super) fn options(server: &str, interpreter: Option<&Path>) -> Value {
    match interpreter {
        Some(python) if server == "jedi-language-server" => {
            json!({"workspace": {"environmentPath": python}})
        }
        Some(_) | None => json!({}),
    }
}

/// Returns the settings for `workspace/configuration`. All servers share the settings, because each
/// reads only its own section. `python` is the project's interpreter; `interpreter` is the one that
/// a server may start.
pub(super) fn settings(python: Option<&Path>, interpreter: Option<&Path>) -> Value {
    let analysis = json!({
        "typeCheckingMode": "standard",
        "diagnosticMode": "openFilesOnly",
        "autoSearchPaths": true,
        "useLibraryCodeForTypes": true,
    });
    let mut python_section = json!({"analysis": analysis});
    if let Some(python) = python {
        python_section["pythonPath"] = json!(python);
    }
    let jedi = match interpreter {
        Some(interpreter) => json!({"environment": interpreter}),
        None => json!({}),
    };
    json!({
        "python": python_section,
        "basedpyright": {"analysis": analysis, "disableOrganizeImports": true},
        "pylsp": {"plugins": {
            "pycodestyle": {"enabled": false},
            "mccabe": {"enabled": false},
            "pyflakes": {"enabled": true},
            "jedi": jedi,
        }},
    })
}

/// Returns the settings of one section (`a.b` is a path), or all settings without a section.
pub(super) fn section(settings: &Value, name: Option<&str>) -> Value {
    let mut found = settings;
    for part in name.into_iter().flat_map(|name| name.split('.')) {
        found = &found[part];
    }
    found.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn override_search_is_not_requested_from_servers_that_it_blocks() {
        assert!(is_deaf_over("basedpyright", "implementationProvider"));
        assert!(!is_deaf_over("basedpyright", "referencesProvider"));
        assert!(!is_deaf_over("ty", "implementationProvider"));
    }

    #[test]
    fn settings_sections_are_found_by_dotted_path() {
        let all = settings(Some(Path::new("/v/bin/python")), None);
        assert_eq!(section(&all, Some("python.pythonPath")), "/v/bin/python");
        assert_eq!(
            section(&all, Some("basedpyright.analysis"))["diagnosticMode"],
            "openFilesOnly"
        );
        assert_eq!(section(&all, Some("no.such.thing")), Value::Null);
        assert_eq!(section(&all, None), all);
        assert_eq!(settings(None, None)["python"]["pythonPath"], Value::Null);
    }

    #[test]
    fn jedi_based_servers_get_an_interpreter_setting() {
        let python = Some(Path::new("/usr/bin/python3"));
        let all = settings(None, python);
        let jedi = section(&all, Some("pylsp.plugins.jedi.environment"));
        assert_eq!(jedi, "/usr/bin/python3");
        assert_eq!(all["python"]["pythonPath"], Value::Null);
        let told = options("jedi-language-server", python);
        assert_eq!(told["workspace"]["environmentPath"], "/usr/bin/python3");
        assert_eq!(options("ty", python), json!({}));
        assert_eq!(options("jedi-language-server", None), json!({}));
    }
}
