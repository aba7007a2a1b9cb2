/** What another extension of the language would bring, in little: places of names, a formatter, a problem. */

const vscode = require("vscode");

exports.activate = function activate(context) {
  const { languages, workspace } = vscode;
  const problems = languages.createDiagnosticCollection("companion");
  const look = (document) => {
    if (document.languageId === "python") {
      problems.set(
        document.uri,
        places(document, /\bproblem\b/g).map(({ range }) => problem(range)),
      );
    }
  };
  workspace.textDocuments.forEach(look);
  context.subscriptions.push(
    problems,
    workspace.onDidOpenTextDocument(look),
    workspace.onDidChangeTextDocument(({ document }) => look(document)),
    languages.registerDefinitionProvider("python", { provideDefinition: (...at) => named(at, "def ") }),
    languages.registerReferenceProvider("python", { provideReferences: (...at) => named(at, "") }),
    languages.registerDocumentFormattingEditProvider("python", { provideDocumentFormattingEdits: doubleQuotes }),
  );
};

function problem(range) {
  const found = new vscode.Diagnostic(range, "this is a problem", vscode.DiagnosticSeverity.Warning);
  found.source = "companion";
  return found;
}

/** Where the name at a place stands in the workspace, after a word or anywhere. */
async function named([document, position], before) {
  const range = document.getWordRangeAtPosition(position);
  if (!range) {
    return [];
  }
  const word = new RegExp(`(?<=${before})\\b${document.getText(range)}\\b`, "g");
  const files = await vscode.workspace.findFiles("**/*.py");
  const documents = await Promise.all(files.map((file) => vscode.workspace.openTextDocument(file)));
  return documents.flatMap((one) => places(one, word));
}

function places(document, pattern) {
  return [...document.getText().matchAll(pattern)].map(({ 0: text, index }) => {
    const range = new vscode.Range(document.positionAt(index), document.positionAt(index + text.length));
    return new vscode.Location(document.uri, range);
  });
}

function doubleQuotes(document) {
  return places(document, /'/g).map(({ range }) => vscode.TextEdit.replace(range, '"'));
}
