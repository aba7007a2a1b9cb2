//! Converts text to tokens and back. Control tokens can only come from the template, never from a
//! message.

use std::collections::{HashMap, HashSet};

use candle_core::{Error, Result};
use tokenizers::Tokenizer;

use super::file::ModelFile;
use super::template::{CHATML, ChatTemplate};
use super::tokenizer::{self, FileTokens, Spelling, spelled_byte, spelled_text};
use starling_core::{Message, ToolSpec};

/// Names of tokens that end an answer. A model file itself names only one.
const ENDS: [&str; 8] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "</s>",
    "<end_of_turn>",
    "<|EOT|>",
];
/// Control tokens for filling a hole: before the preceding text, the following text, and the
/// answer; then those that begin a project and each of its files.
const HOLE: [&str; 5] = [
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    "<|repo_name|>",
    "<|file_sep|>",
];
/// Frames the number of a control token within a rendered prompt. This private use character is
/// itself framed in messages, so that no message can forge a frame.
const FRAME: char = '\u{f8fe}';

/// The tokens and the chat template of one model file.
pub struct Vocabulary {
    tokenizer: Tokenizer,
    template: ChatTemplate,
    /// Texts that are escaped in messages: the control tokens, and last the frame character.
    guarded: Vec<String>,
    /// The first characters of the guarded texts.
    openers: Vec<char>,
    control: HashSet<u32>,
    ends: HashSet<u32>,
    /// The tokens of [`HOLE`], if the model has all of them.
    hole: Option<[u32; 5]>,
    spelling: Spelling,
    /// The byte for each character in which byte-level tokens are written.
    bytes: HashMap<char, u8>,
}

impl Vocabulary {
    /// Loads the vocabulary of a model file.
    ///
    /// # Errors
    /// The tokenizer is missing or not supported, or the template is invalid.
    pub fn load(file: &ModelFile) -> Result<Self> {
        let tokens = FileTokens::read(file)?;
        let hole = tokens.ids_of(HOLE);
        let mut control: HashSet<u32> = tokens.never_text().collect();
        control.extend(hole.into_iter().flatten());
        let name = |key: &str| {
            let id = u32::try_from(file.number(key).ok()?).ok()?;
            Some((id, tokens.text(id)?.to_owned()))
        };
        let begin = name("tokenizer.ggml.bos_token_id");
        let end = name("tokenizer.ggml.eos_token_id");
        let mut special = control.clone();
        special.extend(begin.iter().chain(&end).map(|(id, _)| *id));
        let (tokenizer, spelling) = tokenizer::load(file, &tokens, &special)?;
        let named = ENDS.iter().filter_map(|text| tokenizer.token_to_id(text));
        let ends = named
            .filter(|id| control.contains(id))
            .chain(end.as_ref().map(|(id, _)| *id));
        let ends = ends.collect();
        let text = |token: Option<(u32, String)>| token.map(|(_, text)| text).unwrap_or_default();
        let source = file.text("tokenizer.chat_template").unwrap_or(CHATML);
        let template =
            ChatTemplate::new(source.to_owned(), text(begin), text(end)).map_err(Error::wrap)?;
        let mut guarded: Vec<String> = control
            .iter()
            .filter_map(|id| tokenizer.id_to_token(*id))
            .collect();
        // Longest first, so that no token is found inside a longer one.
        guarded.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        guarded.push(FRAME.to_string());
        let mut openers: Vec<char> = guarded
            .iter()
            .filter_map(|text| text.chars().next())
            .collect();
        openers.sort_unstable();
        openers.dedup();
        Ok(Self {
            tokenizer,
            template,
            guarded,
            openers,
            control,
            ends,
            hole,
            spelling,
            bytes: byte_characters(),
        })
    }

    /// Encodes a text of an answer.
    ///
    /// # Errors
    /// The tokenizer fails.
    pub fn plain(&self, text: &str) -> Result<Vec<u32>> {
        let mut tokens = Vec::new();
        self.encode_framed(&self.guard(text), &mut tokens)?;
        Ok(tokens)
    }

    /// Encodes the prompt up to the start of the answer. The template describes the tools.
    ///
    /// # Errors
    /// The template rejects the messages.
    pub fn prompt(&self, messages: &[Message], tools: &[ToolSpec]) -> Result<Vec<u32>> {
        let text = self
            .template
            .render(messages, tools, |text| self.guard(text))
            .map_err(Error::wrap)?;
        let mut tokens = Vec::new();
        self.encode_framed(&text, &mut tokens)?;
        Ok(tokens)
    }

    /// Encodes a text with a gap for the answer to fill, and optionally the text of another file as
    /// context. Returns `None` if the vocabulary has no tokens for gaps.
    ///
    /// # Errors
    /// The tokenizer fails.
    pub fn hole(
        &self,
        beside: Option<&str>,
        before: &str,
        after: &str,
    ) -> Result<Option<Vec<u32>>> {
        let Some([prefix, suffix, middle, project, file]) = self.hole else {
            return Ok(None);
        };
        let mut tokens = Vec::new();
        let mut parts = Vec::new();
        if let Some(beside) = beside {
            tokens.push(project);
            self.encode("project\n", &mut tokens)?;
            parts.push((file, format!("beside.py\n{beside}\n")));
            parts.push((file, "code.py\n".to_owned()));
        }
        parts.push((prefix, before.to_owned()));
        parts.push((suffix, after.to_owned()));
        for (opens, text) in parts {
            tokens.push(opens);
            self.encode_framed(&self.guard(&text), &mut tokens)?;
        }
        tokens.push(middle);
        Ok(Some(tokens))
    }

    /// Encodes a text with framed control tokens.
    fn encode_framed(&self, text: &str, tokens: &mut Vec<u32>) -> Result<()> {
        // Every second piece is the number of a guarded text.
        for (index, piece) in text.split(FRAME).enumerate() {
            let guarded = piece
                .parse()
                .ok()
                .and_then(|number: usize| self.guarded.get(number));
            match (index % 2, guarded) {
                (1, Some(guarded)) => self.encode_plain(guarded, tokens)?,
                _ => self.encode(piece, tokens)?,
            }
        }
        Ok(())
    }

    fn guard(&self, text: &str) -> String {
        let mut safe = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(&self.openers[..]) {
            safe.push_str(&rest[..at]);
            rest = &rest[at..];
            let mut guarded = self.guarded.iter().enumerate();
            match guarded.find(|(_, guarded)| rest.starts_with(guarded.as_str())) {
                Some((number, guarded)) => {
                    safe.push_str(&format!("{FRAME}{number}{FRAME}"));
                    rest = &rest[guarded.len()..];
                }
                None => {
                    let width = rest.chars().next().map_or(0, char::len_utf8);
                    safe.push_str(&rest[..width]);
                    rest = &rest[width..];
                }
            }
        }
        safe.push_str(rest);
        safe
    }

    fn encode(&self, text: &str, tokens: &mut Vec<u32>) -> Result<()> {
        if !text.is_empty() {
            let encoding = self
                .tokenizer
                .encode_fast(text, false)
                .map_err(Error::wrap)?;
            tokens.extend_from_slice(encoding.get_ids());
        }
        Ok(())
    }

    /// Encodes the text of a control token as ordinary text, by splitting it after the first
    /// character.
    fn encode_plain(&self, text: &str, tokens: &mut Vec<u32>) -> Result<()> {
        let cut = text.chars().next().map_or(0, char::len_utf8);
        self.encode(&text[..cut], tokens)?;
        self.encode(&text[cut..], tokens)
    }

    /// Whether this token ends the answer.
    pub fn ends(&self, token: u32) -> bool {
        self.ends.contains(&token) || self.hole.is_some_and(|hole| hole.contains(&token))
    }

    /// Returns all tokens that end an answer.
    pub fn all_ends(&self) -> Vec<u32> {
        let hole = self.hole.into_iter().flatten();
        let mut ends: Vec<u32> = self.ends.iter().copied().chain(hole).collect();
        ends.sort_unstable();
        ends
    }

    /// Returns the number of tokens in the vocabulary.
    pub fn size(&self) -> u32 {
        self.tokenizer.get_vocab_size(true) as u32
    }

    /// Returns the bytes of a token: none for a control token, often only a part of a character.
    pub fn bytes(&self, token: u32) -> Vec<u8> {
        if self.control.contains(&token) {
            return Vec::new();
        }
        let Some(text) = self.tokenizer.id_to_token(token) else {
            return Vec::new();
        };
        if self.spelling == Spelling::SentencePiece {
            return match spelled_byte(&text) {
                Some(byte) => vec![byte],
                None => spelled_text(&text).into_bytes(),
            };
        }
        let known: Option<Vec<u8>> = text
            .chars()
            .map(|character| self.bytes.get(&character).copied())
            .collect();
        known.unwrap_or_else(|| text.into_bytes())
    }
}

/// Whether a model can fill holes, according to the tokens in its file.
pub fn fills(file: &ModelFile) -> bool {
    FileTokens::read(file).is_ok_and(|tokens| tokens.ids_of(HOLE).is_some())
}

/// Returns the byte for each character of byte-level vocabularies. A printable byte is written as
/// itself, any other byte as the next free character from U+0100.
pub(super) fn byte_characters() -> HashMap<char, u8> {
    let printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let others = (0..=u8::MAX).filter(|byte| !printable(byte));
    let shifted = others
        .zip('\u{100}'..)
        .map(|(byte, character)| (character, byte));
    (0..=u8::MAX)
        .filter(printable)
        .map(|byte| (char::from(byte), byte))
        .chain(shifted)
        .collect()
}
