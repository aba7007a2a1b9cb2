use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;

use super::server::{ScriptedResponse, Server};
use super::*;
use starling_core::{
    Finish, Message, ModelNotice, NoWatch, Price, Tokens, ToolCall, ToolCalling, ToolSpec,
};

pub(super) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub(super) const JSON: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";

pub(super) fn options(url: &str) -> OpenAiOptions {
    OpenAiOptions {
        profile: ModelProfile {
            name: "m".to_owned(),
            context_window: Tokens(8000),
            max_output: Tokens(1000),
            tool_calling: ToolCalling::Native,
            replayed: false,
            price: Some(Price::FREE),
        },
        model: "the-model".to_owned(),
        base_url: url.to_owned(),
        key: None,
        output_limit: OutputLimit::MaxTokens,
        temperature: None,
        omit: Vec::new(),
    }
}

pub(super) fn request() -> ChatRequest {
    ChatRequest {
        conversation: "agent a.py::f".to_owned(),
        messages: vec![
            Message::System {
                text: "be brief".to_owned(),
            },
            Message::User {
                text: "hello".to_owned(),
            },
        ],
        tools: Vec::new(),
        max_output: Tokens(4000),
        temperature: 0.0,
        top_p: None,
        seed: None,
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
        format: starling_core::AnswerFormat::Free,
    }
}

pub(super) async fn ask(script: ScriptedResponse) -> Result<ChatReply, ModelError> {
    let server = Server::start(vec![script]).await;
    let model = OpenAiModel::new(options(&server.url)).unwrap();
    model.chat(&request(), &NoWatch).await
}

/// A watch that records the streamed pieces.
#[derive(Default)]
struct DeltaRecorder(Mutex<Vec<String>>);

impl ChatWatch for DeltaRecorder {
    fn delta(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
    fn notice(&self, notice: ModelNotice) {
        panic!("the adapter gives no notice, but gave {notice:?}");
    }
}

#[tokio::test]
async fn streamed_deltas_are_reported_and_joined() {
    let server = Server::start(vec![ScriptedResponse::Raw(vec![
        EVENTS,
        ": a comment\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel",
        "lo\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\" wörld\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\
         \"prompt_tokens_details\":{\"cached_tokens\":40}}}\n\n",
        "data: [DONE]\n\n",
    ])])
    .await;
    let mut options = options(&server.url);
    options.profile.price = Some(Price {
        prompt: 10.0,
        cached: 1.0,
        output: 100.0,
    });
    let model = OpenAiModel::new(options).unwrap();
    let seen = DeltaRecorder::default();
    let reply = model.chat(&request(), &seen).await.unwrap();
    assert_eq!(reply.text, "Hello wörld");
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.calls, 1);
    assert_eq!(reply.usage.prompt, Tokens(100));
    assert_eq!(reply.usage.cached, Tokens(40));
    assert_eq!(reply.usage.output, Tokens(7));
    assert!((reply.cost.0 - (600.0 + 40.0 + 700.0) / 1e6).abs() < 1e-12);
    assert_eq!(*seen.0.lock().unwrap(), ["Hello", " wörld"]);
}

#[tokio::test]
async fn request_body_contains_all_configured_options() {
    let server = Server::start(vec![ScriptedResponse::Raw(vec![
        JSON,
        "{\"choices\":[{\"message\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}",
    ])])
    .await;
    let mut options = options(&(server.url.clone() + "/"));
    options.key = Some(ApiKey("secret-word\n".to_owned()));
    options.omit = vec!["temperature".to_owned()];
    options.output_limit = OutputLimit::MaxCompletionTokens;
    let mut request = request();
    request.seed = Some(7);
    request.stop = vec!["END".to_owned()];
    request.tools = vec![ToolSpec {
        name: "read".to_owned(),
        description: "reads".to_owned(),
        parameters: json!({"type": "object"}),
    }];
    request.messages.push(Message::Assistant {
        text: String::new(),
        tool_calls: vec![ToolCall {
            id: "c1".to_owned(),
            name: "read".to_owned(),
            arguments: "{}".to_owned(),
        }],
    });
    request.messages.push(Message::Tool {
        call_id: "c1".to_owned(),
        text: "done".to_owned(),
    });
    let model = OpenAiModel::new(options).unwrap();
    model.chat(&request, &NoWatch).await.unwrap();
    let head = server.requests()[0].to_lowercase();
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("authorization: bearer secret-word\r\n"),
        "{head}"
    );
    insta::assert_json_snapshot!(server.body());
}

#[tokio::test]
async fn request_without_api_key_has_no_authorization_header() {
    let server = Server::start(vec![ScriptedResponse::Raw(vec![
        JSON,
        "{\"choices\":[{\"message\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}",
    ])])
    .await;
    let model = OpenAiModel::new(options(&server.url)).unwrap();
    model.chat(&request(), &NoWatch).await.unwrap();
    assert!(
        !server.requests()[0]
            .to_lowercase()
            .contains("authorization")
    );
    assert_eq!(
        server.body()["max_tokens"],
        1000,
        "the model's own limit is the smaller one"
    );
}

#[tokio::test]
async fn text_tool_calling_sends_no_tools_and_no_tool_role() {
    let server = Server::start(vec![ScriptedResponse::Raw(vec![
        JSON,
        "{\"choices\":[{\"message\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}",
    ])])
    .await;
    let mut options = options(&server.url);
    options.profile.tool_calling = ToolCalling::Text;
    let mut request = request();
    request.tools = vec![ToolSpec {
        name: "read".to_owned(),
        description: "reads".to_owned(),
        parameters: json!({"type": "object"}),
    }];
    request.messages.push(Message::Tool {
        call_id: "c1".to_owned(),
        text: "done".to_owned(),
    });
    let model = OpenAiModel::new(options).unwrap();
    model.chat(&request, &NoWatch).await.unwrap();
    let body = server.body();
    assert_eq!(body.get("tools"), None);
    assert_eq!(
        body["messages"][2],
        json!({"role": "user", "content": "done"})
    );
}

#[tokio::test]
async fn streamed_tool_call_pieces_are_joined() {
    let reply = ask(ScriptedResponse::Raw(vec![
        EVENTS,
        "data: {\"choices\":[{\"delta\":{\"content\":null,\"tool_calls\":[{\"index\":0,\"id\":\"a\",\
         \"function\":{\"name\":\"read\",\"arguments\":\"{\\\"x\\\":\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\
         \"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"\",\
         \"function\":{\"name\":\"ask\",\"arguments\":{\"y\":2}}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    ]))
    .await
    .unwrap();
    assert_eq!(reply.finish, Finish::ToolCalls);
    let calls: Vec<_> = reply
        .tool_calls
        .iter()
        .map(|call| {
            (
                call.id.as_str(),
                call.name.as_str(),
                call.arguments.as_str(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [("a", "read", "{\"x\":1}"), ("call_1", "ask", "{\"y\":2}")]
    );
}

#[tokio::test]
async fn tool_calls_with_equal_index_and_different_ids_stay_separate() {
    let reply = ask(ScriptedResponse::Raw(vec![
        EVENTS,
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[\
         {\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}},\
         {\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}]},\
         \"finish_reason\":\"tool_calls\"}]}\n\n",
    ]))
    .await
    .unwrap();
    assert_eq!(reply.tool_calls.len(), 2);
}

#[tokio::test]
async fn plain_json_answer_without_usage_is_accepted() {
    let reply = ask(ScriptedResponse::Raw(vec![
        JSON,
        "{\n \"choices\": [{\"message\": {\"role\": \"assistant\",\n \"content\": [{\"type\":\"text\",\
         \"text\":\"twelve byte\"}]}, \"finish_reason\": \"eos\"}]\n}",
    ]))
    .await
    .unwrap();
    assert_eq!(reply.text, "twelve byte");
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.usage.output, Tokens::at_most("twelve byte"));
    assert_eq!(reply.usage.prompt, request().prompt_at_most());
}

#[tokio::test]
async fn half_of_a_character_in_an_answer_is_replaced() {
    let whole = r#"{"choices":[{"message":{"content":"a\ud800b"},"finish_reason":"stop"}]}"#;
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud800b\"},\"finish_reason\":\"stop\"}]}\n\n";
    for body in [vec![JSON, whole], vec![EVENTS, piece]] {
        let reply = ask(ScriptedResponse::Raw(body)).await.unwrap();
        assert_eq!(reply.text, "a\u{fffd}b");
    }
}

#[tokio::test]
async fn finish_reasons_length_and_content_filter_are_distinguished() {
    for (reason, finish) in [
        ("length", Finish::Length),
        ("content_filter", Finish::Filtered),
        ("something new", Finish::Stop),
        ("", Finish::Stop),
    ] {
        let mut answer = StreamedAnswer::default();
        answer.take(
            &json!({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]}),
            &NoWatch,
        );
        assert_eq!(answer.finish(), Some(finish), "{reason}");
    }
}

#[tokio::test]
async fn event_stream_with_wrong_content_type_is_parsed() {
    let reply = ask(ScriptedResponse::Raw(vec![
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    ]))
    .await
    .unwrap();
    assert_eq!(reply.text, "x");
}

#[tokio::test]
async fn truncated_stream_is_a_transport_error() {
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"def f\"}}]}\n\n";
    let quiet = ask(ScriptedResponse::Raw(vec![EVENTS, piece]))
        .await
        .unwrap_err();
    assert!(matches!(quiet, ModelError::Transport { .. }), "{quiet:?}");
    let loud = ask(ScriptedResponse::Raw(vec![CHUNKED, "ff\r\n", piece]))
        .await
        .unwrap_err();
    assert!(matches!(loud, ModelError::Transport { .. }), "{loud:?}");
    assert!(loud.is_transient());
}

#[tokio::test]
async fn finished_answer_is_returned_although_the_stream_stays_open() {
    tokio::time::timeout(Duration::from_secs(60), async {
        let reply = ask(ScriptedResponse::Hang(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
             data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n",
        ))
        .await
        .unwrap();
        assert_eq!(reply.text, "x");
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn answer_that_is_not_a_chat_completion_is_malformed() {
    for script in [
        ScriptedResponse::Raw(vec![EVENTS, "data: {\"choices\": [oops\n\n"]),
        ScriptedResponse::Raw(vec![JSON, "[1, 2]"]),
        ScriptedResponse::Raw(vec![
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n",
            "<html>log in</html>",
        ]),
    ] {
        let error = ask(script).await.unwrap_err();
        assert!(matches!(error, ModelError::Malformed { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn missing_server_is_an_unreachable_error() {
    let model = OpenAiModel::new(options("http://127.0.0.1:1/v1")).unwrap();
    let error = model.chat(&request(), &NoWatch).await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
    let said = error.to_string();
    for wanted in ["http://127.0.0.1:1/v1", "is the server running", "base_url"] {
        assert!(said.contains(wanted), "{said}");
    }
}

#[tokio::test]
async fn errors_contain_the_endpoint_without_secrets() {
    let url = "http://me:hunter2@127.0.0.1:1/v1?api-key=hunter3#hunter4";
    let model = OpenAiModel::new(options(url)).unwrap();
    let error = model.chat(&request(), &NoWatch).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("http://127.0.0.1:1/v1:"), "{said}");
    assert!(!said.contains("hunter"), "{said}");
    let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"def f\"}}]}\n\n";
    for script in [
        ScriptedResponse::Raw(vec![EVENTS, piece]),
        ScriptedResponse::Raw(vec![JSON, "[1, 2]"]),
        ScriptedResponse::Raw(vec!["HTTP/1.1 401 No\r\nconnection: close\r\n\r\n", "no"]),
    ] {
        let said = ask(script).await.unwrap_err().to_string();
        assert!(said.contains("http://127.0.0.1:"), "{said}");
    }
}

async fn refused(head: &'static str, body: &'static str) -> ModelError {
    ask(ScriptedResponse::Raw(vec![
        head,
        "content-type: application/json\r\nconnection: close\r\n\r\n",
        body,
    ]))
    .await
    .unwrap_err()
}

#[tokio::test]
async fn rate_limit_error_contains_the_requested_wait() {
    let error = refused(
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n",
        "{\"error\":{\"message\":\"slow down\",\"code\":null}}",
    )
    .await;
    assert_eq!(
        error,
        ModelError::RateLimited {
            model: "m".to_owned(),
            retry_after: Some(Duration::from_secs(7)),
            message: "slow down".to_owned(),
        }
    );
    let said = error.to_string();
    for wanted in ["(429): slow down", "asks to wait 7 s", "network.attempts"] {
        assert!(said.contains(wanted), "{said}");
    }
    for endless in [
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 99999999999999999999\r\n",
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1e300\r\n",
    ] {
        let said = refused(endless, "no json").await.to_string();
        assert!(said.contains("asks to wait 31536000 s"), "{said}");
    }
    for (date, seconds) in [
        ("Wed, 21 Oct 2015 07:28:20 GMT", 20),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0),
    ] {
        let head = "HTTP/1.1 429 Too Many Requests\r\ndate: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
        let head = format!("{head}retry-after: {date}\r\n");
        let dated = refused(head.leak(), "no json").await;
        let ModelError::RateLimited { retry_after, .. } = dated else {
            panic!("{dated:?}");
        };
        assert_eq!(retry_after, Some(Duration::from_secs(seconds)), "{date}");
    }
    let empty = refused(
        "HTTP/1.1 429 Too Many Requests\r\n",
        "{\"error\":{\"message\":\"pay first\",\"type\":\"insufficient_quota\"}}",
    )
    .await;
    assert!(
        matches!(empty, ModelError::Refused { status: 429, .. }),
        "{empty:?}"
    );
}

#[tokio::test]
async fn openai_adapter_does_not_retry_server_errors() {
    let server = Server::start(vec![
        ScriptedResponse::Raw(vec![
            "HTTP/1.1 529 Overloaded\r\nconnection: close\r\n\r\n",
            "busy",
        ]),
        ScriptedResponse::Raw(vec!["HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"]),
    ])
    .await;
    let model = OpenAiModel::new(options(&server.url)).unwrap();
    let error = model.chat(&request(), &NoWatch).await.unwrap_err();
    assert_eq!(
        error,
        ModelError::Server {
            model: "m".to_owned(),
            status: 529,
            message: "busy".to_owned(),
        }
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn refusal_contains_the_server_message_from_any_error_format() {
    for (body, said) in [
        ("{\"error\":{\"message\":\"no such key\"}}", "no such key"),
        ("{\"error\":\"no such key\",\"code\":17}", "no such key"),
        ("{\"detail\":\"no such key\"}", "no such key"),
        ("[{\"error\":{\"message\":\"no such key\"}}]", "no such key"),
        ("plain words", "plain words"),
    ] {
        let error = refused("HTTP/1.1 401 Unauthorized\r\n", body).await;
        let ModelError::Refused {
            status: 401,
            message,
            ..
        } = &error
        else {
            panic!("{error:?}");
        };
        assert!(message.starts_with(said), "{message}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn refusal_of_tools_switches_to_text_tool_calling() {
    for said in [
        "registry.ollama.ai/library/gemma:2b does not support tools",
        "'auto' tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        "tools param requires --jinja flag",
        "No endpoints found that support tool use.",
    ] {
        let body = format!("{{\"error\":{{\"message\":\"{said}\"}}}}");
        let head = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n".to_owned();
        let refusal: &'static str = Box::leak((head + &body).into_boxed_str());
        let server = Server::start(vec![
            ScriptedResponse::Raw(vec![refusal]),
            ScriptedResponse::Raw(vec![
                JSON,
                "{\"choices\":[{\"message\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}",
            ]),
        ])
        .await;
        let model = OpenAiModel::new(options(&server.url)).unwrap();
        assert_eq!(model.profile().tool_calling, ToolCalling::Native);
        let mut request = request();
        request.tools = vec![ToolSpec {
            name: "read".to_owned(),
            description: "reads".to_owned(),
            parameters: json!({"type": "object"}),
        }];
        let error = model.chat(&request, &NoWatch).await.unwrap_err();
        assert!(matches!(error, ModelError::NoTools { .. }), "{error:?}");
        assert_eq!(model.profile().tool_calling, ToolCalling::Text);
        assert_eq!(model.chat(&request, &NoWatch).await.unwrap().text, "ok");
        let sent = server.requests();
        assert!(sent[0].contains("\"tools\"") && !sent[1].contains("\"tools\""));
    }
}

#[tokio::test]
async fn context_length_errors_are_reported_as_too_long() {
    for body in [
        "{\"error\":{\"message\":\"x\",\"code\":\"context_length_exceeded\"}}",
        "{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens\"}}",
        "{\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\",\"message\":\"too big\"}}",
    ] {
        let error = refused("HTTP/1.1 400 Bad Request\r\n", body).await;
        let ModelError::TooLong {
            prompt,
            window,
            message,
            ..
        } = error
        else {
            panic!("{error:?}");
        };
        assert_eq!(window, Tokens(8000));
        assert!(prompt > Tokens(0));
        assert!(body.contains(&message), "the server is quoted: {message}");
    }
    let other = refused(
        "HTTP/1.1 400 Bad Request\r\n",
        "{\"error\":{\"message\":\"bad seed\"}}",
    )
    .await;
    assert!(
        matches!(other, ModelError::Refused { status: 400, .. }),
        "{other:?}"
    );
}

#[tokio::test]
async fn error_event_in_the_stream_fails_the_request() {
    let error = ask(ScriptedResponse::Raw(vec![
        EVENTS,
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n",
        "data: {\"error\":{\"message\":\"overloaded\",\"code\":\"503\"}}\n\n",
    ]))
    .await
    .unwrap_err();
    assert_eq!(
        error,
        ModelError::Server {
            model: "m".to_owned(),
            status: 503,
            message: "overloaded".to_owned(),
        }
    );
}

#[test]
fn invalid_url_or_key_is_unavailable_and_the_key_is_not_shown() {
    for url in ["", "host/v1", "ftp://host/v1", "http://"] {
        assert!(matches!(
            OpenAiModel::new(options(url)),
            Err(ModelError::Unavailable { .. })
        ));
    }
    let mut options = options("http://127.0.0.1:1/v1");
    options.key = Some(ApiKey("se\ncret".to_owned()));
    let shown = format!("{options:?}");
    assert!(!shown.contains("cret"), "{shown}");
    let Err(error) = OpenAiModel::new(options) else {
        panic!("a key of two lines cannot be sent");
    };
    assert!(!error.to_string().contains("cret"));
}

#[tokio::test]
async fn probe_lists_models_without_a_chat_request() {
    let deadline = Duration::from_secs(30);
    let asked = async |head: &'static str| {
        let server = Server::start(vec![ScriptedResponse::Raw(vec![
            head,
            "content-length: 0\r\n\r\n",
        ])])
        .await;
        let key = ApiKey("secret-word".to_owned());
        let found = probe("m", &server.url, Some(&key), deadline).await.unwrap();
        let request = server.requests().remove(0).to_lowercase();
        assert!(request.starts_with("get /v1/models "), "{request}");
        assert!(request.contains("authorization: bearer secret-word"));
        found
    };
    assert_eq!(
        asked("HTTP/1.1 200 OK\r\n").await,
        ProbeResult::Answers { models: Vec::new() }
    );
    assert_eq!(
        asked("HTTP/1.1 401 No\r\n").await,
        ProbeResult::KeyRefused { status: 401 }
    );
    assert_eq!(
        asked("HTTP/1.1 404 No\r\n").await,
        ProbeResult::Unclear { status: 404 }
    );
    let nobody = probe("m", "http://127.0.0.1:1/v1", None, deadline)
        .await
        .unwrap();
    assert!(
        matches!(nobody, ProbeResult::Unreachable { .. }),
        "{nobody:?}"
    );
    let server = Server::start(vec![ScriptedResponse::Hang("HTTP/1.1 ")]).await;
    let slow = probe("m", &server.url, None, Duration::from_millis(50))
        .await
        .unwrap();
    assert!(matches!(slow, ProbeResult::Unreachable { .. }), "{slow:?}");
    assert!(probe("m", "no url", None, deadline).await.is_err());
}
