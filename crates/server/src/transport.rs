//! The transport: reads messages, passes them to the service in order, and writes replies and
//! requests. A message that cannot be read is answered with an error; then the next one is read.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::time::Duration;

use futures::channel::{mpsc, oneshot};
use futures::future::{Either, pending, ready, select};
use futures::{FutureExt, Sink, SinkExt, Stream, StreamExt, join, stream};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tower::Service;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};
use tower_lsp::{ClientSocket, ExitedError};
use tracing::Instrument;
use tracing::instrument::Instrumented;

use super::initialize::drop_unreadable_capabilities;
use super::spelling::UriSpellings;
use starling_rpc::frames::{Malformed, MessageReader};

/// Maximum number of requests that are processed at the same time.
const MAX_CONCURRENT: usize = 4;
/// Maximum number of requests that wait to be processed.
const QUEUE: usize = 100;
/// Maximum number of messages that are read ahead while the client does not read replies, so that
/// its `exit` is seen.
const READ_AHEAD: usize = 8192;
/// How long the processing of earlier messages may take after `exit` was read.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);
/// How long the processing of earlier messages, and the writing of their answers, may take after the
/// input ended without `exit`.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of the text of an error in bytes.
const MAX_ERROR_BYTES: usize = 4096;
/// Maximum number of bytes that are written together.
const BATCH_BYTES: usize = 64 << 10;

/// A message from the client.
enum ClientMessage {
    Response(Response),
    Request(Request),
}

/// A message with a method is a request or a notification, any other one a response.
impl<'de> Deserialize<'de> for ClientMessage {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let message = Value::deserialize(input)?;
        let read = match message.get("method") {
            Some(_) => Request::deserialize(message).map(ClientMessage::Request),
            None => Response::deserialize(message).map(ClientMessage::Response),
        };
        read.map_err(D::Error::custom)
    }
}

/// A message to the client.
#[derive(serde::Serialize)]
#[serde(untagged)]
enum ServerMessage {
    Response(Response),
    Request(Request),
}

/// Serves until the output fails, or a moment after the input ended or `exit` was read. `lost` is
/// called for every message that could not be read, because its content is unknown. `leave` is
/// cancelled by `shutdown`.
pub(super) async fn serve<S>(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    socket: ClientSocket,
    service: S,
    leave: CancellationToken,
    lost: impl FnMut(),
) where
    S: Service<Request, Response = Option<Response>>,
    S::Error: std::fmt::Display,
{
    let (requests, responses) = socket.split();
    let (requests, end_requests) = stream::abortable(until_shutdown(requests, leave.clone()));
    let (answers, answered) = mpsc::channel(0);
    let (work, working) = mpsc::channel(QUEUE);
    let working = working
        .buffer_unordered(MAX_CONCURRENT)
        .filter_map(|answer: Result<Option<Response>, S::Error>| {
            ready(answer.unwrap_or_else(|error: S::Error| {
                tracing::error!(%error, "a request was not served");
                None
            }))
        })
        .map(|response| Ok(ServerMessage::Response(shortened(response))))
        .forward(answers.clone());
    let (exits, exit) = oneshot::channel();
    let seen = ReadAheadWatch {
        exits: Some(exits),
        leave,
    };
    let spellings = UriSpellings::default();
    let reading = async {
        let (ahead, messages) = mpsc::channel(READ_AHEAD);
        let ended = tokio::select! {
            ended = dispatch(messages, service, responses, work, answers, lost, &spellings) => ended,
            never = keep_reading(input, ahead, seen) => match never {},
        };
        if let Err(error) = ended {
            tracing::error!(%error, "nothing more can be read from the client");
        }
        end_requests.abort();
    };
    // After the last message is read and all requests are answered, nothing more is written.
    let serving = pin!(async { join!(reading, working) });
    let outgoing = stream::select(answered, requests.map(ServerMessage::Request));
    let writing = pin!(write(output, outgoing, &spellings));
    let written = async {
        match select(serving, writing).await {
            Either::Left((_, writing)) => writing.await,
            Either::Right((written, _)) => written,
        }
    };
    let written = tokio::select! {
        written = written => written,
        () = long_after(exit) => return,
    };
    if let Err(error) = written {
        tracing::error!(%error, "nothing more can be written to the client");
    }
}

/// Drops the server's requests after `shutdown`. From then on the client receives only responses.
fn until_shutdown<T>(
    requests: impl Stream<Item = T>,
    leave: CancellationToken,
) -> impl Stream<Item = T> {
    requests.filter(move |_| ready(!leave.is_cancelled()))
}

/// Why reading stopped before the end of the input.
#[derive(Debug, thiserror::Error)]
enum ReadingEnded {
    #[error("the server has exited")]
    Exited(#[from] ExitedError),
    #[error("the service takes no more requests: {0}")]
    Service(String),
    #[error("the output is closed")]
    Output(#[from] mpsc::SendError),
}

/// Looks for `shutdown` and `exit` in the messages that are read ahead.
struct ReadAheadWatch {
    exits: Option<oneshot::Sender<()>>,
    leave: CancellationToken,
}

impl ReadAheadWatch {
    fn note(&mut self, message: &ReadMessage) {
        let Ok(ClientMessage::Request(request)) = message else {
            return;
        };
        match request.method() {
            "shutdown" => self.leave.cancel(),
            "exit" => {
                // The receiver is gone once the service has ended.
                let _ = self.exits.take().map(|exits| exits.send(()));
            }
            _ => {}
        }
    }
}

/// A message of the client, or the error that occurred while it was read.
type ReadMessage = Result<ClientMessage, Malformed>;

/// Completes `EXIT_PATIENCE` after `exit` was read, or `END_PATIENCE` after the input ended without
/// it.
async fn long_after(exit: oneshot::Receiver<()>) {
    let patience = match exit.await {
        Ok(()) => EXIT_PATIENCE,
        Err(_) => END_PATIENCE,
    };
    tokio::time::sleep(patience).await;
}

/// Reads to the end of the input. Never returns, because the messages still have to be served.
async fn keep_reading(
    input: impl AsyncRead + Unpin,
    ahead: mpsc::Sender<ReadMessage>,
    seen: ReadAheadWatch,
) -> Infallible {
    if let Err(error) = read_ahead(MessageReader::new(input), ahead, seen).await {
        tracing::error!(%error, "nothing more can be read from the client");
    }
    pending().await
}

/// Reads ahead while earlier messages are served, so that replies which the client does not read
/// cannot hide `exit`.
async fn read_ahead(
    mut reader: MessageReader<impl AsyncRead + Unpin>,
    mut ahead: mpsc::Sender<ReadMessage>,
    mut seen: ReadAheadWatch,
) -> io::Result<()> {
    while let Some(message) = reader.next().await? {
        seen.note(&message);
        if ahead.send(message).await.is_err() {
            break;
        }
    }
    Ok(())
}

async fn dispatch<S>(
    mut messages: impl Stream<Item = ReadMessage> + Unpin,
    mut service: S,
    mut responses: impl Sink<Response, Error = ExitedError> + Unpin,
    mut work: mpsc::Sender<Instrumented<S::Future>>,
    mut answers: mpsc::Sender<ServerMessage>,
    mut lost: impl FnMut(),
    spellings: &UriSpellings,
) -> Result<(), ReadingEnded>
where
    S: Service<Request, Response = Option<Response>>,
    S::Error: std::fmt::Display,
{
    let failed = |error: S::Error| ReadingEnded::Service(error.to_string());
    while let Some(message) = messages.next().await {
        match message {
            Ok(ClientMessage::Request(request)) => {
                if let Some(unknown) = unknown(&request) {
                    let unknown = ServerMessage::Response(shortened(unknown));
                    answers.send(unknown).await?;
                    continue;
                }
                spellings.note(&request);
                std::future::poll_fn(|context| service.poll_ready(context))
                    .await
                    .map_err(failed)?;
                let span = tracing::info_span!("request", method = request.method());
                let answer = service
                    .call(drop_unreadable_capabilities(request))
                    .instrument(span);
                work.send(answer).await?;
            }
            Ok(ClientMessage::Response(response)) => responses.send(response).await?,
            Err(Malformed::NotAMessage {
                id,
                message,
                is_response: true,
            }) => {
                tracing::error!(message, "a response of the client cannot be used");
                // An unreadable response gets no answer, but it must end the request that waits for
                // it.
                let failed = Response::from_error(id_of(id), Error::internal_error());
                responses.send(failed).await?;
            }
            Err(malformed) => {
                tracing::error!("{malformed}");
                if malformed != Malformed::Noise {
                    lost();
                }
                answers
                    .send(ServerMessage::Response(shortened(refusal(malformed))))
                    .await?;
            }
        }
    }
    Ok(())
}

/// Returns the error for a request whose method begins with `$/`. tower-lsp treats it as a
/// notification and does not answer.
fn unknown(request: &Request) -> Option<Response> {
    let id = request.id()?.clone();
    let method = request.method();
    method.starts_with("$/").then(|| {
        let mut error = Error::method_not_found();
        error.message = format!("there is no method `{method}`").into();
        Response::from_error(id, error)
    })
}

fn refusal(malformed: Malformed) -> Response {
    let message = malformed.to_string().into();
    let (code, id) = match malformed {
        Malformed::NotAMessage { id, .. } => (ErrorCode::InvalidRequest, id),
        Malformed::TooLong(_) => (ErrorCode::InvalidRequest, None),
        Malformed::Noise
        | Malformed::Headers
        | Malformed::Cut
        | Malformed::NotUtf8
        | Malformed::NotJson(_) => (ErrorCode::ParseError, None),
    };
    let data = None;
    Response::from_error(
        id_of(id),
        Error {
            code,
            message,
            data,
        },
    )
}

fn id_of(id: Option<Value>) -> Id {
    match id {
        Some(Value::String(id)) => Id::String(id),
        Some(id) => id.as_i64().map_or(Id::Null, Id::Number),
        None => Id::Null,
    }
}

/// Shortens the text of an error, which may repeat what the client sent, for example an id.
fn shortened(response: Response) -> Response {
    let (id, mut body) = response.into_parts();
    if let Err(error) = &mut body
        && error.message.len() > MAX_ERROR_BYTES
    {
        let message = &error.message;
        let begin = message.floor_char_boundary(MAX_ERROR_BYTES / 2);
        let end = message.ceil_char_boundary(message.len() - MAX_ERROR_BYTES / 2);
        error.message = format!("{} … {}", &message[..begin], &message[end..]).into();
    }
    Response::from_parts(id, body)
}

async fn write(
    output: impl AsyncWrite,
    mut messages: impl Stream<Item = ServerMessage> + Unpin,
    spellings: &UriSpellings,
) -> io::Result<()> {
    let mut output = pin!(output);
    while let Some(message) = messages.next().await {
        let mut bytes = framed(&message, spellings)?;
        // Messages that are already available are written together.
        while bytes.len() < BATCH_BYTES
            && let Some(Some(message)) = messages.next().now_or_never()
        {
            bytes.extend(framed(&message, spellings)?);
        }
        output.write_all(&bytes).await?;
        output.flush().await?;
    }
    Ok(())
}

fn framed(message: &ServerMessage, spellings: &UriSpellings) -> io::Result<Vec<u8>> {
    let mut body = serde_json::to_string(message)?;
    if !spellings.is_empty() {
        let mut message = serde_json::from_str(&body)?;
        spellings.respell(&mut message);
        body = serde_json::to_string(&message)?;
    }
    Ok(format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
}
