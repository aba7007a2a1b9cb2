//! Programs of a project are not executed instead of the host's programs.

use super::{HostProject, output, text};

/// An address without a listener, so that requests for packages fail immediately.
const NOWHERE: &str = "http://127.0.0.1:9";

#[test]
fn model_download_runs_no_program_of_the_current_directory() {
    let bed = HostProject::new();
    let marker = bed.ran();
    let module = format!("open({:?}, 'w').write('pip')\n", marker);
    for name in ["pip.py", "pip/__init__.py", "runpy.py", "zipfile.py"] {
        bed.write(&format!("project/{name}"), &module);
    }
    for name in ["hf", "python3", "sh"] {
        bed.program(&format!("project/{name}"));
    }
    let path = std::env::var("PATH").unwrap();
    for start in ["", ".", bed.path("project").to_str().unwrap()] {
        let mut pull = bed.starling(&["models", "pull"]);
        pull.env("PATH", format!("{start}:{path}"))
            .env("PIP_INDEX_URL", NOWHERE)
            .env("PIP_RETRIES", "0")
            .env("HF_ENDPOINT", NOWHERE)
            .env("HF_HUB_OFFLINE", "1");
        let said = output(&mut pull);
        assert!(!said.status.success(), "{start:?}");
        let ran = std::fs::read_to_string(&marker).unwrap_or_default();
        assert_eq!(ran, "", "{start:?}: {}", text(&said.stderr));
    }
}

#[test]
fn doctor_runs_no_program_of_the_project() {
    let bed = HostProject::new();
    for name in ["git", "python3", "bwrap", "docker"] {
        bed.program(&format!("project/{name}"));
    }
    let path = std::env::var("PATH").unwrap();
    let mut doctor = bed.starling(&["doctor"]);
    doctor.env(
        "PATH",
        format!(".::{}:{path}", bed.path("project").display()),
    );
    let said = output(&mut doctor);
    let ran = std::fs::read_to_string(bed.ran()).unwrap_or_default();
    assert_eq!(ran, "", "{}", text(&said.stdout));
}
