//! Renames and deletions of Python modules without a model: the file is made again under its new
//! name, and the imports follow.

use super::edits::Edits;
use crate::lookup::Lookup;
use crate::protocol::Pick;
use crate::task::stated::is_identifier;
use starling_index::{ImportForm, ModuleImport};
use starling_syntax::{FilePath, Language, SymbolPath};

/// Number of imports that a message names.
const NAMED_MOST: usize = 5;

/// Returns the changes that make a module again under its new name and delete the old file, and adds
/// the edits of the imports. `to` is the new name of the file, or its new path in the same directory.
pub(super) fn rename(
    lookup: &Lookup,
    from: &FilePath,
    to: &str,
    edits: &mut Edits,
) -> Result<Vec<Pick>, String> {
    let new = new_path(lookup, from, to)?;
    let (old_name, new_name) = (stem(from), stem(&new));
    let tree = lookup.tree(from)?;
    for one in lookup.index().imports_of(from) {
        let start = one.offset as usize;
        match one.form {
            ImportForm::Names => edits.replace(&one.file, start, old_name, new_name),
            ImportForm::BindsName => {
                let bound = format!("{new_name} as {old_name}");
                edits.replace(&one.file, start, old_name, &bound);
            }
            ImportForm::Dotted => {
                return Err(format!(
                    "{}:{} uses the module by its dotted name",
                    one.file, one.line
                ));
            }
        }
    }
    let why = format!("rename {from} to {new}, by rule");
    let made = Pick {
        symbol: SymbolPath::module(new).to_string(),
        why: why.clone(),
        source: Some(tree.text().to_string()),
        ..Pick::default()
    };
    Ok(vec![made, deletion(from, why)])
}

/// Returns the change that deletes a module which nothing imports.
pub(super) fn delete(lookup: &Lookup, file: &FilePath) -> Result<Vec<Pick>, String> {
    is_module(file)?;
    let imports = lookup.index().imports_of(file);
    if !imports.is_empty() {
        return Err(format!("{file} is still imported: {}", places(&imports)));
    }
    let why = format!("delete {file}, by rule: nothing imports it");
    Ok(vec![deletion(file, why)])
}

fn deletion(file: &FilePath, why: String) -> Pick {
    let module = SymbolPath::module(file.clone()).to_string();
    Pick {
        symbol: module.clone(),
        why,
        delete: vec![module],
        intended_losses: true,
        ..Pick::default()
    }
}

fn new_path(lookup: &Lookup, from: &FilePath, to: &str) -> Result<FilePath, String> {
    is_module(from)?;
    let new = match (to.contains('/'), from.directory()) {
        (true, _) | (false, "") => FilePath::new(to),
        (false, directory) => FilePath::new(format!("{directory}/{to}")),
    };
    is_module(&new)?;
    if new.directory() != from.directory() {
        return Err(format!("{new} is in another directory than {from}"));
    }
    match lookup.files().binary_search(&new) {
        Ok(_) => Err(format!("there is a {new} already")),
        Err(_) => Ok(new),
    }
}

/// Checks that a file is a module with a plain name. `__init__.py` names a package.
fn is_module(file: &FilePath) -> Result<(), String> {
    let name = stem(file);
    let is_plain = is_identifier(name) && !name.starts_with("__");
    match Language::of(file) == Language::Python && file.as_str().ends_with(".py") && is_plain {
        true => Ok(()),
        false => Err(format!("{file} is no Python module with a plain name")),
    }
}

fn stem(file: &FilePath) -> &str {
    let name = file.name();
    name.strip_suffix(".py").unwrap_or(name)
}

fn places(imports: &[ModuleImport]) -> String {
    let named = imports.iter().take(NAMED_MOST);
    let named: Vec<String> = named
        .map(|one| format!("{}:{}", one.file, one.line))
        .collect();
    named.join(", ")
}
