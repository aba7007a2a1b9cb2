/** Answers what the server asks of the editor's own providers. Starling gives none of these, so it never asks itself. */

import * as vscode from "vscode";
import { type LanguageClient, LSPErrorCodes, ResponseError } from "vscode-languageclient/node";
import { type Found, inTime, locationsOf, Reports } from "../model/bridge.ts";

const PROVIDERS = {
  definition: "vscode.executeDefinitionProvider",
  references: "vscode.executeReferenceProvider",
  implementation: "vscode.executeImplementationProvider",
};

/** What is offered in `experimental.starling.bridge`. */
export const BRIDGE = [...Object.keys(PROVIDERS), "diagnostics"];

/** The server waits for two seconds. */
const DEADLINE_MS = 1800;

interface About {
  textDocument: { uri: string };
  version: number | null;
  position: { line: number; character: number };
}

export class Bridge implements vscode.Disposable {
  readonly #reports = new Reports();
  readonly #listening = [
    vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      for (const uri of uris) {
        this.#reports.tell(uri.toString(), opened(uri)?.version ?? 0);
      }
    }),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => this.#reports.forget(uri.toString())),
  ];

  constructor() {
    // Reports from before this extension began to listen are of the text as it was opened, where nobody
    // has changed it.
    for (const { uri, version } of vscode.workspace.textDocuments) {
      if (version === 1 && vscode.languages.getDiagnostics(uri).length > 0) {
        this.#reports.tell(uri.toString(), version);
      }
    }
  }

  /** To be said before the client starts. */
  serve(client: LanguageClient): void {
    for (const [what, command] of Object.entries(PROVIDERS)) {
      client.onRequest(`starling/${what}`, (about: About) => places(command, about));
    }
    client.onRequest("starling/diagnostics", async (about: About) => {
      const problems = await this.#problems(about);
      return problems && client.code2ProtocolConverter.asDiagnostics(problems);
    });
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
  }

  /** Null where nobody has reported on this text yet. */
  async #problems(about: About): Promise<vscode.Diagnostic[] | null> {
    const uri = current(about);
    const version = about.version ?? 0;
    if (!(await inTime(this.#reports.reported(uri.toString(), version), DEADLINE_MS))) {
      return null;
    }
    current(about);
    return vscode.languages.getDiagnostics(uri).filter(({ source }) => source !== "starling");
  }
}

async function places(command: string, about: About): Promise<ReturnType<typeof locationsOf>> {
  const uri = current(about);
  const position = new vscode.Position(about.position.line, about.position.character);
  const found = await inTime(vscode.commands.executeCommand<Found[]>(command, uri, position), DEADLINE_MS);
  current(about);
  return locationsOf(found ?? undefined);
}

function opened(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
}

/** The file, while its text is the one that was asked about. */
function current({ textDocument, version }: About): vscode.Uri {
  const uri = vscode.Uri.parse(textDocument.uri);
  // A provider may have opened a file meanwhile that was closed: its text is that of the disk.
  if (version !== null && opened(uri)?.version !== version) {
    throw new ResponseError(LSPErrorCodes.ContentModified, `${uri.fsPath} has another version by now`);
  }
  return uri;
}
