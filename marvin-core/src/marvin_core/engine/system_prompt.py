"""The system prompt: what stays the same first, what changes last, so that provider caches hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..api.config import Config
from ..api.record import Record
from ..api.tools import Mode
from ..profiles.personal import Personal
from ..util.text import listed, one_line
from .hook_runner import HookRunner
from .parts import SessionParts

PERSONALITY = """\
You are Marvin, an assistant in the user's terminal. You get things done with your tools and say plainly \
what you did. Be brief and exact. Never invent a result: where a tool fails, say so and try another way. \
Answer in the user's language."""

CODING = """\
# Working on code
You work inside one directory; every path is relative to it. Absolute paths and `..` are refused."""

CODING_RULES = """\
- Calls that only read may be made several at once; everything else runs in order.
- A tool error says what to do next. Do that instead of repeating the call."""

DOCUMENT_LIMIT = 8_000
"""Characters of one project document that go into the prompt."""

_INSTRUCTION_FILES = (".marvin-instructions", ".marvin/instructions.md")
_AGENTS_FILE = "AGENTS.md"
_DOCUMENTS = (".marvin/spec.md", ".marvin/ux.md", ".marvin/design.md")


class PromptPart(Record):
    """A part of the system prompt and where it comes from."""

    origin: str
    text: str


class Sources(Record):
    """What the stable parts are made from.

    `read` gives the text of a file below the root, or None; `extra` is the user's own text from config.yaml.
    """

    mode: Mode
    root: Path
    home: Path
    read: Callable[[str], str | None]
    extra: str = ""
    personal: Personal = Personal()
    guidance: Sequence[str] = ()
    """What the groups of the offered tools say about working with them; one line of each text is one rule."""
    bounds: Sequence[str] = ()
    """What the agent may not do, and what it is to work on; one sentence each."""
    output_schema: Mapping[str, Any] | None = None


def stable_parts(sources: Sources) -> list[PromptPart]:
    """The parts that stay the same while nobody changes what they are made from; documents come last."""
    parts = [PromptPart(origin="built in", text=PERSONALITY)]
    if sources.bounds:
        lines = "\n".join(f"- {bound}" for bound in sources.bounds)
        parts.append(PromptPart(origin="built in", text=f"# What binds you\n{lines}"))
    if sources.output_schema is not None:
        from .output_form import ASKED

        schema = json.dumps(sources.output_schema, ensure_ascii=False)
        parts.append(PromptPart(origin="--output-schema", text=ASKED.format(schema=schema)))
    if sources.extra:
        parts.append(PromptPart(origin="config.yaml", text=sources.extra))
    parts += _personal_parts(sources.personal)
    if sources.mode == "coding":
        text = f"{coding_rules(sources.guidance)}\nThe working directory is {sources.root}."
        parts.append(PromptPart(origin="built in", text=text))
    return [*parts, *_project_parts(sources)]


def coding_rules(guidance: Sequence[str]) -> str:
    """How to work on code, what the packs say about their tools among it."""
    lines = [line.strip() for text in guidance for line in text.splitlines() if line.strip()]
    return "\n".join([CODING, *(f"- {line}" for line in lines), CODING_RULES])


def bounds_of(config: Config) -> list[str]:
    """What binds an agent whatever it is told later; tools that it rules out are not offered, or refuse."""
    found = []
    if config.read_only:
        found.append("You may only read: nothing can be written or run here. Tell what you would change instead.")
    elif config.writable_files is not None:
        names = ", ".join(config.writable_files) or "none"
        found.append(f"Of all files you may write only these: {names}. No program can be run.")
    if config.ticket:
        found.append(f"You work on the ticket {config.ticket}, and on nothing else.")
    if config.max_cost is not None:
        found.append(f"All requests to models together may cost {config.max_cost:g} USD; then the work ends.")
    if config.depth:
        found.append("You were started by another agent, which reads your last answer. Nobody answers questions.")
    return found


def _personal_parts(personal: Personal) -> Iterator[PromptPart]:
    if personal.preferences:
        lines = "\n".join(f"- {name}: {listed(value)}" for name, value in personal.preferences)
        yield PromptPart(origin="preferences.yaml", text=f"# What the user prefers\n{lines}")
    if personal.profile:
        yield PromptPart(origin="last_profile", text=f"Active profile: {personal.profile}")
    if personal.places:
        lines = "\n".join(f"- {_place(place)}" for place in personal.places)
        yield PromptPart(origin="saved_places.json", text=f"# Places that the user saved\n{lines}")
    if personal.history:
        yield PromptPart(origin="chat_log.json", text=f"# What was said last, shortened\n{personal.history}")


def _place(place: Mapping[str, Any]) -> str:
    where = f"({place['lat']}, {place['lng']})" if "lat" in place and "lng" in place else ""
    words = [str(place.get(key) or "") for key in ("name", "address")]
    told = ", ".join(word for word in [*words, where, str(place.get("notes") or "")] if word)
    return f"{place.get('label') or 'place'}: {told}"


def _project_parts(sources: Sources) -> Iterator[PromptPart]:
    given: list[tuple[str, str | None]] = [(name, sources.read(name)) for name in _INSTRUCTION_FILES]
    own = own_instructions(sources.home, sources.root)
    given.append((str(own), _text_of(own)))
    given.append((_AGENTS_FILE, sources.read(_AGENTS_FILE)))
    for name, text in given:
        if text and text.strip():
            heading = f"# Instructions for this project ({name})"
            yield PromptPart(origin=name, text=f"{heading}\n{_cut(text.strip(), name)}")
    for name in _DOCUMENTS if sources.mode == "coding" else ():
        text = (sources.read(name) or "").strip()
        if text:
            yield PromptPart(origin=name, text=f"# {name}\n{_cut(text, name)}")


def own_instructions(home: Path, root: Path) -> Path:
    """The user's own file for a working directory: for /home/ada/app, ~/.marvin/instructions/home/ada/app.md."""
    below = home / ".marvin" / "instructions" / root.relative_to(root.anchor)
    return below.with_name(f"{below.name}.md")


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _cut(text: str, name: str) -> str:
    if len(text) <= DOCUMENT_LIMIT:
        return text
    return f"{text[:DOCUMENT_LIMIT]}\n[... {len(text) - DOCUMENT_LIMIT:,} more characters; read {name} to see them]"


def volatile_part(now: float, jobs: Sequence[str]) -> str:
    """What changes from request to request: the jobs that run, and the date."""
    from time import localtime, strftime

    lines = [f"Today is {strftime('%A, %Y-%m-%d', localtime(now))}."]
    if jobs:
        lines.append(f"Background jobs: {', '.join(jobs)}.")
    return "\n".join(lines)


class SystemPrompt:
    """The system prompt of a session.

    The stable parts are kept until the folder, the mode, the profile, what the profile holds, or what the groups of
    the offered tools say changes, so that the caches of the services hold.
    """

    def __init__(self, parts: SessionParts, hooks: HookRunner) -> None:
        self._session = parts
        self._hooks = hooks
        self._key: object = None
        self._stable: list[PromptPart] = []

    async def parts(self) -> list[PromptPart]:
        """The parts of the prompt for the next request, in their order."""
        session = self._session
        jobs = [f"{job.id} ({one_line(job.command, 60)})" for job in session.processes.job_list() if job.running]
        volatile = volatile_part(session.clock.now(), jobs)
        key = (session.workspace.root, session.workspace.mode, session.profile.stamp(), session.toolbox.guidance())
        if key != self._key:
            stable = stable_parts(self._sources())
            added = await self._hooks.system_prompt()
            self._stable = [*stable, *(PromptPart(origin="hooks of packs", text=text) for text in added)]
            self._key = key
        return [*self._stable, PromptPart(origin="built in, new each time", text=volatile)]

    def _sources(self) -> Sources:
        session = self._session
        return Sources(
            mode=session.workspace.mode,
            root=session.workspace.root,
            home=session.config.home,
            read=session.workspace.read,
            extra=session.config.instructions,
            personal=session.profile.personal(),
            guidance=session.toolbox.guidance(),
            bounds=bounds_of(session.config),
            output_schema=session.config.output_schema,
        )
