//! Streamed responses.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::call::Call;
use crate::error::ApiError;
use crate::reply::ReplyWriter;
use starling_core::CallEvent;

/// Number of chunks that are buffered for a slow client.
const PIECES: usize = 16;
/// Interval of the comments that keep the connection open while the model reads the prompt.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

type Pieces = Sender<Bytes>;

/// Streams an answer as server-sent events. `first` is the first event of the model call.
pub fn events(call: Call, first: CallEvent, writer: ReplyWriter) -> Response {
    streamed("text/event-stream", |pieces| async move {
        let shown = pieces.clone();
        tokio::select! {
            // Completes when the client disconnects. Dropping `call` then cancels the model call.
            () = pieces.closed() => {}
            _ = write_events(call, first, writer, &shown) => {}
        }
    })
}

/// Streams the events of a model call as one line of JSON each.
pub fn lines(mut call: Call) -> Response {
    streamed("application/x-ndjson", |pieces| async move {
        let shown = pieces.clone();
        let write = async {
            while let Ok(event) = call.next().await {
                let is_last = matches!(event, CallEvent::Done(_));
                let Ok(mut line) = serde_json::to_vec(&event) else {
                    return;
                };
                line.push(b'\n');
                if shown.send(line.into()).await.is_err() || is_last {
                    return;
                }
            }
        };
        tokio::select! {
            () = pieces.closed() => {}
            () = write => {}
        }
    })
}

/// The client disconnected.
struct Gone;

async fn write_events(
    mut call: Call,
    first: CallEvent,
    mut writer: ReplyWriter,
    pieces: &Pieces,
) -> Result<(), Gone> {
    if let Some(chunk) = writer.first_chunk() {
        send(pieces, &chunk).await?;
    }
    let mut event = first;
    let reply = loop {
        match event {
            CallEvent::Done(reply) => break reply.map_err(ApiError::from),
            other => {
                if let Some(chunk) = writer.event_chunk(&other) {
                    send(pieces, &chunk).await?;
                }
            }
        }
        event = loop {
            match tokio::time::timeout(KEEP_ALIVE, call.next()).await {
                Ok(Ok(event)) => break event,
                Ok(Err(error)) => return send(pieces, &error.body()).await,
                Err(_) => write(pieces, ": waiting\n\n".to_owned()).await?,
            }
        };
    };
    // End the call before the last chunks are sent, so that a client that has read them finds
    // current metrics.
    drop(call);
    match reply {
        Ok(reply) => {
            for chunk in writer.last_chunks(&reply) {
                send(pieces, &chunk).await?;
            }
            write(pieces, "data: [DONE]\n\n".to_owned()).await
        }
        Err(error) => send(pieces, &error.body()).await,
    }
}

async fn send(pieces: &Pieces, chunk: &Value) -> Result<(), Gone> {
    write(pieces, format!("data: {chunk}\n\n")).await
}

async fn write(pieces: &Pieces, text: String) -> Result<(), Gone> {
    pieces.send(text.into()).await.map_err(|_| Gone)
}

fn streamed<F>(kind: &'static str, write: impl FnOnce(Pieces) -> F) -> Response
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, pieces): (_, Receiver<Bytes>) = mpsc::channel(PIECES);
    tokio::spawn(write(sender));
    let pieces = futures::stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.recv().await?;
        Some((Ok::<_, Infallible>(piece), pieces))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
