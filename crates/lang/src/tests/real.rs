//! Tests with real servers from the directory in `STARLING_TEST_SERVERS`. If the variable is set,
//! the servers must be there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{LanguageServers, OwnPrograms, ProgramSearch, ServerPool, ServerSelection};
use starling_core::{
    Diagnostics, Effort, LanguageService, LspAnswer, Problem, ProblemKind, Relation, TextRequest,
};
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Workspace};

const SHOP: &str = "from shop.price import total\n\n\ndef buy(cart):\n    return total(cart, 3)\n";
const PRICE: &str = "def total(cart, tax):\n    return sum(cart) * tax\n";

/// A small Python project and the directory of the servers to test.
struct TestProject {
    dir: tempfile::TempDir,
    cache: tempfile::TempDir,
    servers: PathBuf,
}

/// Creates a project, or returns `None` if there are no servers to test.
fn fixture() -> Option<TestProject> {
    let servers = PathBuf::from(std::env::var_os("STARLING_TEST_SERVERS")?);
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("shop/__init__.py", "");
    write("shop/price.py", PRICE);
    write("shop/buy.py", SHOP);
    write(
        "pyproject.toml",
        "[project]\nname = \"shop\"\nversion = \"1\"\n",
    );
    Some(TestProject {
        dir,
        cache: tempfile::tempdir().unwrap(),
        servers,
    })
}

impl TestProject {
    fn service(&self, server: &str) -> LanguageServers {
        let root = self.dir.path().canonicalize().unwrap();
        let snapshot = Workspace::open(root.clone())
            .unwrap()
            .snapshot(Overlay::new());
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::split_paths(&path);
        let places = ProgramSearch {
            root,
            own_programs: OwnPrograms::Refused,
            path: std::env::join_paths([self.servers.clone()].into_iter().chain(path)).unwrap(),
            virtual_env: None,
        };
        let wanted = ServerSelection {
            fast: vec![server.to_owned()],
            thorough: Vec::new(),
            stops: [ProblemKind::Name, ProblemKind::Call, ProblemKind::Syntax].into(),
            deadline: Duration::from_secs(60),
        };
        let pool = ServerPool::new(self.cache.path().to_owned());
        pool.service(&snapshot, &places, &wanted)
    }

    /// Returns every file below the root with its modification time and text.
    fn tree(&self) -> Vec<(PathBuf, std::time::SystemTime, Vec<u8>)> {
        fn walk(dir: &Path, all: &mut Vec<(PathBuf, std::time::SystemTime, Vec<u8>)>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let changed = path.metadata().unwrap().modified().unwrap();
                match path.is_dir() {
                    true => {
                        all.push((path.clone(), changed, Vec::new()));
                        walk(&path, all);
                    }
                    false => all.push((path.clone(), changed, std::fs::read(&path).unwrap())),
                }
            }
        }
        let mut all = Vec::new();
        walk(self.dir.path(), &mut all);
        all.sort();
        all
    }
}

fn asked(file: &str, text: &str, overlay: &[(&str, Option<&str>)]) -> TextRequest {
    TextRequest {
        file: FilePath::new(file),
        text: text.into(),
        overlay: overlay
            .iter()
            .map(|(file, text)| (FilePath::new(*file), text.map(Arc::from)))
            .collect(),
        effort: Effort::Fast,
        deadline: Duration::from_secs(60),
    }
}

/// Returns the kind and line of each error that must be fixed.
async fn errors(
    servers: &LanguageServers,
    file: &str,
    text: &str,
    overlay: &[(&str, Option<&str>)],
) -> Vec<(ProblemKind, u32)> {
    let found = servers.diagnostics(asked(file, text, overlay)).await;
    let Diagnostics::Known { problems, .. } = found else {
        panic!("{found:?}");
    };
    let stops = |problem: &&Problem| problem.stops;
    let brief = |problem: &Problem| (problem.kind, problem.line);
    problems.iter().filter(stops).map(brief).collect()
}

/// Checks the features that the tight loop needs from a server.
async fn checks_texts_that_are_not_on_disk(server: &str) {
    let Some(fixture) = fixture() else {
        return;
    };
    let before = fixture.tree();
    let servers = fixture.service(server);
    let found = async |text: &str| errors(&servers, "shop/buy.py", text, &[]).await;
    assert_eq!(found(SHOP).await, []);
    let one_less = SHOP.replace("cart, 3", "cart");
    assert_eq!(found(&one_less).await, [(ProblemKind::Call, 5)]);
    let unknown = SHOP.replace("total(cart, 3)", "missing(cart)");
    assert_eq!(found(&unknown).await, [(ProblemKind::Name, 5)]);
    let broken = found(&SHOP.replace("(cart, 3)", "(cart,, 3)")).await;
    assert!(broken.contains(&(ProblemKind::Syntax, 5)), "{broken:?}");
    // The overlay also changes another file.
    let fewer = "def total(cart):\n    return sum(cart)\n";
    let overlay = [("shop/price.py", Some(fewer))];
    let changed = errors(&servers, "shop/buy.py", SHOP, &overlay).await;
    assert_eq!(changed, [(ProblemKind::Call, 5)]);
    assert_eq!(found(SHOP).await, [], "the disk counts again");
    assert_eq!(fixture.tree(), before, "nothing was written");
}

/// Checks that a server without types finds errors of these kinds and no others.
async fn finds(server: &str, kinds: &[ProblemKind]) {
    let Some(fixture) = fixture() else {
        return;
    };
    let before = fixture.tree();
    let servers = fixture.service(server);
    let unknown = SHOP.replace("total(cart, 3)", "missing(cart)");
    let broken = SHOP.replace("(cart, 3)", "(cart,, 3)");
    let texts = [(ProblemKind::Name, unknown), (ProblemKind::Syntax, broken)];
    for (kind, text) in texts {
        assert_eq!(errors(&servers, "shop/buy.py", SHOP, &[]).await, []);
        let found = errors(&servers, "shop/buy.py", &text, &[]).await;
        let is_it = found.contains(&(kind, 5));
        assert_eq!(is_it, kinds.contains(&kind), "{found:?}");
    }
    assert_eq!(fixture.tree(), before, "nothing was written");
}

/// Checks names in an unsaved text with an additional first line.
async fn knows_names(server: &str) {
    let Some(fixture) = fixture() else {
        return;
    };
    let servers = fixture.service(server);
    let later = format!("# later\n{SHOP}");
    errors(&servers, "shop/buy.py", &later, &[]).await;
    let places = async |file: &str, text: &str, overlay: &[_], name: &str, relation| {
        let at = text.rfind(name).unwrap();
        let found = servers
            .spots(asked(file, text, overlay), at, relation)
            .await;
        let LspAnswer::Known { value, .. } = found else {
            panic!("{found:?}");
        };
        let mut places: Vec<(String, usize)> = value
            .iter()
            .map(|spot| (spot.file.to_string(), spot.range.start))
            .collect();
        places.sort();
        places
    };
    let overlay = [("shop/buy.py", Some(later.as_str()))];
    let defined = places("shop/buy.py", &later, &[], "total", Relation::Definitions).await;
    assert_eq!(defined, [("shop/price.py".to_owned(), 4)]);
    let used = places(
        "shop/price.py",
        PRICE,
        &overlay,
        "total",
        Relation::References,
    )
    .await;
    let call = ("shop/buy.py".to_owned(), later.rfind("total").unwrap());
    assert!(used.contains(&call), "{used:?}");
    let at = later.rfind("total").unwrap();
    let told = servers.hover(asked("shop/buy.py", &later, &[]), at).await;
    let LspAnswer::Known { value, .. } = told else {
        panic!("{told:?}");
    };
    assert!(value.contains("total") && value.contains("tax"), "{value}");
}

/// Checks that a server's quick fix adds a missing import.
async fn offers_imports(server: &str) {
    let Some(fixture) = fixture() else {
        return;
    };
    let servers = fixture.service(server);
    let text = "def pay(cart):\n    return total(cart, 3)\n";
    let asked = || asked("shop/pay.py", text, &[]);
    let Diagnostics::Known { problems, .. } = servers.diagnostics(asked()).await else {
        panic!("{server} does not answer");
    };
    let name = |problem: &&Problem| problem.kind == ProblemKind::Name;
    let problem = problems.iter().find(name).unwrap();
    assert_eq!(problem.range.unwrap().of(text), "total");
    let imports = servers.imports(asked(), problem).await;
    assert!(
        imports.contains(&"from shop.price import total".to_owned()),
        "{imports:?}"
    );
}

#[tokio::test]
async fn ty_reports_problems_of_unsaved_texts() {
    checks_texts_that_are_not_on_disk("ty").await;
}

#[tokio::test]
async fn basedpyright_reports_problems_of_unsaved_texts() {
    checks_texts_that_are_not_on_disk("basedpyright").await;
}

#[tokio::test]
async fn ty_quick_fix_adds_a_missing_import() {
    offers_imports("ty").await;
}

#[tokio::test]
async fn basedpyright_quick_fix_adds_a_missing_import() {
    offers_imports("basedpyright").await;
}

#[tokio::test]
async fn jedi_reports_syntax_errors() {
    finds("jedi-language-server", &[ProblemKind::Syntax]).await;
}

#[tokio::test]
async fn pylsp_reports_undefined_names() {
    finds("pylsp", &[ProblemKind::Name, ProblemKind::Syntax]).await;
}

#[tokio::test]
async fn ty_finds_definitions_and_references() {
    knows_names("ty").await;
}

#[tokio::test]
async fn basedpyright_finds_definitions_and_references() {
    knows_names("basedpyright").await;
}

#[tokio::test]
async fn jedi_finds_definitions_and_references() {
    knows_names("jedi-language-server").await;
}

#[tokio::test]
async fn pylsp_finds_definitions_and_references() {
    knows_names("pylsp").await;
}
