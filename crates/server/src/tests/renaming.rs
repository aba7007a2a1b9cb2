//! Renames that the user asks the editor for. The server answers with edits and changes nothing itself.

use super::*;
use tower_lsp::lsp_types::Url;

const SHAPES: &str = "class Shape:\n    def area(self):\n        return 1\n\n\nclass Other:\n    def area(self):\n        \
                      return 2\n\n\nLIMIT = 3\n";
const USES: &str = "from shapes import LIMIT, Shape\n\n\ndef sure(shape: Shape):\n    local = LIMIT\n    \
                    return shape.area(), local\n\n\ndef unsure(thing):\n    return thing.area()\n";

/// A client that can do everything that matters for renames.
fn able() -> Value {
    json!({
        "workspace": {"workspaceEdit": {"documentChanges": true, "changeAnnotationSupport": {}}},
        "textDocument": {"rename": {"prepareSupport": true}},
    })
}

struct RenameClient {
    client: TestClient,
    server: Value,
}

impl RenameClient {
    /// Opens a project in which `uses.py` is open, with a line that is not saved.
    async fn open(capabilities: Value) -> RenameClient {
        let folder = folder(&[("shapes.py", SHAPES), ("uses.py", USES)]);
        let services = services(brief(), &folder.path().join(".trajectories"));
        let client = TestClient::over(services, folder);
        let server = client.initialize_as(capabilities).await;
        let this = RenameClient { client, server };
        let document = json!({"textDocument": {
            "uri": this.uri("uses.py"), "languageId": "python", "version": 7, "text": format!("# new\n{USES}"),
        }});
        this.client
            .connection
            .notify("textDocument/didOpen", document);
        this
    }

    fn uri(&self, file: &str) -> Value {
        json!(Url::from_file_path(self.client.folder.path().join(file)).unwrap())
    }

    async fn ask(
        &self,
        method: &str,
        place: (&str, u32, u32),
        to: Option<&str>,
    ) -> Result<Value, String> {
        let (file, line, character) = place;
        let mut params = json!({
            "textDocument": {"uri": self.uri(file)},
            "position": {"line": line, "character": character},
        });
        if let Some(to) = to {
            params["newName"] = json!(to);
        }
        let answer = self.client.connection.request(method, params).await;
        answer.map_err(|error| error.to_string())
    }

    async fn prepare(&self, place: (&str, u32, u32)) -> Value {
        let asked = self.ask("textDocument/prepareRename", place, None);
        asked.await.unwrap()
    }

    async fn rename(&self, place: (&str, u32, u32), to: &str) -> Result<Value, String> {
        self.ask("textDocument/rename", place, Some(to)).await
    }

    /// Returns the edits of each file as `line:character text`, with `?` for those to confirm, and
    /// the version of the document.
    fn edits(&self, edit: &Value) -> Vec<(String, Value, Vec<String>)> {
        let documents = edit["documentChanges"].as_array().unwrap();
        let of = |document: &Value| {
            let uri = document["textDocument"]["uri"].as_str().unwrap();
            let file = uri.rsplit('/').next().unwrap().to_owned();
            let edits = document["edits"].as_array().unwrap().iter().map(|edit| {
                let start = &edit["range"]["start"];
                let asks = edit.get("annotationId").map_or("", |_| "?");
                let text = edit["newText"].as_str().unwrap();
                format!("{}:{} {text}{asks}", start["line"], start["character"])
            });
            (
                file,
                document["textDocument"]["version"].clone(),
                edits.collect(),
            )
        };
        documents.iter().map(of).collect()
    }
}

#[tokio::test]
async fn symbol_at_the_position_is_renamed_in_all_files_and_unsaved_texts() {
    let mut asking = RenameClient::open(able()).await;
    let provider = &asking.server["capabilities"]["renameProvider"];
    assert_eq!(*provider, json!({"prepareProvider": true}));
    let place = ("uses.py", 6, 18);
    let prepared = asking.prepare(place).await;
    assert_eq!(prepared["placeholder"], "area");
    assert_eq!(
        prepared["range"]["start"],
        json!({"line": 6, "character": 17})
    );
    let edit = asking.rename(place, "surface").await.unwrap();
    assert_eq!(
        asking.edits(&edit),
        [
            (
                "shapes.py".to_owned(),
                Value::Null,
                vec!["1:8 surface".to_owned()]
            ),
            (
                "uses.py".to_owned(),
                json!(7),
                vec!["6:17 surface".to_owned(), "10:17 surface?".to_owned()]
            ),
        ]
    );
    let annotations = edit["changeAnnotations"].as_object().unwrap();
    assert!(
        annotations
            .values()
            .all(|one| one["needsConfirmation"] == true)
    );
    let (_, message) = asking.client.next_of("window/showMessage").await;
    let told = message["message"].as_str().unwrap();
    assert!(
        told.contains("1 place may mean another `area`: uses.py:11"),
        "{told}"
    );
}

#[tokio::test]
async fn variable_of_a_module_is_renamed_from_its_definition_and_from_a_use() {
    let asking = RenameClient::open(able()).await;
    for place in [("shapes.py", 10, 0), ("uses.py", 1, 20), ("uses.py", 5, 14)] {
        assert_eq!(
            asking.prepare(place).await["placeholder"],
            "LIMIT",
            "{place:?}"
        );
        let edit = asking.rename(place, "MOST").await.unwrap();
        let files = asking.edits(&edit);
        assert_eq!(files[0].2, ["10:0 MOST"], "{place:?}");
        assert_eq!(files[1].2, ["1:19 MOST", "5:12 MOST"], "{place:?}");
    }
}

#[tokio::test]
async fn what_is_no_symbol_of_the_project_or_cannot_have_the_name_is_not_renamed() {
    let asking = RenameClient::open(able()).await;
    for place in [
        ("uses.py", 0, 3),
        ("uses.py", 5, 5),
        ("uses.py", 4, 1),
        ("uses.py", 99, 0),
    ] {
        assert_eq!(asking.prepare(place).await, Value::Null, "{place:?}");
        let why = asking.rename(place, "other").await.unwrap_err();
        assert!(
            why.contains("there is no symbol of the project here"),
            "{place:?}: {why}"
        );
    }
    for (to, expected) in [
        ("a-b", "`a-b` is no name for a symbol"),
        ("Shape", "`shapes.py::Shape` is already called `Shape`"),
        ("Other", "shapes.py already contains the name `Other`"),
    ] {
        let why = asking.rename(("shapes.py", 0, 7), to).await.unwrap_err();
        assert!(why.contains(expected), "{to}: {why}");
    }
}

#[tokio::test]
async fn plain_client_gets_the_certain_edits_alone() {
    let mut asking = RenameClient::open(json!({})).await;
    assert_eq!(asking.server["capabilities"]["renameProvider"], true);
    let edit = asking.rename(("uses.py", 6, 18), "surface").await.unwrap();
    let uses = &edit["changes"][asking.uri("uses.py").as_str().unwrap()];
    assert_eq!(uses.as_array().unwrap().len(), 1, "{edit}");
    assert_eq!(
        uses[0]["range"]["start"],
        json!({"line": 6, "character": 17})
    );
    let (_, message) = asking.client.next_of("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().contains("uses.py:11"));
}

#[tokio::test]
async fn document_whose_text_is_in_doubt_is_not_renamed_until_it_is_opened_again() {
    let mut asking = RenameClient::open(able()).await;
    let unreadable = json!({"textDocument": {"uri": asking.uri("shapes.py"), "text": 1}});
    let connection = asking.client.connection.clone();
    connection.notify("textDocument/didOpen", unreadable);
    let (_, shown) = asking.client.next_of("window/showMessage").await;
    assert!(shown["message"].as_str().unwrap().contains("shapes.py"));
    let place = ("uses.py", 6, 18);
    let why = asking.rename(place, "surface").await.unwrap_err();
    assert!(why.contains("may have another text of shapes.py"), "{why}");
    let document = json!({"textDocument": {
        "uri": asking.uri("shapes.py"), "languageId": "python", "version": 3, "text": SHAPES,
    }});
    connection.notify("textDocument/didOpen", document);
    let edit = asking.rename(place, "surface").await.unwrap();
    assert_eq!(asking.edits(&edit)[0].1, 3, "{edit}");
}

#[cfg(unix)]
#[tokio::test]
async fn file_that_is_open_under_the_name_of_a_link_is_edited_once_under_that_name() {
    let folder = folder(&[("shapes.py", SHAPES)]);
    std::os::unix::fs::symlink("shapes.py", folder.path().join("link.py")).unwrap();
    let services = services(brief(), &folder.path().join(".trajectories"));
    let client = TestClient::over(services, folder);
    let server = client.initialize_as(able()).await;
    let asking = RenameClient { client, server };
    let document = json!({"textDocument": {
        "uri": asking.uri("link.py"), "languageId": "python", "version": 2, "text": format!("# new\n{SHAPES}"),
    }});
    let connection = &asking.client.connection;
    connection.notify("textDocument/didOpen", document);
    let edit = asking.rename(("link.py", 1, 7), "Form").await.unwrap();
    let expected = ("link.py".to_owned(), json!(2), vec!["1:6 Form".to_owned()]);
    assert_eq!(asking.edits(&edit), [expected]);
}
