//! The environment variables of tests: those variables of the user that are known to be harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::redact::has_login;
use starling_platform::processes::variables;
use starling_workspace::{has_token, private_keys};

/// Variables that tests inherit if they are set. A name that ends in `*` matches all names with
/// that prefix.
const PASSES: [&str; 46] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLUMNS",
    "USER",
    "LOGNAME",
    "SHELL",
    "CI",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PYTHONHASHSEED",
    "PYTHONWARNINGS",
    "PYTHONUTF8",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "DJANGO_SETTINGS_MODULE",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "MPLBACKEND",
    "NODE_ENV",
    "JAVA_HOME",
    "GOROOT",
    "GOPATH",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "SOURCE_DATE_EPOCH",
    // Windows: programs do not start without them.
    "COMSPEC",
    "NUMBER_OF_PROCESSORS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "WINDIR",
];

/// Parts of variable names whose values tests never inherit, whatever the configuration says.
const SECRET: [&str; 14] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PGPASS",
    "BINDPW",
    "BEARER",
    "CREDENTIAL",
    "JWT",
    "AUTH_SOCK",
    "SEEDPHRASE",
    "SEED_PHRASE",
];
/// Words of such names, between underscores.
const SECRET_WORDS: [&str; 16] = [
    "AUTH",
    "AUTHORIZATION",
    "COOKIE",
    "COOKIES",
    "CRED",
    "CREDS",
    "MNEMONIC",
    "OTP",
    "PASS",
    "PASSCODE",
    "PAT",
    "PHRASE",
    "PIN",
    "PRIVATE",
    "PW",
    "TOTP",
];

/// The beginning of a private key (`-----BEGIN`), encoded as base64.
const PRIVATE_KEY_IN_BASE64: &str = "LS0tLS1CRUdJTi";

/// Words that end like `MYPASS` and name no password.
const NO_SECRET_WORDS: [&str; 7] = [
    "BYPASS",
    "COMPASS",
    "ENCOMPASS",
    "OVERPASS",
    "SURPASS",
    "TRESPASS",
    "UNDERPASS",
];

/// Directories that tools search in the home directory, which is empty in the sandbox.
const AT_HOME: [(&str, &str); 4] = [
    ("PYTHONUSERBASE", ".local"),
    ("RUSTUP_HOME", ".rustup"),
    ("CARGO_HOME", ".cargo"),
    ("GOPATH", "go"),
];

/// Returns the harmless variables of this process's environment and the variables named in
/// `further`. Also disables bytecode caches of Python, which would be lost anyway, because a shadow
/// (a sandboxed copy of the project) exists only during one command.
pub(super) fn inherited(further: &[String]) -> BTreeMap<OsString, OsString> {
    let home = std::env::home_dir();
    passed_on(variables(), further, home.as_deref())
}

fn passed_on(
    variables: impl Iterator<Item = (OsString, OsString)>,
    further: &[String],
    home: Option<&Path>,
) -> BTreeMap<OsString, OsString> {
    let mut kept: BTreeMap<_, _> = variables
        .filter(|(name, value)| passes(name, further) && !holds_secret(value))
        .collect();
    kept.insert("PYTHONDONTWRITEBYTECODE".into(), "1".into());
    for (name, below) in AT_HOME {
        if let Some(directory) = home.map(|home| home.join(below)).filter(|at| at.is_dir()) {
            kept.entry(name.into()).or_insert(directory.into());
        }
    }
    kept
}

/// Adds these directories of a project to `PYTHONPATH`, after the user's entries.
pub(super) fn find_modules_in(
    environment: &mut BTreeMap<OsString, OsString>,
    root: &Path,
    directories: &[String],
) {
    if directories.is_empty() {
        return;
    }
    let given = environment.get(OsStr::new("PYTHONPATH"));
    let given = given.into_iter().flat_map(std::env::split_paths);
    let found = directories.iter().map(|directory| root.join(directory));
    let all: Vec<PathBuf> = given.chain(found).collect();
    if let Ok(path) = std::env::join_paths(all) {
        environment.insert("PYTHONPATH".into(), path);
    }
}

/// Returns the reason why a set variable is not passed to tests, or `None`. The user can name the
/// variable in `sandbox.environment`, unless its name looks like a secret's.
pub(super) fn withheld(
    environment: &BTreeMap<OsString, OsString>,
    name: &str,
) -> Option<&'static str> {
    let value = std::env::var_os(name)?;
    if environment.contains_key(OsStr::new(name)) {
        return None;
    }
    Some(if is_secret(name) {
        "tests never see it, because its name looks like the name of a secret"
    } else if holds_secret(&value) {
        "tests never see it, because its value holds a password or a key: name an address without \
         one in `tests.command` (`env NAME=VALUE command`)"
    } else {
        "tests see it only if `sandbox.environment` names it"
    })
}

/// Returns the environment variables that Python code requires: those that it reads with
/// `environ["NAME"]`.
pub fn needed_variables(text: &str) -> BTreeSet<&str> {
    let keys = text.split("environ[").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (name, rest) = rest[1..].split_once(quote)?;
        let rest = rest.strip_prefix(']')?.trim_start();
        let is_set = rest.starts_with('=') && !rest.starts_with("==");
        (!is_set).then_some(name)
    });
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    keys.filter(|name| !name.is_empty() && name.chars().all(is_name))
        .collect()
}

fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_password = |word: &str| word.ends_with("PASS") && !NO_SECRET_WORDS.contains(&word);
    // `PWD` alone is the working directory.
    SECRET.iter().any(|part| upper.contains(part))
        || upper
            .split('_')
            .any(|word| SECRET_WORDS.contains(&word) || is_password(word))
        || upper.ends_with("_PWD")
}

/// Returns whether a value contains a secret: a password, a token of a known service, or a private key, also
/// encoded as base64. Passwords are found in addresses (`user:x@host`), connection strings
/// (`Server=h;Password=x`), URL parameters (`?password=x`), settings (`password: x`), command lines
/// (`-u user:x`), `.netrc` lines and headers (`Bearer x`).
fn holds_secret(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    has_login(&value)
        || has_plain_login(&value)
        || has_slash_login(&value)
        || has_secret_field(&value)
        || has_secret_argument(&value)
        || has_secret_word(&value)
        || has_token(&value)
        || !private_keys(&value).is_empty()
        || value.contains(PRIVATE_KEY_IN_BASE64)
}

/// Returns whether a value contains `user:password@`, with or without a URL scheme.
fn has_plain_login(value: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '=');
    let mut logins = value.match_indices('@').map(|(at, _)| {
        let before = &value[..at];
        before.rsplit(ends).next().unwrap_or_default()
    });
    logins.any(|login| {
        let parts = login.split_once(':');
        parts.is_some_and(|(user, password)| !user.is_empty() && !password.is_empty())
    })
}

/// Returns whether a value contains `user/password@host`, the syntax of Oracle's programs. Excludes
/// `org/action@v4` and `types/node@20.1`, where a version follows the `@`.
fn has_slash_login(value: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ',' | ':');
    let is_version = |after: &str| {
        let version = after.strip_prefix('v').unwrap_or(after);
        version.starts_with(|c: char| c.is_ascii_digit()) && version.matches('.').count() < 3
    };
    value.match_indices('@').any(|(at, _)| {
        let (before, after) = (&value[..at], &value[at + 1..]);
        let login = before.rsplit(ends).next().unwrap_or_default();
        let parts: Vec<&str> = login.split('/').collect();
        let is_login =
            matches!(parts[..], [user, password] if !user.is_empty() && !password.is_empty());
        is_login && !after.is_empty() && !is_version(after)
    })
}

/// Returns whether a value is a command line with a password, such as `-u user:x`, `--user user:x` or
/// `--password x`.
fn has_secret_argument(value: &str) -> bool {
    let unquoted = |word: &str| word.trim_matches(['"', '\'']).to_owned();
    let words: Vec<String> = value.split_whitespace().map(unquoted).collect();
    let is_login = |text: &str| {
        let login = text.split_once(':');
        // `docker run -u 1000:1000` gives a user id and a group id.
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        login.is_some_and(|(user, password)| {
            let is_set = !user.is_empty() && !password.is_empty();
            is_set && !(is_number(user) && is_number(password))
        })
    };
    let is_of_user = |option: &str| ["-u", "-U", "--user", "--proxy-user"].contains(&option);
    let is_set = words.windows(2).any(|pair| {
        let (option, given) = (&pair[0], &pair[1]);
        let is_secret_option = || {
            // Accept a single dash, because Java's tools have options such as `-storepass`.
            let name = option.strip_prefix('-').filter(|name| name.len() > 1);
            let name = name.map(|name| name.trim_start_matches('-'));
            name.is_some_and(|name| !name.contains('=') && is_secret(name))
        };
        is_of_user(option) && is_login(given) || is_secret_option() && !given.starts_with('-')
    });
    let is_joined = |word: &String| {
        let joined = word.strip_prefix("-u").map(|given| ("-u", given));
        let pair = word.split_once('=').or(joined);
        pair.is_some_and(|(option, given)| is_of_user(option) && is_login(given))
    };
    is_set || words.iter().any(is_joined)
}

/// Returns whether a value contains a word that is a secret because of the words before it, as in
/// `login u password x` (`.netrc`), `Bearer x` and `sshpass -p x`.
fn has_secret_word(value: &str) -> bool {
    /// Programs and their options for a password. The password is the next word, or follows the option in the
    /// same word.
    const OPTIONS: [(&str, &str); 5] = [
        ("mysql", "-p"),
        ("mysqldump", "-p"),
        ("redis-cli", "-a"),
        ("sqlcmd", "-P"),
        ("sshpass", "-p"),
    ];
    let words: Vec<&str> = value.split_whitespace().collect();
    let is_bearer = |pair: &[&str]| {
        let is_token = pair[1].len() >= 8 && pair[1].contains(|c: char| c.is_ascii_digit());
        is_token && ["bearer", "basic"].contains(&&*pair[0].to_ascii_lowercase())
    };
    let is_of_netrc = || {
        let after_login = words.iter().skip_while(|word| **word != "login");
        after_login.skip(2).position(|word| *word == "password")
    };
    let has_option = |(program, option): &(&str, &str)| {
        let is_program = |word: &&str| word.rsplit('/').next() == Some(program);
        let at = words.iter().position(is_program);
        let arguments = at.map(|at| &words[at + 1..]).unwrap_or_default();
        let is_given = |(at, word): (usize, &&str)| {
            let rest = word.strip_prefix(option);
            rest.is_some_and(|rest| !rest.is_empty() || at + 1 < arguments.len())
        };
        arguments.iter().enumerate().any(is_given)
    };
    words.windows(2).any(is_bearer) || is_of_netrc().is_some() || OPTIONS.iter().any(has_option)
}

/// Returns whether a value contains the name of a secret, then `=` or `:`, then a value.
fn has_secret_field(value: &str) -> bool {
    let is_around = |c: char| c == ' ' || c == '"' || c == '\'';
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut signs = value.match_indices(['=', ':']);
    signs.any(|(at, _)| {
        let before = value[..at].trim_end_matches(is_around);
        let start = before.trim_end_matches(is_name).len();
        let name = before[start..].trim_start_matches('-');
        let after = value[at + 1..].trim_start_matches(is_around);
        let is_set = after.starts_with(|c: char| !c.is_whitespace() && !";&,}".contains(c));
        is_set && (is_secret(name) || name.eq_ignore_ascii_case("pwd"))
    })
}

fn passes(name: &OsStr, further: &[String]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let known = PASSES.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    });
    !is_secret(name) && (known || further.iter().any(|one| one == name))
}

/// For directories in the home directory: the subdirectories that tests need. Other subdirectories
/// may contain keys.
const PARTS: [(&str, &[&str]); 3] = [
    (
        ".local",
        &[
            "bin",
            "lib",
            "lib64",
            "share/mise",
            "share/pipx",
            "share/uv",
        ],
    ),
    (".cargo", &["bin", "git", "registry"]),
    ("go", &["bin", "pkg", "src"]),
];

/// Returns the directories that the variables of an environment name. Tests must be able to read
/// these directories, even inside the home directory.
pub(super) fn directories(environment: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    directories_at(environment, std::env::home_dir().as_deref())
}

fn directories_at(environment: &BTreeMap<OsString, OsString>, home: Option<&Path>) -> Vec<PathBuf> {
    const PATHS: [&str; 3] = ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH"];
    let lists = PATHS
        .iter()
        .filter_map(|name| environment.get(OsStr::new(name)));
    let listed = lists.flat_map(std::env::split_paths);
    let single = AT_HOME.iter().map(|(name, _)| *name);
    let single = single.chain([
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYENV_ROOT",
        "JAVA_HOME",
        "GOROOT",
    ]);
    let single = single.filter_map(|name| environment.get(OsStr::new(name)).map(PathBuf::from));
    let all = listed.chain(single).filter(|path| path.is_absolute());
    let found: BTreeSet<PathBuf> = all.flat_map(|path| whole(path, home)).collect();
    found.into_iter().collect()
}

/// Returns whether a directory is an installation of programs: it is hidden, or contains a directory such as
/// `lib` or `share`.
fn is_installation(directory: &Path) -> bool {
    const BESIDE_PROGRAMS: [&str; 6] = ["lib", "lib64", "libexec", "pkg", "share", "pyvenv.cfg"];
    let name = directory.file_name().unwrap_or_default();
    let mut beside = BESIDE_PROGRAMS.iter();
    name.to_string_lossy().starts_with('.') || beside.any(|one| directory.join(one).exists())
}

/// Returns the directories of an installation that tests need. `path` is a directory of the installation,
/// such as its `bin`. If the directory above a `bin` is not an installation but, for example, a directory of
/// projects, only the `bin` is returned.
fn whole(path: PathBuf, home: Option<&Path>) -> Vec<PathBuf> {
    let above = path.parent().filter(|above| {
        let is_part = path.ends_with("shims") || path.ends_with("bin") && is_installation(above);
        is_part && above.components().count() > 2
    });
    let all = above.unwrap_or(&path);
    let Some(name) = home.and_then(|home| all.strip_prefix(home).ok()) else {
        return vec![all.to_owned()];
    };
    if name == Path::new("") {
        return vec![path];
    }
    match PARTS.iter().find(|(part, _)| name == Path::new(part)) {
        Some((_, parts)) => parts.iter().map(|part| all.join(part)).collect(),
        None => vec![all.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str], further: &[&str]) -> Vec<String> {
        let further: Vec<String> = further.iter().map(|name| (*name).to_owned()).collect();
        let given = given.iter().map(|name| (name.into(), "x".into()));
        let kept = passed_on(given, &further, None);
        kept.into_keys()
            .map(|name| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn variables_with_names_of_secrets_are_never_passed() {
        let secrets = [
            "FOO_PASSPHRASE",
            "MYSQL_PWD",
            "PGPASS",
            "DB_PW",
            "LDAP_BINDPW",
            "GITHUB_PAT",
            "JWT",
            "BEARER",
            "AWS_CREDS",
            "PASS",
            "SMTP_AUTH",
            "HTTP_AUTHORIZATION",
            "COOKIE",
            "TOTP",
            "MNEMONIC",
            "MYPASS",
            "PRIVATE",
            "SEED_PHRASE",
        ];
        assert_eq!(names(&secrets, &secrets), ["PYTHONDONTWRITEBYTECODE"]);
        let harmless = [
            "PWD",
            "PATTERN",
            "COMPASS",
            "BYPASS",
            "AUTHOR",
            "PINNED",
            "GOPRIVATE",
            "SEED",
        ];
        for name in harmless {
            assert!(
                names(&harmless, &harmless).contains(&name.to_owned()),
                "{name}"
            );
        }
    }

    #[test]
    fn variables_whose_values_hold_secrets_are_never_passed() {
        let passed = |value: &str| {
            let given = [("SETTING".into(), value.into())].into_iter();
            passed_on(given, &["SETTING".to_owned()], None).contains_key(OsStr::new("SETTING"))
        };
        let key = concat!(
            "-----BEGIN ",
            "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
        );
        for value in [
            "postgres://u:pw@h/db",
            "postgresql+psycopg://app:postgres@localhost:5432/test?sslmode=require",
            "redis://:pw@h:6379/0",
            "https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/2",
            "Server=h;User=u;Password=pw",
            "host=h user=u password=pw",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=b",
            "--index https://u:pw@h/simple",
            "jdbc:postgresql://h/db?user=u&password=pw",
            "postgres://h/db?sslmode=require&passwd=pw",
            "Server=h;User Id=a;Pwd=pw;",
            "Data Source=h;PASSWORD = \"x y z\"",
            "{\"user\": \"a\", \"password\": \"pw\"}",
            "password: pw",
            "user:pw@tcp(localhost:3306)/db",
            "//u:pw@h/db",
            "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ==",
            key,
            "see ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "jdbc:oracle:thin:scott/tiger@h:1521:x",
            "scott/tiger@10.0.0.1/x",
            "curl -u user:pw https://h",
            "curl -uuser:1234 https://h",
            "--user 'user:pw'",
            "--user=user:pw",
            "psql --password pw",
            "login --api-token pw",
            "machine h login u password pw",
            "Bearer abcdef1234567890",
            "sshpass -p pw ssh h",
            "mysql -uroot -ppw db",
            "/usr/bin/redis-cli -a pw",
            "keytool -storepass changeme",
            "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXX",
            "https://api.telegram.org/bot123456789:AAEhBOweik9ai2o01abcdef/x",
        ] {
            assert!(!passed(value), "{value}");
        }
        for value in [
            "sqlite:///test.db",
            "postgres://localhost/db",
            "postgres://app@localhost/db",
            "git+ssh://git@example.org/a.git",
            "host=h user=u password=",
            "a=b;c=d",
            "me@example.org",
            "git@example.org:a/b.git",
            "http://localhost:8000/?page=2",
            "password=&user=u",
            "/usr/bin:/bin",
            "12:30",
            "actions/checkout@v4",
            "types/node@20.1.0",
            "/srv/a/b@c",
            "docker run -u 1000:1000 image",
            "pytest -u nobody --password-file",
            "--password --verbose",
            "mysql -u root -p",
            "login password",
            "bearer of news",
            "pytest -p no:cacheprovider",
        ] {
            assert!(passed(value), "{value}");
        }
    }

    #[test]
    fn environment_variables_read_by_subscript_are_needed() {
        let text = "a = os.environ[\"REGION\"] == environ['ZONE']\nos.environ['MINE'] = 'x'\n\
                    os.environ.get('MAYBE', ''); environ[name]; environ['a b']; environ[\"open";
        let needed: Vec<&str> = needed_variables(text).into_iter().collect();
        assert_eq!(needed, ["REGION", "ZONE"]);
    }

    #[test]
    fn unknown_environment_variables_are_not_passed_to_tests() {
        let given = [
            "PATH",
            "LC_ALL",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "db_password",
            "SSH_AUTH_SOCK",
            "PYTHONPATH",
            "PIP_INDEX_URL",
            "HTTPS_PROXY",
            "MY_SETTING",
        ];
        let always = ["LC_ALL", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"];
        assert_eq!(names(&given, &[]), always);
        let further = ["MY_SETTING", "GITHUB_TOKEN", "NOT_SET"];
        let with = [&["LC_ALL", "MY_SETTING"], &always[1..]].concat();
        assert_eq!(names(&given, &further), with);
    }

    #[test]
    fn pythonuserbase_points_to_the_real_home_directory() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".local")).unwrap();
        let kept = passed_on(std::iter::empty(), &[], Some(home.path()));
        let base = &kept[OsStr::new("PYTHONUSERBASE")];
        assert_eq!(Path::new(base), home.path().join(".local"));
        assert!(!kept.contains_key(OsStr::new("CARGO_HOME")));
        let given = [("PYTHONUSERBASE".into(), "/own".into())];
        let kept = passed_on(given.into_iter(), &[], Some(home.path()));
        assert_eq!(kept[OsStr::new("PYTHONUSERBASE")], "/own");
    }

    #[test]
    fn directories_of_python_installations_in_the_environment_are_visible() {
        let environment = BTreeMap::from([
            ("PATH".into(), "/tmp/venv/bin:/usr/bin:relative".into()),
            ("PYTHONPATH".into(), "/tmp/lib".into()),
            ("VIRTUAL_ENV".into(), "/tmp/venv".into()),
        ]);
        let found = directories(&environment);
        for expected in ["/tmp/lib", "/tmp/venv", "/usr/bin"] {
            assert!(found.contains(&PathBuf::from(expected)), "{found:?}");
        }
    }

    #[test]
    fn bin_beside_private_files_is_visible_without_these_files() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for directory in [
            "node/bin",
            "node/lib",
            "work/bin",
            "work/letters",
            "env/bin",
        ] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::fs::write(at("env/pyvenv.cfg"), "").unwrap();
        let programs = ["node/bin", "work/bin", "env/bin", ".volta/bin"].map(at);
        let path = std::env::join_paths(programs).unwrap();
        let environment = BTreeMap::from([("PATH".into(), path)]);
        let found = directories_at(&environment, Some(home.path()));
        assert_eq!(found, [".volta", "env", "node", "work/bin"].map(at));
    }

    #[test]
    fn only_directories_without_credentials_of_a_home_are_visible() {
        let path = "/home/me/bin:/home/me/.cargo/bin:/home/me/.local/bin:/home/me/.pyenv/shims";
        let environment = BTreeMap::from([
            ("PATH".into(), path.into()),
            ("PYTHONUSERBASE".into(), "/home/me/.local".into()),
        ]);
        let found = directories_at(&environment, Some(Path::new("/home/me")));
        for needed in [
            "bin",
            ".cargo/registry",
            ".local/lib",
            ".local/bin",
            ".pyenv",
        ] {
            assert!(
                found.contains(&Path::new("/home/me").join(needed)),
                "{found:?}"
            );
        }
        for private in ["/home/me", "/home/me/.cargo", "/home/me/.local"] {
            assert!(!found.contains(&PathBuf::from(private)), "{found:?}");
        }
    }
}
