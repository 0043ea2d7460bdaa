"""Makes docs/assets/chat.svg from a real chat: Marvin in a terminal (tmux), with the scripted model of the examples.

With --check it writes nothing, and fails if the picture differs from the current chat.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from marvin_core.testing import ModelServer, answers

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "assets" / "chat.svg"
SCRIPT = ROOT / "docs" / "examples" / "chat.json"
ASKED = "Start a list of my trip: Oslo, three days."
COLUMNS, ROWS = 102, 40
LIMIT = 60.0
# Rich's own form of an SVG, without the fonts that it would load from elsewhere.
FORM = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def chat(folder: Path, address: str) -> str:
    """The final state of the terminal, with colours as escape sequences."""
    socket = folder / "tmux"
    env = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "MARVIN_PERMISSION_MODE": "ask",
        "OPENAI_COMPAT_URL": address,
        "OPENAI_COMPAT_MODEL": "qwen/qwen3-32b",
    }
    (folder / "work").mkdir()

    def tmux(*words: str) -> str:
        base = ["tmux", "-u", "-f", os.devnull, "-S", str(socket)]
        return subprocess.run([*base, *words], env=env, capture_output=True, text=True, check=True).stdout

    def until(words: str) -> str:
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            if words in tmux("capture-pane", "-p"):
                return tmux("capture-pane", "-p", "-e")
            time.sleep(0.1)
        raise TimeoutError(f"{words!r} was not shown:\n{tmux('capture-pane', '-p')}")

    marvin = shlex.join([sys.executable, "-P", "-m", "marvin_core"])
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    tmux("new-session", "-d", *size, "-c", str(folder / "work"), marvin)
    try:
        until("\n>")
        tmux("send-keys", "-l", ASKED)
        tmux("send-keys", "Enter")
        until("/view]")
        tmux("send-keys", "y", "Enter")
        until("Where to next?")
        time.sleep(1)  # wait for the terminal's last output
        return until("Where to next?")
    finally:
        tmux("kill-server")


def picture(shown: str) -> str:
    """The SVG of a screen."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    rows = shown.rstrip().splitlines()
    console.print(Text.from_ansi("\n".join(rows)), soft_wrap=False)
    return console.export_svg(title="marvin", theme=SVG_EXPORT_THEME, code_format=FORM, unique_id="chat")


def words(svg: str) -> str:
    """The words of a picture with their colours, without numbers: seconds and places differ each time."""
    return re.sub(r"[\d.]+", "0", svg[svg.index("<g class=") :])


def main() -> int:
    """Make the picture, or check that it is current; returns the exit code."""
    steps = json.loads(SCRIPT.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, ModelServer() as server:
        server.script(*(answers.from_json(step) for step in steps))
        shown = chat(Path(folder), server.url)
    made, place = picture(shown), PICTURE.relative_to(ROOT)
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(made, encoding="utf-8")
        print(f"{place} is made.")
    elif words(PICTURE.read_text(encoding="utf-8")) != words(made):
        print(f"{place} does not show the chat as it is: scripts/picture.py makes it again. It is:\n{shown}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
