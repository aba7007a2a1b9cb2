//! Reads the values of secrets from the files that contain them: environment files, JSON, YAML, TOML and
//! INI, XML, `.netrc`, `.git-credentials`, `.pgpass`, private keys, and files of one token.

mod xml;

use serde_json::Value;

/// Minimum length of a secret, in characters. A shorter one would occur in ordinary words.
pub(super) const SHORTEST: usize = 8;
/// Minimum length of a line of a private key to redact. A shorter line could be an ordinary word.
const KEY_LINE: usize = 16;
/// Maximum number of lines of a quoted value.
const VALUE_LINES: usize = 200;
/// File name to pass to [`values_of`] for the configuration of a git repository.
pub(super) const GIT_CONFIG: &str = ".git/config";
/// Maximum nesting depth of JSON that is read.
const DEPTH: usize = 32;
/// Minimum length of a value that looks like words to count as a secret if its name is that of a
/// secret. A shorter one, such as `postgres`, would occur in the names of tests.
const PHRASE: usize = 16;
/// Parts of setting names whose values are secrets even if the values look like words.
const TELLING: [&str; 9] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "pass",
    "pwd",
    "credential",
    "auth",
];
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Returns the secrets in a file with this name and text.
pub(super) fn values_of(file_name: &str, text: &str) -> Vec<String> {
    let name = file_name.to_ascii_lowercase();
    let mut found = Vec::new();
    let text = &text.replace("\r\n", "\n").replace('\r', "\n");
    if name == GIT_CONFIG {
        for address in addresses(text) {
            login_of(address, &mut found);
        }
        in_git_config(text, &mut found);
        return found;
    }
    private_keys(text, &mut found);
    // In JSON and in environment files, a private key can be on a single line.
    if text.contains("\\n") {
        private_keys(&text.replace("\\r", "").replace("\\n", "\n"), &mut found);
    }
    if text.contains("-----BEGIN ") && !text.contains(['=', ':', '{']) {
        return found;
    }
    for address in addresses(text) {
        login_of(address, &mut found);
    }
    if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
        in_json("", &value, DEPTH, &mut found);
        as_written_in_json(text, &mut found);
        return found;
    }
    if name.contains("netrc") {
        in_netrc(text, &mut found);
    } else if name.ends_with("pgpass") {
        text.lines().for_each(|line| in_pgpass(line, &mut found));
    } else if name.ends_with(".csv") {
        // Some exported key files have `NAME=VALUE` lines instead of a header row.
        if first_line_is_assignment(text) {
            in_lines(text, &mut found);
        } else {
            in_table(text, &mut found);
        }
    } else if name.contains(".xml") || text.trim_start().starts_with("<?xml") {
        xml::in_xml(text, &mut found);
    } else {
        in_lines(text, &mut found);
        if name.starts_with("password") {
            let words = text.split_whitespace();
            words.for_each(|word| add("password", unquoted(word), &mut found));
        }
    }
    found
}

/// Adds a value, and each line of a multi-line value, unless it is likely to be an ordinary word.
fn add(name: &str, value: &str, found: &mut Vec<String>) {
    let value = value.trim();
    if value.contains('\n') {
        value.lines().for_each(|line| add(name, line, found));
        let is_known = |line: &str| found.iter().any(|known| known == line.trim());
        if value.lines().any(is_known) {
            found.push(value.to_owned());
        }
        return;
    }
    let name = name.to_ascii_lowercase();
    let is_telling = TELLING.iter().any(|word| name.contains(word));
    let is_phrase = is_telling && value.len() >= PHRASE;
    let is_secret = if value.contains("://") {
        let address = addresses(value).next();
        address.is_some_and(|address| login_of(address, &mut Vec::new()))
    } else {
        !is_path(value) && (is_phrase || !is_plain(value))
    };
    if is_secret && value.len() >= SHORTEST && !is_number(value) {
        found.push(value.to_owned());
    }
}

/// Reads the values of lines such as `KEY=VALUE`, `key: value` and `"key": "value",`, with their
/// continuation lines.
fn in_lines(text: &str, found: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    // The key of the indented lines that follow, with the indentation of the key.
    let mut above: Option<(String, usize)> = None;
    // The key of the last value, which can continue in indented lines.
    let mut last = "";
    let mut at = 0;
    while let Some(line) = lines.get(at).copied() {
        at += 1;
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') && !line.contains("://") {
            continue;
        }
        let known = found.len();
        in_shell(line, found);
        in_statements(line, found);
        for (at, call) in line.match_indices("define(") {
            in_define(&line[at + call.len()..], found);
        }
        let is_read = found.len() > known;
        if is_read && line.contains("define(") {
            continue;
        }
        let (name, value) = named(line);
        if let Some(item) = line.strip_prefix("- ")
            && (name.is_empty() || item.starts_with(['"', '\'', '[', '{', '-', '&', '!']))
        {
            let above = above.as_ref().map_or("", |(above, _)| above);
            item_of_list(above, item, &lines[at..], found);
            continue;
        }
        if name.is_empty() {
            let is_only_line = || lines.iter().filter(|line| !line.trim().is_empty()).count() == 1;
            if !is_read && is_only_line() {
                add("token", line, found);
            } else if indent > 0 {
                add(last, unquoted(line), found);
            } else if let [name, value] = words(line).as_slice() {
                add(name, unquoted(value), found);
            }
            continue;
        }
        last = name;
        if let Some(end) = end_of_heredoc(value) {
            at += heredoc(name, end, &lines[at..], found);
            continue;
        }
        let marked = value;
        let value = without_marks(marked);
        if value.len() < marked.len() {
            // In a file that is not YAML, the marks before the value are part of the value.
            add(name, unquoted(marked), found);
        }
        let is_block = value.starts_with(['|', '>']) && value.len() <= 3;
        if value.is_empty() || is_block {
            above = Some((name.to_owned(), indent));
            if is_block {
                at += block(name, indent, &lines[at..], found);
            }
            continue;
        }
        at += value_from(name, value, &lines[at..], found);
    }
}

/// Adds a value that can continue in the following lines. Returns the number of continuation lines.
fn value_from(name: &str, value: &str, below: &[&str], found: &mut Vec<String>) -> usize {
    let (whole, more) = continued(value, below);
    match whole {
        Some(text) => add(name, &text, found),
        None => whole_value(name, value, &below[more..], found),
    }
    // The value after escapes are resolved, as most programs read it.
    let written = unquoted(value);
    if written.contains("\\n") {
        let meant = written.replace("\\r", "").replace("\\n", "\n");
        add(name, &meant, found);
    }
    more
}

/// Adds the lines of a YAML block, which are indented more than its key. Returns their number.
fn block(name: &str, indent: usize, below: &[&str], found: &mut Vec<String>) -> usize {
    let inside =
        |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
    let block = below.iter().take_while(inside);
    let block: Vec<&str> = block.map(|line| line.trim()).collect();
    add(name, &block.join("\n"), found);
    block.len()
}

/// Returns the end marker of a heredoc that the value opens, for example `EOT` for `<<EOT` or
/// `<<-"EOT"`.
fn end_of_heredoc(value: &str) -> Option<&str> {
    let tag = value.strip_prefix("<<")?;
    let tag = tag.trim_start_matches(['-', '~']).trim_matches(QUOTES);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    (!tag.is_empty() && tag.chars().all(is_part)).then_some(tag)
}

/// Adds the lines of a heredoc. Returns their number.
fn heredoc(name: &str, end: &str, below: &[&str], found: &mut Vec<String>) -> usize {
    let lines = below.iter().take(VALUE_LINES);
    let lines: Vec<&str> = lines
        .map(|line| line.trim())
        .take_while(|line| *line != end)
        .collect();
    add(name, &lines.join("\n"), found);
    lines.len()
}

/// Adds the quoted values of all assignments in a line, such as `$a = 'x'; $b = "y";`.
fn in_statements(line: &str, found: &mut Vec<String>) {
    for (at, _) in line.match_indices('=') {
        let value = line[at + 1..].trim_start_matches('>').trim_start();
        if value.starts_with(QUOTES) {
            let before = line[..at].trim_end();
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let name = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
            add(name, unquoted(value), found);
        }
    }
}

/// Adds JSON strings as written in the file if they contain optional escapes such as `\/`.
fn as_written_in_json(text: &str, found: &mut Vec<String>) {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('"') {
        let mut is_escaped = false;
        let ends = |c: char| {
            let is_end = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        };
        let end = after.find(ends).unwrap_or(after.len());
        let (written, more) = after.split_at(end);
        let meant: Option<String> = serde_json::from_str(&format!("\"{written}\"")).ok();
        let usual = meant.map(|meant| Value::from(meant).to_string());
        if written.contains('\\')
            && usual.is_some_and(|usual| usual[1..usual.len() - 1] != *written)
        {
            add("", written, found);
        }
        rest = more.get(1..).unwrap_or_default();
    }
}

/// Reads an item of a YAML list. The item can be a list itself.
fn item_of_list(name: &str, item: &str, below: &[&str], found: &mut Vec<String>) {
    let mut item = item.trim();
    while let Some(inner) = item.strip_prefix("- ") {
        item = inner.trim();
    }
    let value = without_marks(item);
    if value.len() < item.len() {
        add(name, unquoted(item), found);
    }
    whole_value(name, value, below, found);
}

/// Adds a value that ends on its line, or a list or table that can continue in the following lines.
fn whole_value(name: &str, value: &str, below: &[&str], found: &mut Vec<String>) {
    if !value.starts_with(['[', '{']) {
        add(name, unquoted(value), found);
        return;
    }
    let whole = bracketed(value, below);
    quoted(&whole).for_each(|text| add(name, text, found));
    in_flow(name, &whole, found);
}

/// Returns a YAML value without its anchor and its tag, such as `value` for `&name value` or `!!str
/// value`.
fn without_marks(value: &str) -> &str {
    let mut rest = value;
    while rest.starts_with(['&', '!']) {
        rest = rest
            .split_once(char::is_whitespace)
            .map_or("", |(_, rest)| rest.trim_start());
    }
    rest
}

/// Returns a list or table with its continuation lines. If it is never closed, returns only its first
/// line.
fn bracketed(value: &str, below: &[&str]) -> String {
    let mut whole = String::new();
    let mut depth = 0_usize;
    let mut quote = None;
    let lines = std::iter::once(&value).chain(below.iter().take(VALUE_LINES));
    for line in lines {
        let mut last = ' ';
        for c in line.chars() {
            match (quote, c) {
                (Some(open), _) if c == open && last != '\\' => quote = None,
                (None, '#') if last.is_whitespace() => break,
                (None, '[' | '{') => depth += 1,
                (None, ']' | '}') => depth = depth.saturating_sub(1),
                (None, _) if QUOTES.contains(&c) => quote = Some(c),
                (Some(_) | None, _) => {}
            }
            whole.push(c);
            last = c;
        }
        if depth == 0 {
            return whole;
        }
        // A comma may have been removed from the end of the first line.
        whole.push_str(match quote {
            Some(_) => "\n",
            None => ",\n",
        });
    }
    value.to_owned()
}

/// Adds the values of a shell line: all assignments (`export A="x" B=y`), `set -gx NAME value` of the
/// fish shell, and the defaults in `${NAME:-value}`.
fn in_shell(line: &str, found: &mut Vec<String>) {
    let words = words(line);
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(is_part)
    };
    for word in &words {
        if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) {
            add(name, unquoted(value), found);
        }
    }
    if let ["set" | "setenv", rest @ ..] = words.as_slice() {
        let mut rest = rest.iter().skip_while(|word| word.starts_with('-'));
        if let Some(name) = rest.next().filter(|name| is_name(name)) {
            rest.for_each(|value| add(name, unquoted(value), found));
        }
    }
    for (at, _) in line.match_indices("${") {
        let inside = line[at + 2..].split('}').next().unwrap_or_default();
        let end = inside.find([':', '-', '=']).unwrap_or(inside.len());
        let (name, default) = inside.split_at(end);
        let default = default.trim_start_matches([':', '-', '=']);
        if is_name(name) {
            add(name, unquoted(default), found);
        }
    }
}

/// Returns the words of a shell line with their quotation marks, without a comment.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (mut quote, mut is_escaped) = (None, false);
        let is_end = |c: char| {
            let inside = is_escaped || quote.is_some();
            if std::mem::take(&mut is_escaped) {
            } else if c == '\\' {
                is_escaped = quote != Some('\'');
            } else if quote == Some(c) {
                quote = None;
            } else if quote.is_none() && QUOTES.contains(&c) {
                quote = Some(c);
            }
            !inside && (c.is_whitespace() || c == ';')
        };
        let end = rest.find(is_end).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        words.extend(Some(word).filter(|word| !word.is_empty()));
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
    }
    words
}

/// Adds the values of YAML collections on one line, such as `{user: name, password: value}` or
/// `[value, value]`.
fn in_flow(name: &str, value: &str, found: &mut Vec<String>) {
    for item in value.split([',', '{', '}', '[', ']']) {
        match item.split_once(": ") {
            Some((own, value)) => add(own.trim(), unquoted(value), found),
            None => add(name, unquoted(item), found),
        }
    }
}

/// Adds the secrets in the configuration of a git repository: credentials in URLs, HTTP headers, and
/// values of settings with secret names.
fn in_git_config(text: &str, found: &mut Vec<String>) {
    for line in text.lines() {
        let (name, value) = named(line.trim());
        let name = name.to_ascii_lowercase();
        if name.contains("header") {
            let last = value.rsplit([' ', ':']).next().unwrap_or_default();
            add("token", unquoted(last.trim_matches('"')), found);
        } else if TELLING.iter().any(|word| name.contains(word)) {
            add(&name, unquoted(value), found);
        }
    }
}

/// Splits a line into its name and value. The name is missing if the line has only a value.
fn named(line: &str) -> (&str, &str) {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let line = line.strip_prefix("- ").unwrap_or(line);
    // `//registry.npmjs.org/:_authToken=value`
    let parts = match line.starts_with("//") {
        // A `=` at the end can be part of the value.
        true => line.split_once('='),
        false => line.split_once(['=', ':']),
    };
    match parts {
        Some((name, value)) => (name.trim(), value.trim().trim_end_matches(',').trim()),
        None => ("", line),
    }
}

/// Returns a value without its quotes, or without the comment that follows it.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    for triple in ["\"\"\"", "'''"] {
        let inside = value.strip_prefix(triple);
        if let Some((inside, _)) = inside.and_then(|rest| rest.split_once(triple)) {
            return inside;
        }
    }
    match value.chars().next().filter(|first| QUOTES.contains(first)) {
        Some(quote) => &value[1..closing(&value[1..], quote)],
        None => value.split(" #").next().unwrap_or_default().trim(),
    }
}

/// Returns the byte offset of the quotation mark that ends a quoted text: the next mark that is neither
/// escaped nor doubled.
fn closing(inside: &str, quote: char) -> usize {
    let mut chars = inside.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote {
            match chars.peek() {
                Some((_, next)) if *next == quote => drop(chars.next()),
                Some(_) | None => return at + 1,
            }
        }
    }
    inside.len() + 1
}

/// Returns the text of a quoted value that ends on a later line, and the number of continuation lines.
fn continued(value: &str, below: &[&str]) -> (Option<String>, usize) {
    let quotes = ["\"\"\"", "'''", "\"", "'", "`"];
    let Some(quote) = quotes.into_iter().find(|quote| value.starts_with(quote)) else {
        return (None, 0);
    };
    let first = &value[quote.len()..];
    if first.contains(quote) {
        return (None, 0);
    }
    let mut text = first.to_owned();
    for (more, line) in below.iter().take(VALUE_LINES).enumerate() {
        text.push('\n');
        match line.split_once(quote) {
            Some((last, _)) => {
                text.push_str(last.trim());
                return (Some(text), more + 1);
            }
            None => text.push_str(line.trim()),
        }
    }
    // There is no closing mark, so the quotation mark is part of the value.
    (None, 0)
}

/// Returns the quoted texts in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.find(QUOTES)?;
        let quote = rest[start..].chars().next()?;
        let (text, after) = rest[start + 1..].split_once(quote)?;
        rest = after;
        Some(text)
    })
}

/// Adds the values of PHP constants, such as `define('DB_PASSWORD', 'value');`.
fn in_define(rest: &str, found: &mut Vec<String>) {
    let mut texts = quoted(rest);
    if let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        add(name, value, found);
    }
}

fn in_json(name: &str, value: &Value, depth: usize, found: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match value {
        Value::String(text) => add(name, text, found),
        Value::Array(all) => all.iter().for_each(|one| in_json(name, one, depth, found)),
        Value::Object(all) => {
            all.iter()
                .for_each(|(name, one)| in_json(name, one, depth, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Adds the logins and passwords of a `.netrc` file, such as `machine HOST login NAME password VALUE`,
/// which can span several lines.
fn in_netrc(text: &str, found: &mut Vec<String>) {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if matches!(word, "login" | "password" | "account")
            && let Some(value) = words.next()
        {
            add(word, unquoted(value), found);
        }
    }
}

/// Adds the users and passwords of a `.pgpass` file: lines of `host:port:database:user:password`, with
/// `\:` for a colon and `\\` for a backslash.
fn in_pgpass(line: &str, found: &mut Vec<String>) {
    let line = line.replace("\\\\", "\u{1}").replace("\\:", "\u{0}");
    if line.starts_with('#') {
        return;
    }
    let fields = ["login", "password"]
        .into_iter()
        .zip(line.split(':').skip(3));
    for (name, field) in fields {
        let as_written = field.replace('\u{0}', "\\:").replace('\u{1}', "\\\\");
        let meant = field.replace('\u{0}', ":").replace('\u{1}', "\\");
        add(name, &meant, found);
        if as_written != meant {
            add(name, &as_written, found);
        }
    }
}

fn first_line_is_assignment(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.contains('=') && !first.contains(',')
}

/// Adds the secrets of a CSV table whose first line contains the column names.
fn in_table(text: &str, found: &mut Vec<String>) {
    let mut rows = text.lines().map(|line| line.split(','));
    let Some(names) = rows.next() else { return };
    let names: Vec<&str> = names.collect();
    for row in rows {
        for (name, value) in names.iter().zip(row) {
            add(name, unquoted(value), found);
        }
    }
}

/// Adds the lines of private keys, and each key's body as one text.
fn private_keys(text: &str, found: &mut Vec<String>) {
    let open = ["CERTIFICATE", "PUBLIC KEY", "X509 CRL", "PARAMETERS"];
    let mut body: Option<Vec<&str>> = None;
    // A PuTTY key file states the number of lines of the key.
    let mut counted = 0_usize;
    for line in text.lines() {
        let line = line.trim().trim_matches(['"', '\'', ',', '\\']).trim();
        if let Some(count) = line.strip_prefix("Private-Lines:") {
            counted = count.trim().parse().unwrap_or(0);
            body = Some(Vec::new());
            continue;
        }
        if let Some(start) = line.find("-----BEGIN ") {
            let is_open = open.iter().any(|kind| line[start..].contains(kind));
            body = (!is_open).then(Vec::new);
            continue;
        }
        let Some(lines) = &mut body else { continue };
        let is_end = line.contains("-----END ");
        let is_header = line.contains(':') || line.is_empty();
        if !is_end && !is_header {
            lines.push(line);
        }
        let is_counted = counted > 0 && lines.len() >= counted;
        if is_end || is_counted {
            counted = 0;
            let lines = body.take().unwrap_or_default();
            found.push(lines.concat());
            let long = lines.iter().filter(|line| line.len() >= KEY_LINE);
            found.extend(long.map(|line| (*line).to_owned()));
        }
    }
    found.retain(|value| value.len() >= SHORTEST);
}

/// Returns the URLs in a text: `scheme://…` up to white space or a quotation mark.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("://").map(|(at, _)| {
        let ends = |c: char| c.is_whitespace() || QUOTES.contains(&c) || "<>".contains(c);
        let rest = &text[at + 3..];
        &rest[..rest.find(ends).unwrap_or(rest.len())]
    })
}

/// Returns whether a text holds a URL with a password, or with a token in its place.
pub(crate) fn has_login(text: &str) -> bool {
    addresses(text).any(|address| login_of(address, &mut Vec::new()))
}

/// Adds the secrets of URLs with `user:secret@host` or `token@host`. Returns whether there are any.
fn login_of(address: &str, found: &mut Vec<String>) -> bool {
    let before_path = address.split(['/', '?', '#']).next().unwrap_or_default();
    // A password can contain a slash that is not percent-encoded.
    let login = before_path
        .rsplit_once('@')
        .or_else(|| address.rsplit_once('@'));
    let Some((login, _)) = login.filter(|(login, _)| !login.contains("://")) else {
        return false;
    };
    let before = found.len();
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    // The user name can be a token.
    for (name, value) in [("", user), ("password", password)] {
        for value in [value.to_owned(), decoded(value)] {
            // A password that is itself a URL would be searched again.
            if !value.contains("://") {
                add(name, &value, found);
            }
        }
    }
    found.len() > before || !password.is_empty()
}

/// Decodes percent-encoded characters, such as `%40` for `@`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_path(value: &str) -> bool {
    ["/", "./", "../", "~/"]
        .iter()
        .any(|start| value.starts_with(start))
        && !value.contains(' ')
}

fn is_number(value: &str) -> bool {
    value.parse::<f64>().is_ok()
}

/// Whether a value looks like words, a host or a module name, optionally with a port: `production`,
/// `my-app`, `db.local:5432`.
fn is_plain(value: &str) -> bool {
    let (name, port) = value.rsplit_once(':').unwrap_or((value, ""));
    let is_port = port.chars().all(|c| c.is_ascii_digit());
    let name = if is_port { name } else { value };
    let is_word = |c: char| c.is_alphabetic() || "-_., ".contains(c);
    let is_mixed = name.chars().any(char::is_uppercase) && name.chars().any(char::is_lowercase);
    let is_name = !is_mixed || name.contains([' ', '-', '_', '.']);
    name.chars().all(is_word) && is_name
}

#[cfg(test)]
mod tests;
