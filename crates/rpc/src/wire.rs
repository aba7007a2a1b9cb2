//! Writes JSON-RPC messages with `Content-Length` headers, as the LSP frames them.

use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes one message.
pub async fn write(output: &mut (impl AsyncWrite + Unpin), message: &Value) -> std::io::Result<()> {
    let body = message.to_string();
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    output.write_all(framed.as_bytes()).await?;
    output.flush().await
}
