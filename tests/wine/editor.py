"""A small editor: a client of the Language Server Protocol that opens documents and makes edits."""

import json
import queue
import subprocess
import threading
from pathlib import Path
from urllib.parse import quote, unquote

TIMEOUT = 60


class Editor:
    """Talks with a language server that sees `drive` as the drive C. It spells URIs as VS Code does on Windows."""

    def __init__(self, command, project, drive):
        self.project, self.drive = Path(project), Path(drive)
        self.server = subprocess.Popen(command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.messages = queue.Queue()
        self.documents, self.edited, self.next_id = {}, [], 0
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()

    def uri(self, file):
        path = (self.project / file).relative_to(self.drive).as_posix()
        return f"file:///c%3A/{quote(path)}"

    def path(self, uri):
        path = unquote(uri.removeprefix("file:///"))
        if path[:3].lower() != "c:/":
            raise ValueError(f"not a file on the drive C: {uri}")
        return self.drive / path[3:]

    def text(self, file):
        return self.documents[self.uri(file)]["text"]

    def read(self):
        while True:
            length = 0
            while line := self.server.stdout.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not length:
                return self.messages.put(None)
            self.messages.put(json.loads(self.server.stdout.read(length)))

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def next(self, timeout, awaited):
        """The next message. Requests of the server are answered."""
        try:
            message = self.messages.get(timeout=timeout)
        except queue.Empty:
            raise ValueError(f"the server sent nothing for {timeout} s; awaited: {awaited}") from None
        if message is None:
            raise ValueError(f"the server closed its output; awaited: {awaited}")
        if message.get("method") == "workspace/applyEdit":
            for change in message["params"]["edit"]["documentChanges"]:
                self.apply(change)
            self.send(id=message["id"], result={"applied": True})
        elif "method" in message and "id" in message:
            self.send(id=message["id"], result=None)
        return message

    def apply(self, change):
        uri, version = change["textDocument"]["uri"], change["textDocument"]["version"]
        self.edited.append(uri)
        document = self.documents.get(uri)
        if (document["version"] if document else None) != version:
            raise ValueError(f"an edit of version {version} of {uri}, but the document is {document}")
        text = document["text"] if document else self.path(uri).read_bytes().decode()
        for edit in sorted(change["edits"], key=lambda edit: tuple(edit["range"]["start"].values()), reverse=True):
            start, end = (offset(text, edit["range"][key]) for key in ("start", "end"))
            text = text[:start] + edit["newText"] + text[end:]
        if document:
            document.update(text=text, version=version + 1)
            identity = {"uri": uri, "version": version + 1}
            self.send(method="textDocument/didChange", params={"textDocument": identity, "contentChanges": [{"text": text}]})
        else:
            self.path(uri).write_bytes(text.encode())

    def request(self, method, params):
        self.next_id += 1
        self.send(id=self.next_id, method=method, params=params)
        while True:
            message = self.next(TIMEOUT, method)
            if message.get("id") == self.next_id and "method" not in message:
                if "error" in message:
                    raise ValueError(f"{method}: {message['error']}")
                return message["result"]

    def initialize(self):
        capabilities = {
            "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
            "textDocument": {"codeLens": {}},
            "experimental": {"starling": True},
        }
        folders = [{"uri": self.uri("").rstrip("/"), "name": "project"}]
        params = {"processId": None, "rootUri": folders[0]["uri"], "workspaceFolders": folders, "capabilities": capabilities}
        found = self.request("initialize", params)
        self.send(method="initialized", params={})
        return found["serverInfo"]["name"]

    def open(self, file):
        text = (self.project / file).read_bytes().decode()
        document = {"uri": self.uri(file), "languageId": "python", "version": 1, "text": text}
        self.documents[document["uri"]] = document
        self.send(method="textDocument/didOpen", params={"textDocument": document})

    def wait_for_event(self, name, timeout):
        while True:
            message = self.next(timeout, name)
            event = message.get("params", {}).get("event") if message.get("method") == "starling/event" else None
            if event and name in (event, event.get("type"), event.get("event"), *event):
                return event

    def leave(self, timeout):
        self.request("shutdown", None)
        self.send(method="exit")
        return self.wait(timeout)

    def close_input(self):
        self.server.stdin.close()

    def wait(self, timeout):
        return self.server.wait(timeout)


def offset(text, position):
    """The index in a text of a position in UTF-16 units. The texts here have no character of two units."""
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: position["line"]])) + position["character"]
