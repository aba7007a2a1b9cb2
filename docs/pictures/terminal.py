#!/usr/bin/env python3
"""Makes a picture of a terminal run: terminal.py OUT.svg COLUMNS FIRST LAST COMMAND...

Runs the command in tmux (no other terminal needed), takes the lines from the first one that holds
the text FIRST to the first one after it that holds LAST, colours included, and draws them as SVG."""

import html
import re
import subprocess
import sys
import time

COLOURS = {"31": "#f47067", "32": "#57ab5a", "33": "#c69026", "36": "#39c5cf"}
CELL, LINE, EDGE = 8.4, 19, 16


def capture(columns, command):
    name = "starling-picture"
    ended = "the picture is taken"
    subprocess.run(["tmux", "kill-session", "-t", name], capture_output=True)
    shell = f"{command}; echo {ended}; sleep 60"
    subprocess.run(["tmux", "new-session", "-d", "-s", name, "-x", columns, "-y", "60", shell], check=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        shown = subprocess.run(
            ["tmux", "capture-pane", "-e", "-p", "-t", name, "-S", "-2000"], capture_output=True, text=True
        ).stdout
        if ended in shown:
            break
        time.sleep(0.2)
    else:
        sys.exit("the command did not end within 60 s")
    subprocess.run(["tmux", "kill-session", "-t", name], capture_output=True)
    return shown.splitlines()


def spans(line, style):
    """(style, text) pairs of a line with escape codes; the style goes on to the next line."""
    out = []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if code:
            for number in (code[1] or "0").split(";"):
                style = frozenset() if number in ("0", "39", "22") else style | {number}
        elif part:
            out.append((style, part))
    return out, style


def attributes(style):
    fill = next((COLOURS[code] for code in style if code in COLOURS), "#adbac7")
    more = ' font-weight="bold"' if "1" in style else ""
    more += ' fill-opacity="0.6"' if "2" in style else ""
    return f'fill="{fill}"{more}'


def main():
    out, columns, first, last, *command = sys.argv[1:]
    lines = capture(columns, " ".join(command))
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    begin = next(at for at, line in enumerate(plain) if first in line)
    end = next(at for at in range(begin + 1, len(plain)) if last in plain[at])
    width, height = int(columns) * CELL + 2 * EDGE, (end - begin + 1) * LINE + 2 * EDGE
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
        f'<rect width="100%" height="100%" rx="8" fill="#22272e"/>',
    ]
    style = frozenset()
    for row, line in enumerate(lines[begin : end + 1]):
        parts, style = spans(line, style)
        y = EDGE + (row + 0.75) * LINE
        column = 0
        for part_style, text in parts:
            x = EDGE + column * CELL
            length = len(text) * CELL
            column += len(text)
            if text.strip():
                drawn.append(
                    f'<text x="{x:.1f}" y="{y:.1f}" xml:space="preserve" textLength="{length:.1f}" '
                    f"{attributes(part_style)}>{html.escape(text)}</text>"
                )
    drawn.append("</svg>\n")
    with open(out, "w") as file:
        file.write("\n".join(drawn))


if __name__ == "__main__":
    main()
