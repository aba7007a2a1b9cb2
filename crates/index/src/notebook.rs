//! Reads the code cells of Jupyter notebooks, however their JSON is laid out.

/// Maximum depth of nested lists and objects.
const DEEP: usize = 64;

/// One string of the `source` of a code cell. Most notebooks have one string for each line of code.
pub(super) struct SourcePart {
    /// Line of the notebook's file, counted from 1.
    pub line: u32,
    /// The text without the escapes of JSON.
    pub code: String,
}

/// Returns the sources of the code cells; `None` if the text is not JSON.
pub(super) fn code_cells(text: &str) -> Option<Vec<Vec<SourcePart>>> {
    let mut reader = Reader { text, at: 0 };
    let whole = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return None;
    }
    let mut cells = Vec::new();
    // Until format 3, cells were in worksheets, and their source was called `input`.
    let sheets = whole.get("worksheets").map(Json::items).unwrap_or_default();
    for holder in std::iter::once(&whole).chain(sheets) {
        for cell in holder.get("cells").map(Json::items).unwrap_or_default() {
            let is_code =
                matches!(cell.get("cell_type"), Some(Json::Text { value, .. }) if value == "code");
            let source = cell.get("source").or_else(|| cell.get("input"));
            if let Some(source) = source.filter(|_| is_code) {
                cells.push(parts(text, source));
            }
        }
    }
    Some(cells)
}

fn parts(text: &str, source: &Json) -> Vec<SourcePart> {
    let part = |one: &Json| match one {
        Json::Text { at, value } => Some(SourcePart {
            line: 1 + text[..*at].matches('\n').count() as u32,
            code: value.clone(),
        }),
        Json::List(_) | Json::Object(_) | Json::Other => None,
    };
    match source {
        Json::List(items) => items.iter().filter_map(part).collect(),
        Json::Text { .. } | Json::Object(_) | Json::Other => part(source).into_iter().collect(),
    }
}

/// A value of a JSON text.
enum Json {
    /// A string, with its position in the JSON text.
    Text {
        at: usize,
        value: String,
    },
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
    /// A number, `true`, `false` or `null`.
    Other,
}

impl Json {
    fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(entries) => entries
                .iter()
                .find(|(own, _)| own == key)
                .map(|(_, value)| value),
            Json::Text { .. } | Json::List(_) | Json::Other => None,
        }
    }

    fn items(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            Json::Text { .. } | Json::Object(_) | Json::Other => &[],
        }
    }
}

/// Reads JSON and keeps the positions of strings. Returns `None` at the first error.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Skips white space and then `c`; returns whether `c` was there.
    fn skip(&mut self, c: char) -> bool {
        self.skip_space();
        let is_there = self.text[self.at..].starts_with(c);
        self.at += if is_there { c.len_utf8() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > DEEP {
            return None;
        }
        if self.skip('[') {
            return self.list(depth);
        }
        if self.skip('{') {
            return self.object(depth);
        }
        let at = self.at;
        if self.text[at..].starts_with('"') {
            return Some(Json::Text {
                at,
                value: self.string()?,
            });
        }
        let rest = &self.text[at..];
        let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}');
        let length = rest.find(is_end).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then_some(Json::Other)
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        let mut items = Vec::new();
        if self.skip(']') {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.skip(',') {
                true => {}
                false => return self.skip(']').then_some(Json::List(items)),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        let mut entries = Vec::new();
        if self.skip('}') {
            return Some(Json::Object(entries));
        }
        loop {
            self.skip_space();
            let key = self.string()?;
            if !self.skip(':') {
                return None;
            }
            entries.push((key, self.value(depth + 1)?));
            match self.skip(',') {
                true => {}
                false => return self.skip('}').then_some(Json::Object(entries)),
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let mut is_escaped = false;
        let end = rest.strip_prefix('"')?.find(|c| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        })?;
        let length = end + 2;
        self.at += length;
        serde_json::from_str(&rest[..length]).ok()
    }
}
