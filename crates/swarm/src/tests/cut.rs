//! A model that cuts every reply at 512 tokens produces the same change as one without a limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::bed::*;
use crate::*;
use starling_core::*;
use starling_models::continuing::ContinuingModel;

/// Number of bytes of about 512 tokens.
const PIECE: usize = 512 * 7 / 2;

/// A model that returns the replies of the inner model in pieces of [`PIECE`] bytes.
struct CuttingModel {
    inner: Scripted,
    left: Mutex<HashMap<String, String>>,
}

fn split(text: &str) -> (String, String) {
    let mut at = PIECE.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    (text[..at].to_owned(), text[at..].to_owned())
}

#[async_trait]
impl ChatModel for CuttingModel {
    fn profile(&self) -> &ModelProfile {
        self.inner.profile()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let left = self.left.lock().unwrap().remove(&request.conversation);
        let mut reply = match left {
            Some(text) => blank(text),
            None => self.inner.chat(request, watch).await?,
        };
        let whole = match reply.tool_calls.first_mut() {
            Some(call) => &mut call.arguments,
            None => &mut reply.text,
        };
        let (piece, rest) = split(whole);
        *whole = piece;
        if !rest.is_empty() {
            reply.finish = Finish::Length;
            self.left
                .lock()
                .unwrap()
                .insert(request.conversation.clone(), rest);
        }
        Ok(reply)
    }
}

fn blank(text: String) -> ChatReply {
    let usage = Usage {
        prompt: Tokens(10),
        cached: Tokens(0),
        output: Tokens(10),
    };
    let (model, cost) = ("scripted".to_owned(), Dollars(0.0));
    ChatReply {
        model,
        text,
        tool_calls: Vec::new(),
        finish: Finish::Stop,
        usage,
        cost,
        calls: 1,
    }
}

fn function(lines: usize, step: usize) -> String {
    let body: String = (0..lines - 2)
        .map(|at| {
            if at % 3 == 0 {
                "    total += 1\n".to_owned()
            } else {
                format!("    total += {} * {step}\n", at / 3)
            }
        })
        .collect();
    format!("def big(total):\n{body}    return total\n")
}

fn class(methods: usize, step: usize) -> String {
    let method = |at: usize| {
        let lines: String = (0..17)
            .map(|line| format!("        x = x * {line} + {step}  # ä{at}\n"))
            .collect();
        format!("    def m{at}(self, x):\n{lines}        return x\n\n")
    };
    let methods: String = (0..methods).map(method).collect();
    format!(
        "class Big:\n    \"\"\"Many.\"\"\"\n\n{}\n",
        methods.trim_end()
    )
}

async fn rewrite(
    symbol: &str,
    before: &str,
    after: &str,
    calling: ToolCalling,
    limit: bool,
) -> String {
    let reply = match calling {
        ToolCalling::Native => whole(after),
        ToolCalling::Text => say(&format!("It is longer now.\n\n```python\n{after}```\n")),
    };
    let scripted = Scripted::new(calling).on("agent", [reply]);
    let text = format!("import os\n\n\n{before}\n\nlast = 1\n");
    let mut bed = Bed::new(&[("a.py", &text)], Scripted::native()).begin(&[symbol]);
    bed.other_model = Some(if limit {
        Arc::new(ContinuingModel::new(CuttingModel {
            inner: scripted,
            left: Mutex::default(),
        }))
    } else {
        Arc::new(scripted)
    });
    let events = bed.run().await;
    assert_eq!(
        stop(&events),
        StopReason::Settled,
        "{:?}",
        malformed(&events)
    );
    bed.read("a.py")
}

#[tokio::test(start_paused = true)]
async fn replies_cut_by_the_output_limit_yield_the_same_rewrite_as_uncut_replies() {
    let cases = [
        ("a.py::big", function(700, 1), function(700, 2)),
        ("a.py::Big", class(100, 1), class(100, 2)),
    ];
    assert_eq!(cases[0].2.lines().count(), 700);
    assert!(
        cases[1].2.lines().count() >= 2000,
        "{}",
        cases[1].2.lines().count()
    );
    for (symbol, before, after) in cases {
        for calling in [ToolCalling::Native, ToolCalling::Text] {
            let cut = rewrite(symbol, &before, &after, calling, true).await;
            assert_eq!(cut, rewrite(symbol, &before, &after, calling, false).await);
            assert_eq!(
                cut,
                format!("import os\n\n\n{after}\n\nlast = 1\n"),
                "{symbol} {calling:?}"
            );
        }
    }
}
