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
            // In a file that is not YAML, these characters are part of the value.
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

/// Returns a YAML value without its anchor and tag, such as `value` for `&name value` or `!!str value`.
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
mod tests {
    use super::*;

    fn values(file: &str, text: &str) -> Vec<String> {
        let mut values = values_of(file, text);
        values.sort();
        values.dedup();
        values
    }

    #[test]
    fn secrets_are_distinguished_from_other_settings() {
        for (line, secrets) in [
            ("TOKEN=abcd1234efgh", &["abcd1234efgh"][..]),
            (
                "export API_KEY='sk-live-9f8e7d'  # mine",
                &["sk-live-9f8e7d"],
            ),
            (
                "PASSPHRASE=correct-horse-battery",
                &["correct-horse-battery"],
            ),
            ("DB_PASSWORD=postgres", &[]),
            ("NAME=correct-horse-battery", &[]),
            ("  \"secret\": \"q9w8e7r6t5\",", &["q9w8e7r6t5"]),
            ("session: aZbYcXdWeV", &["aZbYcXdWeV"]),
            (
                "DB=postgres://me:s3cr3tpw@db/x",
                &["postgres://me:s3cr3tpw@db/x", "s3cr3tpw"],
            ),
            (
                "URL=https://a1b2c3d4e5@host.org/x",
                &["a1b2c3d4e5", "https://a1b2c3d4e5@host.org/x"],
            ),
            (
                "//registry.npmjs.org/:_authToken=npm_a1b2c3d4",
                &["npm_a1b2c3d4"],
            ),
            ("//r.org/:_auth=bWU6YTFiMmMz==", &["bWU6YTFiMmMz=="]),
            ("//r.org/:_password=\"YTFiMmMzZDQ=\"", &["YTFiMmMzZDQ="]),
            ("define('AUTH_KEY', 'q9w8 e7r6;t5');", &["q9w8 e7r6;t5"]),
            (
                "keys = [\"a1b2c3d4\", 'e5f6g7h8']",
                &["a1b2c3d4", "e5f6g7h8"],
            ),
            ("# TOKEN=abcd1234efgh", &[]),
            (
                "export B=\"bravo 2222\" C=charlie33; D='delta 444'  # E=echo55555",
                &["bravo 2222", "charlie33", "delta 444"],
            ),
            ("set -gx D delta4444", &["delta4444"]),
            ("setenv D 'delta 4444'", &["delta 4444"]),
            (
                "<?php define('AUTH_KEY', 'q9w8:e7r6'); define('B_KEY', 'bravo2222');",
                &["bravo2222", "q9w8:e7r6"],
            ),
            ("TOKEN=short", &[]),
            ("MODE=production", &[]),
            ("NAME=my-own-app", &[]),
            ("HOST=database.local:5432", &[]),
            ("DEBUG=true", &[]),
            ("PORT=12345678", &[]),
            ("RATE=0.12345678", &[]),
            ("HOME=/home/me/project", &[]),
            ("KEY_FILE=./keys/a1b2c3d4", &[]),
            (
                "DB=postgres://postgres:password@localhost/test",
                &["postgres://postgres:password@localhost/test"],
            ),
            ("URL=https://example.org/a1b2", &[]),
            ("URL=https://me@example.org/a1b2", &[]),
            ("TOKEN=", &[]),
        ] {
            assert_eq!(values("x.env", line), secrets, "{line}");
        }
    }

    #[test]
    fn secrets_inside_other_values_are_found() {
        for (file, text, value) in [
            (
                "x.tfvars",
                "h = <<EOT\nheredoc9xK3\nEOT\ni = 1\n",
                "heredoc9xK3",
            ),
            (
                "x.tfvars",
                "h = <<-\"EOT\"\n  a b\n  heredoc9xK3\n  EOT\n",
                "heredoc9xK3",
            ),
            (
                "secrets.ini",
                "[a]\npw2 = cont9xK3\n   inued9xK3line\n",
                "inued9xK3line",
            ),
            (".env", "A=1\nB_TOKEN tab29xK3value\n", "tab29xK3value"),
            (
                "secrets.json",
                r#"{"a": "\u0075ni9xK3val"}"#,
                r"\u0075ni9xK3val",
            ),
            ("secrets.json", r#"{"a": "sl\/ash9xK3"}"#, r"sl\/ash9xK3"),
            (
                "wp-config.php",
                "<?php define('A', 'b'); $x = 'php9xK3var'; $y='p2hp9xK3';",
                "php9xK3var",
            ),
            (
                "wp-config.php",
                "<?php define('A', 'b'); $x = 'php9xK3var'; $y='p2hp9xK3';",
                "p2hp9xK3",
            ),
            (".env", "TOKEN=${OTHER:-default99}\n", "default99"),
            (".env", "TOKEN=\"${OTHER:=default99}\"\n", "default99"),
            (".env", "TOKEN=${OTHER-'default 99'}\n", "default 99"),
            (
                "passwords.txt",
                "bob bobs-pw-99\namy amys-pw-88\n",
                "amys-pw-88",
            ),
        ] {
            let found = values(file, text);
            assert!(found.contains(&value.to_owned()), "{text}: {found:?}");
        }
    }

    #[test]
    fn each_line_of_a_multi_line_secret_is_found() {
        let quoted = "A=1\nTOKEN=\"first1111\n  second222\nwords\"\nNEXT=third3333\n";
        let found = values(".env", quoted);
        let joined = "first1111\nsecond222\nwords";
        assert_eq!(found, ["first1111", joined, "second222", "third3333"]);
        let unended = "TOKEN='abc'def123\nNEXT=\"quote11111\nLAST=last11111\n";
        let found = values(".env", unended);
        assert!(found.contains(&"last11111".to_owned()), "{found:?}");
        let block = "db:\n  password: |-\n    first1111\n    second222\n  mode: production\n  tokens:\n    - third3333\n    - \"fourth+444\"\n";
        let found = values("secrets.yml", block);
        let joined = "first1111\nsecond222";
        assert_eq!(
            found,
            ["first1111", joined, "fourth+444", "second222", "third3333"]
        );
        let escaped = "TOKEN=\"first1111\\nsecond222\"\n";
        let found = values(".env", escaped);
        for value in ["first1111", "second222", "first1111\\nsecond222"] {
            assert!(found.contains(&value.to_owned()), "{found:?}");
        }
        let toml = "[db]\npassword = \"\"\"\nfirst1111\nsecond222\"\"\"\n";
        assert!(values("secrets.toml", toml).contains(&"second222".to_owned()));
        let ini = "[db]\npassword = pa55w0rds\nhost = localhost\n";
        assert_eq!(values("credentials.ini", ini), ["pa55w0rds"]);
    }

    #[test]
    fn strings_of_json_are_read_at_any_depth() {
        let text = r#"{"type": "service_account", "n": 12345678, "id": "12345678",
            "deep": [{"token": "a1b2\"c3d4", "lines": "first1111\nsecond222"}],
            "auth_uri": "https://accounts.example.org/o"}"#;
        let found = values("credentials.json", text);
        let wanted = [
            "a1b2\"c3d4",
            "first1111",
            "first1111\nsecond222",
            "second222",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn passwords_are_read_from_credential_files_of_common_tools() {
        let netrc = "machine github.com\n  login t0ken1234\n  password x9y8z7w6\nmachine b login someone password \"q1w2e3r4\"\n";
        assert_eq!(
            values(".netrc", netrc),
            ["q1w2e3r4", "t0ken1234", "x9y8z7w6"]
        );
        let git = "https://me:p%40ssw0rd1@github.com\nhttps://ghp1234567@gitlab.com\nhttps://me1234567:wordsonly@x.org\nhttps://tok1234567:x-oauth-basic@x.org\n";
        let found = values(".git-credentials", git);
        for value in ["p%40ssw0rd1", "p@ssw0rd1", "ghp1234567", "tok1234567"] {
            assert!(found.contains(&value.to_owned()), "{found:?}");
        }
        // Ordinary words would be redacted in the names of tests.
        assert!(!found.iter().any(|value| value == "wordsonly"), "{found:?}");
        assert_eq!(
            values(".pgpass", "db:5432:x:me:p4ss\\:w0rd\n"),
            ["p4ss:w0rd", "p4ss\\:w0rd"]
        );
        assert_eq!(values(".vault-token", "hvs.a1b2c3d4\n"), ["hvs.a1b2c3d4"]);
        assert_eq!(values("password.txt", "wordsonly\n"), [""; 0]);
        let table = "User name,Secret access key\nme,a1b2/c3d4+e5\n";
        assert_eq!(values("credentials.csv", table), ["a1b2/c3d4+e5"]);
        let lines = "AWSAccessKeyId=AKIA1234567890AB\r\nAWSSecretKey=a1b2/c3d4+e5\r\n";
        let found = values("rootkey.csv", lines);
        for value in ["AKIA1234567890AB", "a1b2/c3d4+e5"] {
            assert!(found.contains(&value.to_owned()), "{found:?}");
        }
    }

    #[test]
    fn user_names_next_to_passwords_are_secrets_too() {
        for (file, text) in [
            (".env", "A=https://us3r-n4me:s3cr3t-pw@h/x\n"),
            (".env", "SENTRY=https://us3r-n4me:s3cr3t-pw@o1.ingest/2\n"),
            (
                ".git-credentials",
                "https://us3r-n4me:s3cr3t-pw@h.example.org\n",
            ),
            (".pgpass", "h:5432:db:us3r-n4me:s3cr3t-pw\n"),
        ] {
            let found = values(file, text);
            for value in ["us3r-n4me", "s3cr3t-pw"] {
                assert!(found.contains(&value.to_owned()), "{text}: {found:?}");
            }
        }
    }

    #[test]
    fn secrets_are_found_in_every_string_syntax_of_toml_and_yaml() {
        for (file, text, wanted) in [
            ("secrets.toml", "b = '''v4lue-one'''\n", &["v4lue-one"][..]),
            (
                "secrets.toml",
                "b = \"\"\"v4lue-one\"\"\"\n",
                &["v4lue-one"],
            ),
            ("secrets.toml", "b = '''\nv4lue-one\n'''\n", &["v4lue-one"]),
            (
                "secrets.toml",
                "c = [\"v4lue-one\",\n  \"v4lue-two\", # mine\n  \"v4lue-three\"\n]\nd = \"v4lue-four\"\n",
                &["v4lue-one", "v4lue-two", "v4lue-three", "v4lue-four"],
            ),
            (
                "secrets.toml",
                "c = [\n  [\"v4lue-one\"],\n]\n",
                &["v4lue-one"],
            ),
            ("secrets.yml", "a: &x v4lue-one\n", &["v4lue-one"]),
            ("secrets.yml", "a: !!str v4lue-one\n", &["v4lue-one"]),
            ("secrets.yml", "a: &x !!str \"v4lue-one\"\n", &["v4lue-one"]),
            ("secrets.yml", "a: &x\n  - v4lue-one\n", &["v4lue-one"]),
            (
                "secrets.yml",
                "n:\n  - name: n\n  - [v4lue-one, \"v4lue-two\"]\n",
                &["v4lue-one", "v4lue-two"],
            ),
            (
                "secrets.yml",
                "n:\n- - v4lue-one\n  - v4lue-two\n",
                &["v4lue-one", "v4lue-two"],
            ),
            (
                "secrets.yml",
                "n:\n- !!str v4lue-one\n- &y v4lue-two\n",
                &["v4lue-one", "v4lue-two"],
            ),
            (
                "secrets.yml",
                "n: [\n  v4lue-one,\n  v4lue-two\n]\n",
                &["v4lue-one", "v4lue-two"],
            ),
            (
                "secrets.yml",
                "- v4lue-one\n- v4lue-two\n",
                &["v4lue-one", "v4lue-two"],
            ),
            (".env", "TOKEN=&Ab1-v4lue!\n", &["&Ab1-v4lue!"]),
        ] {
            let found = values(file, text);
            for value in wanted {
                assert!(found.contains(&(*value).to_owned()), "{text}: {found:?}");
            }
        }
    }

    #[test]
    fn bodies_of_private_keys_are_read_and_certificates_are_not() {
        let (one, two) = ("MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB");
        let key =
            format!("-----BEGIN PRIVATE KEY-----\n{one}\n{two}\nAb==\n-----END PRIVATE KEY-----\n");
        let wanted = [two.to_owned(), one.to_owned(), format!("{one}{two}Ab==")];
        let sorted = |mut values: Vec<String>| {
            values.sort();
            values
        };
        assert_eq!(values("id_rsa", &key), sorted(wanted.to_vec()));
        let inline = key.replace('\n', "\\n");
        for text in [
            format!("KEY=\"{inline}\"\n"),
            format!("{{\"private_key\": \"{inline}\"}}"),
            format!("key: |\n  {}\n", key.replace('\n', "\n  ")),
        ] {
            let found = values("x.env", &text);
            assert!(
                wanted.iter().all(|value| found.contains(value)),
                "{text}: {found:?}"
            );
        }
        let certificate = key.replace("PRIVATE KEY", "CERTIFICATE");
        assert_eq!(values("a.pem", &certificate), [""; 0]);
        let putty = format!(
            "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 2\n{one}\n{two}\nPrivate-MAC: 12\n"
        );
        assert!(values("a.ppk", &putty).contains(&one.to_owned()));
    }
}
