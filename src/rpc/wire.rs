//! JSON-RPC messages with `Content-Length` headers, as the LSP frames them.

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A longer message is not read.
const MAX_BYTES: usize = 64 << 20;
/// Nor are longer headers.
const MAX_HEADER: u64 = 8 << 10;

/// Why no message can be read.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    #[error("the connection broke: {0}")]
    Io(#[from] std::io::Error),
    #[error("a message without a usable Content-Length header: {0:?}")]
    Header(String),
    #[error("headers of more than {MAX_HEADER} bytes")]
    Endless,
    #[error("a message of {0} bytes is over the limit of {MAX_BYTES}")]
    TooLong(usize),
    #[error("a message is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The next message; `None` at the end of the stream.
pub async fn read(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Value>, WireError> {
    let mut length = None;
    let mut headers = (&mut *input).take(MAX_HEADER);
    loop {
        let mut line = String::new();
        if headers.read_line(&mut line).await? == 0 {
            return match headers.limit() {
                0 => Err(WireError::Endless),
                _ => Ok(None),
            };
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(WireError::Header(line.to_owned()));
        };
        if name.eq_ignore_ascii_case("content-length") {
            let parsed = value.trim().parse::<usize>();
            length = Some(parsed.map_err(|_| WireError::Header(line.to_owned()))?);
        }
    }
    let length = length.ok_or_else(|| WireError::Header(String::new()))?;
    if length > MAX_BYTES {
        return Err(WireError::TooLong(length));
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).await?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Writes one message.
pub async fn write(output: &mut (impl AsyncWrite + Unpin), message: &Value) -> std::io::Result<()> {
    let body = message.to_string();
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    output.write_all(framed.as_bytes()).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn messages_come_back_as_they_were_written() {
        let messages = [json!({"a": "ä🙂"}), json!([1, null])];
        let mut bytes = Vec::new();
        for message in &messages {
            write(&mut bytes, message).await.unwrap();
        }
        let mut input = bytes.as_slice();
        for message in &messages {
            assert_eq!(read(&mut input).await.unwrap().as_ref(), Some(message));
        }
        assert_eq!(read(&mut input).await.unwrap(), None);
    }

    #[tokio::test]
    async fn broken_frames_are_errors() {
        let read = async |text: &str| read(&mut text.as_bytes()).await.unwrap_err().to_string();
        assert!(
            read("Content-Length: x\r\n\r\n")
                .await
                .contains("Content-Length")
        );
        assert!(read("\r\n{}").await.contains("without"));
        let endless = "x: y\r\n".repeat(2000);
        assert!(read(&endless).await.contains("headers of more"));
        assert!(
            read("Content-Length: 99999999999\r\n\r\n")
                .await
                .contains("over the limit")
        );
        assert!(read("Content-Length: 9\r\n\r\n{}").await.contains("broke"));
        assert!(
            read("content-length: 2\r\n\r\n{x")
                .await
                .contains("not JSON")
        );
    }
}
