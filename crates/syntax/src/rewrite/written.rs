//! Source that a model wrote for one symbol and that defines symbols beside it, too.

use super::super::SymbolTree;
use super::place::CodeStyle;
use super::source::Source;
use super::{Place, Rewrite};

/// Divides source for a symbol that also defines symbols beside it: each existing symbol is
/// rewritten, and new ones are added after `symbol`. A symbol that only is repeated unchanged is
/// left out. Returns `None` if the source has other code, or does not define `symbol` exactly once.
pub fn divided(tree: &SymbolTree, symbol: &str, written: &str) -> Option<Vec<Rewrite>> {
    let target = tree.find(symbol).filter(|one| one.parent.is_some())?;
    let manner = CodeStyle::of(tree, target);
    let source = Source::read(tree.file(), written, &manner).close_up();
    let definitions = &source.tree.module().children;
    if definitions.len() < 2 || source.check_only_definitions(symbol).is_err() {
        return None;
    }
    let around = target.path.name.strip_suffix(target.path.base_name())?;
    let mut seen = Vec::new();
    let (mut rewrites, mut new) = (Vec::new(), Vec::new());
    for id in definitions {
        let one = source.tree.get(*id);
        let name = format!("{around}{}", one.contract.name);
        if seen.contains(&name) {
            return None;
        }
        let part = source.part(one.span);
        let text = part.tree.text().to_string();
        match tree.find(&name) {
            Some(known) => {
                let is_repeated = name != symbol
                    && part.fitted(&manner).trim() == known.span.of(tree.text()).trim();
                if !is_repeated {
                    let symbol = name.clone();
                    rewrites.push(Rewrite::Whole {
                        symbol,
                        source: text,
                    });
                }
            }
            None => new.push(text),
        }
        seen.push(name);
    }
    let between = match manner.indent.is_empty() {
        true => "\n\n\n",
        false => "\n\n",
    };
    if !new.is_empty() {
        rewrites.push(Rewrite::Add {
            beside: symbol.to_owned(),
            place: Place::After,
            source: new.join(between),
        });
    }
    seen.iter().any(|name| name == symbol).then_some(rewrites)
}
