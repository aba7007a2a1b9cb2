//! Finds the position for a new import of the standard library: in the first block of imports,
//! according to the order of that block.

use tree_sitter::Node;

use super::super::SymbolTree;
use super::super::definition::one_line;
use super::super::lines::is_blank;
use super::import::{head, is_import};

/// The top-level modules of the standard library.
const MODULES: &str = "abc aifc annotationlib argparse array ast asynchat asyncio asyncore atexit audioop \
    base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code \
    codecs codeop collections colorsys compileall compression concurrent configparser \
    contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm \
    decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler \
    fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass \
    gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib \
    inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox \
    mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis \
    nntplib nt ntpath numbers opcode operator optparse os ossaudiodev pathlib pdb pickle \
    pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats \
    pty pwd py_compile pyclbr pydoc pyexpat queue quopri random re readline reprlib resource \
    rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd \
    smtplib sndhdr socket socketserver spwd sqlite3 ssl stat statistics string stringprep \
    struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib \
    tempfile termios textwrap threading time timeit tkinter token tokenize tomllib trace \
    traceback tracemalloc tty turtle types typing unicodedata unittest urllib uu uuid venv \
    warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp \
    zipfile zipimport zlib zoneinfo";

/// The sort key of an import statement: its module, and whether it has the form `from module import
/// …`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ImportKey {
    is_from: bool,
    module: String,
}

impl ImportKey {
    /// Returns the key of an import of the standard library, or `None` for another statement.
    fn of_standard(statement: &str) -> Option<ImportKey> {
        let (is_from, rest) = match statement.strip_prefix("from ") {
            Some(rest) => (true, rest),
            None => (false, statement.strip_prefix("import ")?),
        };
        let module = rest.split([' ', ',', '\t']).find(|word| !word.is_empty())?;
        is_standard(module).then(|| ImportKey {
            is_from,
            module: module.to_lowercase(),
        })
    }

    fn by_kind(&self) -> (bool, &str) {
        (self.is_from, &self.module)
    }

    fn by_module(&self) -> (&str, bool) {
        (&self.module, self.is_from)
    }
}

/// Returns whether a dotted name is that of a module of the standard library.
pub(super) fn is_standard(module: &str) -> bool {
    let top = module.split('.').next().unwrap_or(module);
    MODULES.split_ascii_whitespace().any(|known| known == top)
}

/// The position of a new import statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImportPosition {
    /// Byte offset of the start of a line.
    pub(super) offset: usize,
    /// Whether the statement belongs to what is below it. At one offset, it stands below the
    /// statements that belong to what is above them.
    pub(super) is_before: bool,
    /// Whether a blank line is inserted after the statement, because it forms its own block.
    pub(super) is_block: bool,
}

/// Returns the position of a new import of the standard library. Returns `None` if the module has
/// no absolute imports yet, or if the statement imports another module.
pub(super) fn place(tree: &SymbolTree, root: Node<'_>, statement: &str) -> Option<ImportPosition> {
    let new = ImportKey::of_standard(statement)?;
    let text = tree.text();
    let absolute = head(root).filter(|node| is_import(*node) && !is_future_or_relative(*node));
    let all: Vec<Node<'_>> = absolute.collect();
    let lines = tree.lines();
    // A byte order mark must stay at the start of the file.
    let mark = text.len() - text.trim_start_matches('\u{feff}').len();
    let first_line = |node: &Node<'_>| lines.line_of(node.start_byte());
    let next_line = |node: &Node<'_>| lines.line_of(node.end_byte().saturating_sub(1)) + 1;
    let key = |node: &Node<'_>| ImportKey::of_standard(&one_line(*node, text));
    let known = all.iter().filter_map(|node| Some((*node, key(node)?)));
    let mut block: Vec<(Node<'_>, ImportKey)> = Vec::new();
    for (node, key) in known {
        let is_next = block.last().is_none_or(|(last, _)| {
            let between = next_line(last)..first_line(&node);
            !between
                .into_iter()
                .any(|line| is_blank(lines.range(line).of(text)))
        });
        if !is_next {
            break;
        }
        block.push((node, key));
    }
    let Some((last, _)) = block.last() else {
        let first = all.first()?;
        return Some(ImportPosition {
            offset: lines.range(first_line(first)).start.max(mark),
            is_before: true,
            is_block: true,
        });
    };
    let before = block
        .iter()
        .find(|(_, key)| stands_before(&new, key, &block));
    let offset = match before {
        Some((node, _)) => lines.range(first_line(node)).start.max(mark),
        None => {
            let is_same = |one: &&(Node<'_>, ImportKey)| one.1.is_from == new.is_from;
            let is_sorted = is_sorted_by_module(&block) && !is_sorted_by_kind(&block);
            let same = block.iter().rev().find(is_same).filter(|_| !is_sorted);
            let node = same.map_or(last, |(node, _)| node);
            lines.range(next_line(node) - 1).end
        }
    };
    Some(ImportPosition {
        offset,
        is_before: before.is_some(),
        is_block: false,
    })
}

/// Returns whether the sort order of a block puts the new statement before an existing one.
fn stands_before(new: &ImportKey, key: &ImportKey, block: &[(Node<'_>, ImportKey)]) -> bool {
    match (is_sorted_by_kind(block), is_sorted_by_module(block)) {
        (true, _) => new.by_kind() < key.by_kind(),
        (false, true) => new.by_module() < key.by_module(),
        (false, false) => false,
    }
}

fn is_sorted_by_kind(block: &[(Node<'_>, ImportKey)]) -> bool {
    block.is_sorted_by(|one, next| one.1.by_kind() <= next.1.by_kind())
}

fn is_sorted_by_module(block: &[(Node<'_>, ImportKey)]) -> bool {
    block.is_sorted_by(|one, next| one.1.by_module() <= next.1.by_module())
}

fn is_future_or_relative(node: Node<'_>) -> bool {
    let module = node.child_by_field_name("module_name");
    let is_relative = module.is_some_and(|module| module.kind() == "relative_import");
    is_relative || node.kind() == "future_import_statement"
}
