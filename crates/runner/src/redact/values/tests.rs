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
    // A password that is an ordinary word is not redacted, because the word may also occur in the
    // names of tests.
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
