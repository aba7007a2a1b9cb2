//! What a language server reports about names is used if the index is not certain, and ignored if
//! it refers to another version of a text.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::*;
use starling_syntax::FilePath;
use starling_text::{ByteRange, ContentHash};

const SHOP: &str = "class Cart:\n    def pay(self, x):\n        return x\n\n\nclass Till:\n    def pay(self, x):\n        return x\n";
const USE: &str = "import far\n\n\ndef one(a):\n    return a.pay(1)\n\n\ndef two(b):\n    return b.pay(far.reach(2))\n";
const HEIR: &str = "class Odd(make()):\n    def pay(self, x):\n        return x\n";
const FILES: [(&str, &str); 3] = [("shop.py", SHOP), ("use.py", USE), ("heir.py", HEIR)];

/// A language service that returns the positions of names that the test sets.
#[derive(Default)]
struct FakeLanguageServer {
    spots: Vec<(Relation, NameLocation)>,
}

/// Returns the position of `name` in `text`, the text of `file`: at the first occurrence of
/// `words`, which contain the name.
fn spot(file: &str, text: &str, words: &str, name: &str) -> NameLocation {
    let start = text.find(words).unwrap() + words.find(name).unwrap();
    NameLocation {
        file: FilePath::new(file),
        range: ByteRange::new(start, start + name.len()),
        of: ContentHash::of(text),
    }
}

#[async_trait]
impl LanguageService for FakeLanguageServer {
    async fn diagnostics(&self, _: TextRequest) -> Diagnostics {
        Diagnostics::Unknown {
            reason: "not asked for that".to_owned(),
        }
    }

    async fn spots(
        &self,
        request: TextRequest,
        at: usize,
        relation: Relation,
    ) -> LspAnswer<Vec<NameLocation>> {
        assert!(
            request.text[at..].starts_with("pay"),
            "{}",
            &request.text[at..]
        );
        let of = |(one, spot): &(Relation, NameLocation)| (*one == relation).then(|| spot.clone());
        LspAnswer::Known {
            tool: "serves".to_owned(),
            value: self.spots.iter().filter_map(of).collect(),
        }
    }

    async fn hover(&self, request: TextRequest, at: usize) -> LspAnswer<String> {
        assert!(request.text[at..].starts_with("reach"));
        LspAnswer::Known {
            tool: "serves".to_owned(),
            value: "def reach(x: int) -> int".to_owned(),
        }
    }
}

fn bed(model: Scripted, spots: Vec<(Relation, NameLocation)>) -> Bed {
    let mut bed = Bed::new(&FILES, model);
    bed.language = Some(Arc::new(FakeLanguageServer { spots }));
    bed
}

fn follow_ups(events: &[Event]) -> Vec<String> {
    let is_one = |cause: &Cause| matches!(cause, Cause::FollowUp { .. });
    let woken = woken(events).into_iter();
    woken
        .filter(|(_, cause)| is_one(cause))
        .map(|(agent, _)| agent)
        .collect()
}

async fn followed(spots: Vec<(Relation, NameLocation)>) -> Vec<String> {
    let wider = whole("    def pay(self, x, y):\n        return x + y\n");
    let model = Scripted::native()
        .on("agent shop.py::Cart.pay", [wider])
        .always("agent", finish("nothing"));
    let mut bed = bed(model, spots).begin(&["shop.py::Cart.pay"]);
    let events = bed.run().await;
    assert!(bed.read("shop.py").contains("x + y"), "{events:#?}");
    follow_ups(&events)
}

#[tokio::test(start_paused = true)]
async fn changed_signature_starts_the_owner_of_a_call_that_only_the_language_server_resolves() {
    assert_eq!(followed(Vec::new()).await, [""; 0]);
    let call = (Relation::References, spot("use.py", USE, "a.pay", "pay"));
    assert_eq!(followed(vec![call]).await, ["use.py::one"]);
}

#[tokio::test(start_paused = true)]
async fn changed_signature_starts_the_owner_of_an_override_that_only_the_language_server_finds() {
    let odd = spot("heir.py", HEIR, "def pay", "pay");
    let found = followed(vec![(Relation::Implementations, odd)]).await;
    assert_eq!(found, ["heir.py::Odd.pay"]);
}

#[tokio::test(start_paused = true)]
async fn language_server_positions_in_another_version_of_a_file_are_ignored() {
    let older = format!("{USE}\n");
    let call = (Relation::References, spot("use.py", &older, "a.pay", "pay"));
    let gone = (Relation::References, spot("gone.py", USE, "a.pay", "pay"));
    assert_eq!(followed(vec![call, gone]).await, [""; 0]);
}

async fn looked_up(tool: &str, name: &str, spots: Vec<(Relation, NameLocation)>) -> String {
    let model = Scripted::native().on(
        "agent use.py::two",
        [call(tool, json!({"name": name})), finish("seen")],
    );
    let mut bed = bed(model, spots).begin(&["use.py::two"]);
    bed.run().await;
    bed.model.prompts("agent use.py::two")[1].clone()
}

#[tokio::test(start_paused = true)]
async fn references_that_the_language_server_confirms_are_not_marked_as_uncertain() {
    let name = "shop.py::Cart.pay";
    let text = looked_up("references", name, Vec::new()).await;
    assert!(text.contains("(by name; another"), "{text}");
    let call = (Relation::References, spot("use.py", USE, "a.pay", "pay"));
    let text = looked_up("references", name, vec![call]).await;
    assert!(
        text.contains("use.py::one line 5: return a.pay(1)\n"),
        "{text}"
    );
    assert!(
        text.contains("use.py::two line 9: return b.pay(far.reach(2)) (perhaps)"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn definition_that_the_language_server_returns_comes_first() {
    let text = looked_up("definition", "pay", Vec::new()).await;
    assert!(text.contains("shop.py::Cart.pay lines 2-3:"), "{text}");
    let till = spot("shop.py", SHOP, "Till:\n    def pay", "pay");
    let text = looked_up("definition", "pay", vec![(Relation::Definitions, till)]).await;
    assert!(text.contains("shop.py::Till.pay lines 7-8:"), "{text}");
    assert!(!text.contains("shop.py::Cart.pay lines"), "{text}");
    assert!(
        text.contains("Also: heir.py::Odd.pay, shop.py::Cart.pay"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn language_server_describes_a_symbol_outside_the_workspace() {
    let text = looked_up("definition", "far.reach", Vec::new()).await;
    let told = "`far.reach` is not defined in the workspace. serves says of it:\n\
                def reach(x: int) -> int";
    assert!(text.contains(told), "{text}");
    let text = looked_up("definition", "nowhere", Vec::new()).await;
    assert!(text.contains("No definition of `nowhere`"), "{text}");
}
