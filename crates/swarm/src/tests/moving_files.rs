//! Modules that are renamed, by rule or by agents, and modules that are deleted by rule.

use serde_json::json;

use super::bed::*;
use crate::*;

const UTILS: &str = "def clean(text):\n    return text.strip()\n";
const USER: &str = "import utils\nfrom utils import clean\n\n\ndef f(text):\n    return utils.clean(clean(text))\n";
const FOLLOWED: &str = "import text_utils as utils\nfrom text_utils import clean\n\n\ndef f(text):\n    return utils.clean(clean(text))\n";
const RENAME: &str = "Rename utils.py to text_utils.py";

fn bed(files: &[(&str, &str)], task: &str, model: Scripted) -> Bed {
    Bed::new(files, model)
        .with(|it| it.text = task.to_owned())
        .tests(|_| Vec::new())
}

#[tokio::test(start_paused = true)]
async fn small_model_renames_a_module_and_its_imports_by_rule() {
    let files = [("utils.py", UTILS), ("a.py", USER)];
    let mut bed = bed(&files, RENAME, Scripted::small());
    let handle = bed.start();
    handle.finished().await;
    let events = handle.log.events();
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.model.calls(), 0);
    assert_eq!(bed.read("text_utils.py"), UTILS);
    assert_eq!(bed.read("a.py"), FOLLOWED);
    assert!(!bed.path("utils.py").exists());
    assert_eq!(handle.undo(None).await.map(|undone| undone.len()), Ok(3));
    assert_eq!(bed.read("utils.py"), UTILS);
    assert_eq!(bed.read("a.py"), USER);
    assert!(!bed.path("text_utils.py").exists());
}

#[tokio::test(start_paused = true)]
async fn module_is_not_renamed_by_rule_if_its_name_is_taken_or_dotted() {
    let dotted = "import pk.utils\n\nX = pk.utils.clean\n";
    for (files, task, why) in [
        (
            vec![("utils.py", UTILS), ("text_utils.py", "x = 1\n")],
            RENAME,
            "there is a text_utils.py already",
        ),
        (
            vec![
                ("pk/__init__.py", ""),
                ("pk/utils.py", UTILS),
                ("a.py", dotted),
            ],
            "Rename pk/utils.py to text_utils.py",
            "a.py:1 uses the module by its dotted name",
        ),
    ] {
        let mut bed = bed(&files, task, Scripted::small());
        let events = bed.run().await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{headline}");
        assert!(headline.contains(why), "{headline}");
        for (file, text) in files {
            assert_eq!(bed.read(file), text);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn small_model_deletes_a_module_by_rule_if_nothing_imports_it() {
    let task = "Delete the module utils.py";
    let mut unused = bed(
        &[("utils.py", UTILS), ("a.py", "x = 1\n")],
        task,
        Scripted::small(),
    );
    let events = unused.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(!unused.path("utils.py").exists());
    let mut used = bed(
        &[("utils.py", UTILS), ("a.py", USER)],
        task,
        Scripted::small(),
    );
    let events = used.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert!(
        headline.contains("utils.py is still imported: a.py:1, a.py:2"),
        "{headline}"
    );
    assert_eq!(used.read("utils.py"), UTILS);
}

#[tokio::test(start_paused = true)]
async fn agents_rename_a_module_as_one_set() {
    let picks = json!({"symbols": [
        {"symbol": "text_utils.py::", "why": "new name", "source": UTILS},
        {"symbol": "utils.py::", "why": "old name", "delete": ["utils.py::"]},
        {"symbol": "a.py::", "why": "follows", "hunks": [{
            "old": "import utils\nfrom utils import clean\n",
            "new": "import text_utils as utils\nfrom text_utils import clean\n",
        }]},
    ]});
    let model = Scripted::native()
        .on("scout", [call("wake", picks)])
        .always("agent", finish("nothing"));
    let mut bed = bed(&[("utils.py", UTILS), ("a.py", USER)], RENAME, model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("text_utils.py"), UTILS);
    assert_eq!(bed.read("a.py"), FOLLOWED);
    assert!(!bed.path("utils.py").exists());
}

#[tokio::test(start_paused = true)]
async fn rename_is_not_done_while_the_new_file_is_missing() {
    let delete = call("propose", json!({"reason": "r", "delete": ["utils.py"]}));
    let model = Scripted::native()
        .on("agent utils.py::", [delete])
        .always("agent", finish("nothing"));
    let mut bed = bed(&[("utils.py", UTILS)], RENAME, model).begin(&["utils.py::"]);
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert!(
        headline.contains("there is no `text_utils.py`"),
        "{headline}"
    );
}
