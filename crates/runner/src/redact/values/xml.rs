//! Secrets in XML: the values of elements and attributes with secret names, such as `<password>`.

use super::{TELLING, add};

/// Additional parts of XML names whose values are secrets.
const NAMES: [&str; 3] = ["user", "login", "master"];

/// Adds the texts of elements and the values of attributes with secret names. The name can also be the
/// value of an attribute: `<entry key="password">value</entry>`.
pub(super) fn in_xml(text: &str, found: &mut Vec<String>) {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('<') {
        rest = after;
        if let Some(comment) = after.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, rest)| rest);
            continue;
        }
        let Some((tag, content)) = after.split_once('>') else {
            return;
        };
        if tag.starts_with(['/', '?', '!']) {
            continue;
        }
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let attributes = attributes_of(attributes);
        let said = attributes.iter().find_map(|(key, value)| {
            let names = matches!(*key, "key" | "name" | "id" | "property");
            names.then_some(*value).filter(|value| is_telling(value))
        });
        for (key, value) in &attributes {
            if is_telling(key) || said.is_some_and(|said| said != *value) {
                add_decoded(key, value, found);
            }
        }
        if said.is_some() || is_telling(name) {
            add_decoded(said.unwrap_or(name), content_of(content), found);
        }
    }
}

fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = TELLING.iter().chain(&NAMES);
    words.any(|word| name.contains(word))
}

/// Returns the text up to the next element.
fn content_of(content: &str) -> &str {
    if let Some(data) = content.trim_start().strip_prefix("<![CDATA[") {
        return data.split("]]>").next().unwrap_or_default();
    }
    content.split('<').next().unwrap_or_default()
}

fn attributes_of(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((key, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let Some(quote) = after.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
            return found;
        };
        let Some((value, more)) = after[1..].split_once(quote) else {
            return found;
        };
        found.push((key.trim(), value));
        rest = more;
    }
    found
}

/// Adds a value as written in the file, and with its XML entities decoded.
fn add_decoded(name: &str, value: &str, found: &mut Vec<String>) {
    let names = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    let decode = |value: String, (name, meant): &(&str, &str)| value.replace(name, meant);
    let meant = names.iter().fold(value.to_owned(), decode);
    add(name, value, found);
    if meant != value {
        add(name, &meant, found);
    }
}

#[cfg(test)]
mod tests {
    use super::super::values_of;

    #[test]
    fn xml_elements_and_attributes_with_secret_names_contain_secrets() {
        let text = "<?xml version=\"1.0\"?>\n<settings><!-- <password>n0t-this1</password> -->\n\
            <server><id>my-server-1</id><username>us3r-n4me</username>\n\
            <password>\n  p4ss&amp;word\n</password>\n<passphrase><![CDATA[p4ss<phrase]]></passphrase>\n\
            <privateKey value=\"x\" secret='s3cr3t-v4lue'/></server>\n\
            <entry key=\"db.password\">entry-v4lue</entry>\n\
            <add key=\"ApiKey\" value=\"4pi-key-v4lue\"/>\n\
            <url>https://example.org/r3po</url></settings>\n";
        let mut found = values_of("settings.xml", text);
        found.sort();
        let wanted = [
            "4pi-key-v4lue",
            "entry-v4lue",
            "p4ss&amp;word",
            "p4ss&word",
            "p4ss<phrase",
            "s3cr3t-v4lue",
            "us3r-n4me",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn truncated_xml_is_read_up_to_its_end() {
        for text in [
            "<",
            "<a",
            "<password",
            "<password>",
            "<password x=",
            "<password x='y",
        ] {
            assert_eq!(values_of("settings.xml", text), [""; 0], "{text}");
        }
        let found = values_of("settings.xml", "<password>p4ss-word");
        assert_eq!(found, ["p4ss-word"]);
    }
}
