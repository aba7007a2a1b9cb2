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
use super::lost_messages::{lost_with, readable_notification};
use super::spelling::UriSpellings;
use super::window::seen;
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
/// Stands for the part of a long error text that is left out.
const LEFT_OUT: &str = " … ";
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

/// What happens between the `shutdown` of the client and its reply.
pub(super) struct Departure {
    /// Cancelled when `shutdown` was read.
    pub announced: CancellationToken,
    /// Called when `shutdown` was read. Cancels `silent`, at once or when the server has sent its last
    /// edits.
    pub prepare: Box<dyn Fn() + Send + Sync>,
    /// Cancelled when the server sends only responses from now on. Only then is `shutdown` passed to
    /// the service.
    pub silent: CancellationToken,
}

/// Serves until the output fails, or a moment after the input ended or `exit` was read.
pub(super) async fn serve<S>(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    socket: ClientSocket,
    service: S,
    departure: &Departure,
) where
    S: Service<Request, Response = Option<Response>>,
    S::Error: std::fmt::Display,
{
    let (requests, responses) = socket.split();
    let (requests, end_requests) =
        stream::abortable(until_silent(requests, departure.silent.clone()));
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
        .map(|response| Ok(ServerMessage::Response(readable_error(response))))
        .forward(answers.clone());
    let (exits, exit) = oneshot::channel();
    let seen = ReadAheadWatch {
        exits: Some(exits),
        departure,
    };
    let spellings = UriSpellings::default();
    let reading = async {
        let (ahead, messages) = mpsc::channel(READ_AHEAD);
        let service = RequestQueue {
            held: Vec::new(),
            silent: &departure.silent,
            service,
            work,
            answers,
            spellings: &spellings,
        };
        let ended = tokio::select! {
            ended = dispatch(messages, service, responses) => ended,
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

/// Drops the server's requests once only responses may be sent.
fn until_silent<T>(
    requests: impl Stream<Item = T>,
    silent: CancellationToken,
) -> impl Stream<Item = T> {
    requests.filter(move |_| ready(!silent.is_cancelled()))
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
struct ReadAheadWatch<'d> {
    exits: Option<oneshot::Sender<()>>,
    departure: &'d Departure,
}

impl ReadAheadWatch<'_> {
    fn note(&mut self, message: &ReadMessage) {
        let Ok(ClientMessage::Request(request)) = message else {
            return;
        };
        match request.method() {
            "shutdown" => {
                self.departure.announced.cancel();
                (self.departure.prepare)();
            }
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
    seen: ReadAheadWatch<'_>,
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
    mut seen: ReadAheadWatch<'_>,
) -> io::Result<()> {
    while let Some(message) = reader.next().await? {
        seen.note(&message);
        if ahead.send(message).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Passes requests and notifications to the service. From `shutdown` on, requests are held until
/// `silent` is cancelled, while notifications are still passed on.
struct RequestQueue<'s, S: Service<Request>> {
    held: Vec<Request>,
    silent: &'s CancellationToken,
    service: S,
    work: mpsc::Sender<Instrumented<S::Future>>,
    answers: mpsc::Sender<ServerMessage>,
    spellings: &'s UriSpellings,
}

impl<S> RequestQueue<'_, S>
where
    S: Service<Request, Response = Option<Response>>,
    S::Error: std::fmt::Display,
{
    async fn pass(&mut self, request: Request) -> Result<(), ReadingEnded> {
        let is_held = match request.method() {
            "shutdown" => !self.silent.is_cancelled(),
            _ => !self.held.is_empty() && request.id().is_some(),
        };
        if is_held {
            self.held.push(request);
            return Ok(());
        }
        if request.method() == "exit" {
            self.release().await?;
        }
        self.take(request).await
    }

    /// Passes the held requests to the service.
    async fn release(&mut self) -> Result<(), ReadingEnded> {
        for request in std::mem::take(&mut self.held) {
            self.take(request).await?;
        }
        Ok(())
    }

    async fn take(&mut self, request: Request) -> Result<(), ReadingEnded> {
        if let Some(unknown) = unknown(&request) {
            return self.answer(unknown).await;
        }
        self.spellings.note(&request);
        let ready = std::future::poll_fn(|context| self.service.poll_ready(context)).await;
        ready.map_err(|error| ReadingEnded::Service(error.to_string()))?;
        let span = tracing::info_span!("request", method = request.method());
        let answer = self.service.call(drop_unreadable_capabilities(request));
        self.work.send(answer.instrument(span)).await?;
        Ok(())
    }

    async fn answer(&mut self, response: Response) -> Result<(), ReadingEnded> {
        let response = ServerMessage::Response(readable_error(response));
        Ok(self.answers.send(response).await?)
    }
}

/// Passes all messages on, in their order, except for the requests that are held.
async fn dispatch<S>(
    mut messages: impl Stream<Item = ReadMessage> + Unpin,
    mut service: RequestQueue<'_, S>,
    mut responses: impl Sink<Response, Error = ExitedError> + Unpin,
) -> Result<(), ReadingEnded>
where
    S: Service<Request, Response = Option<Response>>,
    S::Error: std::fmt::Display,
{
    let silent = service.silent;
    loop {
        let message = tokio::select! {
            biased;
            () = silent.cancelled(), if !service.held.is_empty() => {
                service.release().await?;
                continue;
            }
            message = messages.next() => message,
        };
        match message {
            Some(Ok(ClientMessage::Request(request))) => {
                service.pass(readable_notification(request)).await?
            }
            Some(Ok(ClientMessage::Response(response))) => responses.send(response).await?,
            Some(Err(Malformed::NotAMessage {
                id,
                message,
                is_response: true,
                ..
            })) => {
                tracing::error!(message, "a response of the client cannot be used");
                // An unreadable response gets no answer, but it must end the request that waits for
                // it.
                let failed = Response::from_error(id_of(id), Error::internal_error());
                responses.send(failed).await?;
            }
            Some(Err(malformed)) => {
                tracing::error!("{malformed}");
                if let Some(lost) = lost_with(&malformed) {
                    service.pass(lost.into_notification()).await?;
                }
                service.answer(refusal(malformed)).await?;
            }
            None => break,
        }
    }
    service.release().await
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
        | Malformed::NotUtf8 { .. }
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

/// Escapes the invisible characters of the texts of an error, and shortens them. They may repeat
/// what the client sent, for example an id.
fn readable_error(response: Response) -> Response {
    let (id, mut body) = response.into_parts();
    if let Err(error) = &mut body {
        error.message = readable(&error.message).into();
        if let Some(Value::String(data)) = &mut error.data {
            *data = readable(data);
        }
    }
    Response::from_parts(id, body)
}

fn readable(text: &str) -> String {
    // A long text is shortened first, so that not all of it is escaped.
    shortened(&seen(&shortened(text)))
}

/// Leaves out the middle of a long text.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_ERROR_BYTES {
        return text.to_owned();
    }
    let half = (MAX_ERROR_BYTES - LEFT_OUT.len()) / 2;
    let begin = text.floor_char_boundary(half);
    let end = text.ceil_char_boundary(text.len() - half);
    format!("{}{LEFT_OUT}{}", &text[..begin], &text[end..])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_texts_escape_invisible_characters_and_are_short() {
        let error = Error {
            code: ErrorCode::InvalidParams,
            message: "no run `\u{202e}\x1b[2J`\nsecond line".into(),
            data: Some("\x07".into()),
        };
        let response = readable_error(Response::from_error(Id::Number(1), error));
        let (_, body) = response.into_parts();
        let error = body.unwrap_err();
        assert_eq!(error.message, "no run `\\u{202e}\\u{1b}[2J`\nsecond line");
        assert_eq!(error.data, Some("\\u{7}".into()));
        for long in ["\x1b", "ä", "a"] {
            let text = readable(&long.repeat(1 << 20));
            assert!(text.len() <= MAX_ERROR_BYTES, "{long:?}: {}", text.len());
        }
    }
}
