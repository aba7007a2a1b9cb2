//! Managing a server: starts, crashes, back-off, and who may use it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use super::scripted::*;
use crate::keeper::ServerSupervisor;
use crate::service::{LanguageServers, ServerSelection};
use crate::session::ServerSetup;
use starling_core::{Diagnostics, Effort, LanguageService, LspAnswer, ProblemKind, Relation};

const LONG: Duration = Duration::from_secs(5);

fn ask(text: &str) -> starling_core::TextRequest {
    request("a.py", text, None, LONG)
}

fn wanted() -> ServerSelection {
    ServerSelection {
        fast: Vec::new(),
        thorough: Vec::new(),
        stops: [ProblemKind::Other].into(),
        deadline: Duration::from_secs(3),
    }
}

#[tokio::test(start_paused = true)]
async fn crashing_server_is_restarted_with_increasing_delay_and_then_abandoned() {
    let mut script = ServerScript::good(DiagnosticsMode::Pull);
    script.crash_at_start = 100;
    let keeper = script.keeper(1);
    let mut starts = 0;
    let mut said = String::new();
    for _ in 0..400 {
        let why = keeper.diagnose(ask("x")).await.unwrap_err();
        starts += keeper.news.take().len();
        said = why;
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(starts, 6);
    assert!(
        said.contains("not started again: at startup: it crashed"),
        "{said}"
    );
}

#[tokio::test(start_paused = true)]
async fn request_during_the_restart_delay_fails_immediately() {
    let mut script = ServerScript::good(DiagnosticsMode::Pull);
    script.crash_at_start = 100;
    let keeper = script.keeper(1);
    for _ in 0..2 {
        keeper.diagnose(ask("x")).await.unwrap_err();
    }
    let began = tokio::time::Instant::now();
    let why = keeper.diagnose(ask("x")).await.unwrap_err();
    assert!(why.contains("is started again in 1 s"), "{why}");
    assert!(began.elapsed() < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn missing_server_program_is_reported() {
    let about = ServerSetup {
        name: "gone".to_owned(),
        root: "/p".into(),
        settings: json!({}),
        options: json!({}),
    };
    let keeper = ServerSupervisor::new(about, Arc::new(|| Err(io::Error::other("no such file"))));
    let why = keeper.diagnose(ask("x")).await.unwrap_err();
    assert_eq!(why, "gone: it cannot be started: no such file");
    assert_eq!(
        keeper.news.take(),
        ["gone: it cannot be started: no such file"]
    );
}

#[tokio::test(start_paused = true)]
async fn server_that_misses_a_syntax_error_is_not_trusted() {
    for manner in [DiagnosticsMode::Pull, DiagnosticsMode::Push] {
        let mut script = ServerScript::good(manner);
        script.blind = true;
        let keeper = script.keeper(1);
        for _ in 0..3 {
            let why = keeper.diagnose(ask("x")).await.unwrap_err();
            assert!(why.contains("its checkers are missing"), "{why}");
        }
        assert_eq!(keeper.news.take().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn unresponsive_server_is_restarted() {
    let mut script = ServerScript::good(DiagnosticsMode::Push);
    script.silent_after = 1;
    let keeper = script.keeper(1);
    for _ in 0..3 {
        let why = keeper.diagnose(ask("x")).await.unwrap_err();
        assert_eq!(why, "scripted: no answer within 5000 ms");
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    let news = keeper.news.take();
    assert!(news[1].contains("no answer 3 times in a row"), "{news:?}");
}

#[tokio::test(start_paused = true)]
async fn queued_requests_end_by_their_deadline() {
    let mut script = ServerScript::good(DiagnosticsMode::Pull);
    script.silent = 100;
    let keeper = script.keeper(1);
    let began = tokio::time::Instant::now();
    let all = (0..100).map(|count| keeper.diagnose(ask(&format!("{count}"))));
    let all = futures::future::join_all(all).await;
    assert!(began.elapsed() <= LONG + Duration::from_millis(2));
    let full = all
        .iter()
        .filter(|found| matches!(found, Err(why) if why.contains("too many")));
    assert!(full.count() > 30);
}

#[tokio::test(start_paused = true)]
async fn diagnostics_are_cached_and_marked_as_blocking_by_configuration() {
    let asked = Arc::new(AtomicUsize::new(0));
    let keeper = ServerScript::good(DiagnosticsMode::Pull).keeper(1);
    let servers = LanguageServers::of(Some(keeper.clone()), None, &[], &wanted());
    for _ in 0..3 {
        let Diagnostics::Known { tool, problems } = servers.diagnostics(ask("x")).await else {
            panic!("not known");
        };
        asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(tool, "scripted 1.0");
        assert_eq!(words(&problems), ["x|"]);
        assert!(problems[0].stops);
    }
    let file = |name: &str| starling_syntax::FilePath::new(name);
    assert!(servers.has(Effort::Fast, &file("a.py")));
    assert!(!servers.has(Effort::Fast, &file("a.toml")));
    assert!(!servers.has(Effort::Thorough, &file("a.py")));
    let news = servers.news();
    assert_eq!(news.len(), 1);
    assert!(news[0].starts_with("scripted 1.0 was started in "));
    assert!(servers.news().is_empty());
}

#[tokio::test(start_paused = true)]
async fn missing_server_is_reported_with_reasons() {
    let reasons = ["ty: not installed".to_owned(), "pylsp: no".to_owned()];
    let servers = LanguageServers::of(None, None, &reasons, &wanted());
    let Diagnostics::Unknown { reason } = servers.diagnostics(ask("x")).await else {
        panic!("known without a server");
    };
    assert_eq!(reason, "no language server: ty: not installed; pylsp: no");
    assert_eq!(servers.news(), [reason], "told once in a run");
    assert!(servers.news().is_empty());
    let keeper = ServerScript::good(DiagnosticsMode::Pull).keeper(1);
    let servers = LanguageServers::of(Some(keeper), None, &[], &wanted());
    let other = request("a.txt", "x", None, LONG);
    let Diagnostics::Unknown { reason } = servers.diagnostics(other).await else {
        panic!("known of a text");
    };
    assert_eq!(reason, "no language server knows a.txt");
}

#[tokio::test(start_paused = true)]
async fn language_service_respects_the_configured_timeout() {
    let mut script = ServerScript::good(DiagnosticsMode::Pull);
    script.silent = 100;
    let servers = LanguageServers::of(Some(script.keeper(1)), None, &[], &wanted());
    let began = tokio::time::Instant::now();
    let answer = servers.diagnostics(ask("x")).await;
    assert!(matches!(answer, Diagnostics::Unknown { .. }));
    assert!(began.elapsed() <= Duration::from_millis(3002));
}

#[tokio::test(start_paused = true)]
async fn requests_about_names_do_not_start_a_server() {
    let keeper = ServerScript::good(DiagnosticsMode::Pull).keeper(1);
    let servers = LanguageServers::of(Some(keeper), None, &[], &wanted());
    let LspAnswer::Unknown { reason } = servers.hover(ask("x"), 0).await else {
        panic!("known without a server");
    };
    assert_eq!(reason, "scripted: it is not ready");
    servers.diagnostics(ask("x")).await;
    let LspAnswer::Known { tool, value } = servers.hover(ask("xy"), 0).await else {
        panic!("not known");
    };
    assert_eq!((tool.as_str(), value.as_str()), ("scripted 1.0", "xy|"));
    let text = "a text that is long enough";
    let found = servers.spots(ask(text), 0, Relation::References).await;
    let LspAnswer::Known { value, .. } = found else {
        panic!("{found:?}");
    };
    assert_eq!(value[0].file.as_str(), "a.py");
    assert_eq!(value[0].of, starling_text::ContentHash::of(text));
}

#[tokio::test(start_paused = true)]
async fn server_that_is_slow_with_names_is_not_restarted() {
    let mut script = ServerScript::good(DiagnosticsMode::Pull);
    script.slow_names = 100;
    let keeper = script.keeper(1);
    keeper.diagnose(ask("x")).await.unwrap();
    assert!(keeper.is_ready());
    for _ in 0..5 {
        let why = keeper.hover(ask("x"), 0).await.unwrap_err();
        assert_eq!(why, "scripted: no answer within 5000 ms");
    }
    keeper.diagnose(ask("y")).await.unwrap();
    assert!(!keeper.is_ready(), "its problems are worth more");
    assert_eq!(keeper.news.take().len(), 1, "it was started once");
}
