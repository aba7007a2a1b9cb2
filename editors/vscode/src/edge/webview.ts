/** What the views that are pages have in common: one script, one sheet, nothing from anywhere else. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

export function options(extension: vscode.Uri): vscode.WebviewOptions {
  return { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(extension, "dist")] };
}

export function page(webview: vscode.Webview, extension: vscode.Uri, name: string, title: string): string {
  const nonce = randomBytes(16).toString("base64");
  const at = (file: string) => webview.asWebviewUri(vscode.Uri.joinPath(extension, "dist", file));
  const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${at(`${name}.css`)}">
<title>${title}</title>
</head>
<body>
<script nonce="${nonce}" src="${at(`${name}.js`)}"></script>
</body>
</html>`;
}
