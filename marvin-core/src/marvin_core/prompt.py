"""The system prompt: what stays the same first, what changes last, so that provider caches hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .hookrunner import HookRunner
from .records import Record
from .tools import Mode
from .workspace import Workspace

PERSONALITY = """\
You are Marvin, an assistant in the user's terminal. You get things done with your tools and say plainly \
what you did. Be brief and exact. Never invent a result: where a tool fails, say so and try another way. \
Answer in the user's language."""

CODING = """\
# Working on code
You work inside one directory; every path is relative to it. Absolute paths and `..` are refused.
- Look before you write: use tree, glob, code_grep and read_file with line ranges.
- Change existing files with apply_patch: old_str must occur exactly once; include enough lines around it.
- Write a large file in sections: create_file with the first part, then append_file for each further one. \
Arguments that are cut off are not run.
- Run the tests or the program after a change, and read what they print.
- Calls that only read may be made several at once; everything else runs in order.
- A tool error says what to do next. Do that instead of repeating the call."""

DOCUMENT_LIMIT = 8_000
"""Characters of one project document that go into the prompt."""

_INSTRUCTION_FILES = ("AGENTS.md", ".marvin-instructions", ".marvin/instructions.md")
_DOCUMENTS = (".marvin/spec.md", ".marvin/ux.md", ".marvin/design.md")


class Part(Record):
    """A part of the system prompt and where it comes from."""

    origin: str
    text: str


def stable_parts(mode: Mode, root: Path, read: Callable[[str], str | None], extra: str) -> list[Part]:
    """The parts that stay the same during a session.

    `read` gives the text of a file below the root, or None; `extra` is the user's own text from
    config.yaml.
    """
    parts = [Part(origin="built in", text=PERSONALITY)]
    if extra:
        parts.append(Part(origin="config.yaml", text=extra))
    if mode == "coding":
        parts.append(Part(origin="built in", text=f"{CODING}\nThe working directory is {root}."))
    for name in _INSTRUCTION_FILES:
        text = (read(name) or "").strip()
        if text:
            parts.append(Part(origin=name, text=f"# Instructions of this project ({name})\n{_cut(text, name)}"))
    for name in _DOCUMENTS if mode == "coding" else ():
        text = (read(name) or "").strip()
        if text:
            parts.append(Part(origin=name, text=f"# {name}\n{_cut(text, name)}"))
    return parts


def _cut(text: str, name: str) -> str:
    if len(text) <= DOCUMENT_LIMIT:
        return text
    return (
        f"{text[:DOCUMENT_LIMIT]}\n[... {len(text) - DOCUMENT_LIMIT:,} more characters in {name}; read_file shows them]"
    )


def volatile_part(now: float, jobs: Sequence[str]) -> str:
    """What changes from request to request: the jobs that run, and the date."""
    from time import localtime, strftime

    lines = [f"Today is {strftime('%A, %Y-%m-%d', localtime(now))}."]
    if jobs:
        lines.append(f"Background jobs: {', '.join(jobs)}.")
    return "\n".join(lines)


class SystemPrompt:
    """The system prompt of a session: the stable parts are read once, and again when the folder changes."""

    def __init__(self, workspace: Workspace, mode: Mode, extra: str, hooks: HookRunner) -> None:
        self._workspace = workspace
        self._mode = mode
        self._extra = extra
        self._hooks = hooks
        self._root: Path | None = None
        self._stable = ""

    async def text(self, now: float, jobs: Sequence[str]) -> str:
        """The prompt for the next request."""
        if self._root != self._workspace.root:
            self._root = self._workspace.root
            parts = [part.text for part in stable_parts(self._mode, self._root, self._workspace.read, self._extra)]
            self._stable = "\n\n".join([*parts, *await self._hooks.system_prompt()])
        return f"{self._stable}\n\n{volatile_part(now, jobs)}"
