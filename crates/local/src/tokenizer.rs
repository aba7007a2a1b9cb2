//! Builds the tokenizer that a GGUF file describes.

use std::collections::HashSet;

use candle_core::quantized::gguf_file::Value;
use candle_core::{Error, Result, bail};
use tokenizers::models::bpe::{BPE, Merges, Vocab};
use tokenizers::normalizers::{NFC, NormalizerWrapper, Prepend, Replace, Sequence as Normalizers};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

use super::file::ModelFile;

/// The character for a blank in SentencePiece vocabularies.
const BLANK: &str = "\u{2581}";
/// GGUF token types: an unknown text, a control token, a token that was added to the trained vocabulary,
/// an unused token, and a byte.
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const ADDED: i64 = 4;
const UNUSED: i64 = 5;
const BYTE: i64 = 6;

/// How the tokens of a vocabulary are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Each byte is one character.
    Bytes,
    /// As text with U+2581 for blanks; a byte that is no text as `<0x0A>`.
    SentencePiece,
}

/// The tokens in a file, by id.
pub struct FileTokens {
    texts: Vec<String>,
    /// The GGUF token types. Tokens after these are ordinary ones.
    kinds: Vec<i64>,
}

impl FileTokens {
    /// Reads the tokens.
    ///
    /// # Errors
    /// The file has none, or they are damaged.
    pub fn read(file: &ModelFile) -> Result<Self> {
        let Some(texts) = file.array("tokenizer.ggml.tokens") else {
            bail!("the file has no tokens")
        };
        let kinds = file.array("tokenizer.ggml.token_type").unwrap_or_default();
        Ok(Self {
            texts: strings(texts)?,
            kinds: kinds.iter().map(whole).collect(),
        })
    }

    pub fn text(&self, id: u32) -> Option<&str> {
        self.texts.get(id as usize).map(String::as_str)
    }

    /// Returns the ids of the tokens with these texts; `None` if one is missing. The search starts at the
    /// end, where control tokens are.
    pub fn ids_of<const N: usize>(&self, texts: [&str; N]) -> Option<[u32; N]> {
        let id = |wanted: &str| self.texts.iter().rposition(|text| text == wanted);
        let ids: Option<Vec<u32>> = (texts.iter())
            .map(|text| id(text).and_then(|id| u32::try_from(id).ok()))
            .collect();
        ids?.try_into().ok()
    }

    /// Returns the ids of tokens that never represent text: control tokens and unused tokens.
    pub fn never_text(&self) -> impl Iterator<Item = u32> {
        let ids = 0..self.texts.len() as u32;
        ids.filter(|id| matches!(self.kind(*id), Some(CONTROL | UNUSED)))
    }

    fn kind(&self, id: u32) -> Option<i64> {
        self.kinds.get(id as usize).copied()
    }

    fn vocabulary(&self) -> Vocab {
        self.texts.iter().cloned().zip(0..).collect()
    }
}

/// Builds the tokenizer of a model file. The text of a `special` token always becomes this one token.
///
/// # Errors
/// The kind of tokenizer is not supported, or a part is missing.
pub fn load(
    file: &ModelFile,
    tokens: &FileTokens,
    special: &HashSet<u32>,
) -> Result<(Tokenizer, Spelling)> {
    let (mut tokenizer, spelling) = match file.text("tokenizer.ggml.model").unwrap_or_default() {
        "gpt2" => (byte_level(file, tokens)?, Spelling::Bytes),
        "llama" => (sentence_piece(file, tokens)?, Spelling::SentencePiece),
        other => bail!("tokenizers of the kind `{other}` are not supported, only gpt2 and llama"),
    };
    let added = |(id, text): (u32, &String)| {
        let is_special = special.contains(&id);
        // Runs of blanks count as added ones in SentencePiece, but are merged like ordinary ones.
        let is_added = tokens.kind(id) == Some(ADDED) && !text.contains(BLANK);
        let token = AddedToken::from(text.as_str(), is_special).normalized(false);
        (is_special || is_added).then_some(token)
    };
    let added = (0u32..).zip(&tokens.texts).filter_map(added);
    tokenizer.add_tokens(added).map_err(Error::wrap)?;
    Ok((tokenizer, spelling))
}

/// Returns the byte that a token of a SentencePiece vocabulary stands for.
pub fn spelled_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    u8::from_str_radix(digits, 16).ok()
}

/// Returns the text that a token of a SentencePiece vocabulary stands for.
pub fn spelled_text(text: &str) -> String {
    text.replace(BLANK, " ")
}

fn byte_level(file: &ModelFile, tokens: &FileTokens) -> Result<Tokenizer> {
    let Some(merges) = file.array("tokenizer.ggml.merges") else {
        bail!("the file has no merges of its tokens")
    };
    let merge = |merge: String| match merge.split_once(' ') {
        Some((left, right)) => Ok((left.to_owned(), right.to_owned())),
        None => bail!("the merge `{merge}` has only one part"),
    };
    let merges: Merges = strings(merges)?
        .into_iter()
        .map(merge)
        .collect::<Result<_>>()?;
    let name = file.text("tokenizer.ggml.pre").unwrap_or("default");
    let Some(words) = WordRules::named(name) else {
        bail!("the tokenizer `{name}` is not supported")
    };
    let model = BPE::builder()
        .vocab_and_merges(tokens.vocabulary(), merges)
        .ignore_merges(words.whole_words)
        .build()
        .map_err(Error::wrap)?;
    let mut tokenizer = Tokenizer::new(model);
    if words.is_composed {
        (tokenizer.with_normalizer(Some(NFC))).map_err(Error::wrap)?;
    }
    let parts = words.pre_tokenizers()?;
    tokenizer.with_pre_tokenizer(Some(Sequence::new(parts)));
    Ok(tokenizer)
}

/// How a text is cut into words, within which tokens are merged.
#[derive(Default)]
struct WordRules {
    /// Each piece that matches is a word, one pattern after the other. Without patterns, those of GPT-2.
    patterns: &'static [&'static str],
    /// Whether each digit is a word.
    single_digits: bool,
    /// Whether characters are composed first (NFC).
    is_composed: bool,
    /// Whether a word that is a token is not made by merging.
    whole_words: bool,
}

impl WordRules {
    /// Returns the rules with this name in `tokenizer.ggml.pre`.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "" | "default" | "gpt-2" => Self::default(),
            "qwen2" | "deepseek-r1-qwen" => Self {
                patterns: &[
                    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
                ],
                is_composed: true,
                ..Self::default()
            },
            "llama-bpe" | "llama3" | "llama-v3" | "smaug-bpe" => Self {
                patterns: &[
                    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
                ],
                whole_words: true,
                ..Self::default()
            },
            "tekken" => Self {
                patterns: &[
                    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
                ],
                whole_words: true,
                ..Self::default()
            },
            "deepseek-coder" => Self {
                patterns: &[
                    r"[\r\n]",
                    r"\s?\p{L}+",
                    r"\s?\p{P}+",
                    "[\u{4e00}-\u{9fa5}\u{800}-\u{4e00}\u{ac00}-\u{d7ff}]+",
                ],
                single_digits: true,
                ..Self::default()
            },
            "smollm" | "starcoder" | "refact" | "command-r" => Self {
                single_digits: true,
                ..Self::default()
            },
            _ => return None,
        })
    }

    fn pre_tokenizers(&self) -> Result<Vec<PreTokenizerWrapper>> {
        let mut parts: Vec<PreTokenizerWrapper> = Vec::new();
        for pattern in self.patterns {
            let pattern = SplitPattern::Regex((*pattern).to_owned());
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
            parts.push(split.map_err(Error::wrap)?.into());
        }
        if self.single_digits {
            parts.push(Digits::new(true).into());
        }
        parts.push(ByteLevel::new(false, true, self.patterns.is_empty()).into());
        Ok(parts)
    }
}

fn sentence_piece(file: &ModelFile, tokens: &FileTokens) -> Result<Tokenizer> {
    let Some(scores) = file.array("tokenizer.ggml.scores") else {
        bail!("the file has no scores of its tokens")
    };
    let scores: Vec<f32> = scores
        .iter()
        .map(Value::to_f32)
        .collect::<candle_core::Result<_>>()?;
    let vocabulary = tokens.vocabulary();
    let merges = merges_by_score(tokens, &vocabulary, &scores);
    let mut builder = BPE::builder()
        .vocab_and_merges(vocabulary, merges)
        .byte_fallback(true)
        .fuse_unk(true);
    let mut ids = 0..tokens.texts.len() as u32;
    let unknown = ids.find(|id| tokens.kind(*id) == Some(UNKNOWN));
    if let Some(text) = unknown.and_then(|id| tokens.text(id)) {
        builder = builder.unk_token(text.to_owned());
    }
    let mut tokenizer = Tokenizer::new(builder.build().map_err(Error::wrap)?);
    let mut rules: Vec<NormalizerWrapper> = Vec::new();
    if file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true) {
        rules.push(Prepend::new(BLANK.to_owned()).into());
    }
    rules.push(Replace::new(" ", BLANK).map_err(Error::wrap)?.into());
    (tokenizer.with_normalizer(Some(Normalizers::new(rules)))).map_err(Error::wrap)?;
    Ok(tokenizer)
}

/// Returns the pairs of tokens that make another token, those with the highest score first, as
/// SentencePiece merges them.
fn merges_by_score(tokens: &FileTokens, vocabulary: &Vocab, scores: &[f32]) -> Merges {
    let mut merges = Vec::new();
    for (id, text) in (0u32..).zip(&tokens.texts) {
        if matches!(tokens.kind(id), Some(UNKNOWN | CONTROL | UNUSED | BYTE)) {
            continue;
        }
        let score = scores.get(id as usize).copied().unwrap_or(f32::MIN);
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            if let (Some(a), Some(b)) = (vocabulary.get(left), vocabulary.get(right)) {
                merges.push((score, *a, *b, (left.to_owned(), right.to_owned())));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    merges.into_iter().map(|(_, _, _, pair)| pair).collect()
}

fn strings(values: &[Value]) -> Result<Vec<String>> {
    let text = |value: &Value| value.to_string().cloned();
    values.iter().map(text).collect()
}

fn whole(value: &Value) -> i64 {
    match value {
        Value::I32(number) => i64::from(*number),
        Value::U32(number) => i64::from(*number),
        Value::U8(_)
        | Value::I8(_)
        | Value::U16(_)
        | Value::I16(_)
        | Value::U64(_)
        | Value::I64(_)
        | Value::F32(_)
        | Value::F64(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Array(_) => 0,
    }
}
