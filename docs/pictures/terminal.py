#!/usr/bin/env python3
"""Makes a picture of a terminal run: terminal.py OUT.svg COLUMNS FIRST LAST COMMAND...

Runs the command in tmux (no other terminal needed), takes the lines from the first one that holds
the text FIRST to the first one after it that holds LAST, colours included, and draws them as SVG, in
which they appear one after the other. With `-` in place of the command, what `tmux capture-pane -e`
wrote is read from standard input, and nothing moves."""

import html
import re
import subprocess
import sys
import time

COLOURS = {"31": "#f47067", "32": "#57ab5a", "33": "#c69026", "34": "#539bf5", "35": "#b083f0", "36": "#39c5cf"}
COLOURS |= {"9" + code[1]: colour for code, colour in COLOURS.items()}
CELL, LINE, EDGE = 8.4, 19, 16
# A line appears after so many seconds; in a reader without animations all are there.
PACE = 0.22
MOVES = "@keyframes appear{from{opacity:0}to{opacity:1}}g{animation:appear .15s both}"


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
            style = styled(style, (code[1] or "0").split(";"))
        elif part:
            out.append((style, part))
    return out, style


def styled(style, numbers):
    """A style with the numbers of an escape code. Colours of 256 or more are `f#rrggbb` and `b#rrggbb`."""
    while numbers:
        number, *numbers = numbers
        if number in ("38", "48"):
            layer = "f" if number == "38" else "b"
            kind, *numbers = numbers
            taken = 1 if kind == "5" else 3
            value, numbers = numbers[:taken], numbers[taken:]
            rgb = of_256(int(value[0])) if kind == "5" else tuple(map(int, value))
            style = frozenset(one for one in style if one[0] != layer) | {layer + "#%02x%02x%02x" % rgb}
        elif number in ("0", "22"):
            style = frozenset()
        elif number in ("39", "49"):
            layer = "f" if number == "39" else "b"
            style = frozenset(one for one in style if one[0] != layer and one not in COLOURS)
        else:
            style |= {number}
    return style


def of_256(number):
    if number < 16:
        level = 255 if number > 7 else 170
        return tuple(level * (number >> bit & 1) for bit in (0, 1, 2))
    if number > 231:
        return (8 + 10 * (number - 232),) * 3
    number -= 16
    return tuple(0 if part == 0 else 55 + 40 * part for part in (number // 36, number // 6 % 6, number % 6))


def attributes(style):
    fill = next((COLOURS[code] for code in style if code in COLOURS), "#adbac7")
    fill = next((code[1:] for code in style if code[0] == "f"), fill)
    more = ' font-weight="bold"' if "1" in style else ""
    more += ' fill-opacity="0.6"' if "2" in style else ""
    return f'fill="{fill}"{more}'


def main():
    out, columns, first, last, *command = sys.argv[1:]
    moves = command != ["-"]
    lines = capture(columns, " ".join(command)) if moves else sys.stdin.read().splitlines()
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    begin = next(at for at, line in enumerate(plain) if first in line)
    end = next(at for at in range(begin + 1, len(plain)) if last in plain[at])
    width, height = int(columns) * CELL + 2 * EDGE, (end - begin + 1) * LINE + 2 * EDGE
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
        f"<style>{MOVES if moves else ''}</style>",
        '<rect width="100%" height="100%" rx="8" fill="#22272e"/>',
    ]
    style = frozenset()
    for row, line in enumerate(lines[begin : end + 1]):
        parts, style = spans(line, style)
        y = EDGE + (row + 0.75) * LINE
        column = 0
        drawn.append(f'<g style="animation-delay:{row * PACE:.2f}s">')
        for part_style, text in parts:
            x = EDGE + column * CELL
            length = len(text) * CELL
            column += len(text)
            ground = next((code[1:] for code in part_style if code[0] == "b"), None)
            ground = "#adbac7" if "7" in part_style else ground
            if ground:
                drawn.append(
                    f'<rect x="{x:.1f}" y="{EDGE + row * LINE}" width="{length:.1f}" height="{LINE}" fill="{ground}"/>'
                )
            if "7" in part_style:
                part_style = part_style | {"f#22272e"}
            if text.strip():
                drawn.append(
                    f'<text x="{x:.1f}" y="{y:.1f}" xml:space="preserve" textLength="{length:.1f}" '
                    f"{attributes(part_style)}>{html.escape(text)}</text>"
                )
        drawn.append("</g>")
    drawn.append("</svg>\n")
    with open(out, "w") as file:
        file.write("\n".join(drawn))


if __name__ == "__main__":
    main()
