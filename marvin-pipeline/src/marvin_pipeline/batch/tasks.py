"""The tasks of a batch: a file with a JSON object on each line, validated completely before anything starts."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ConfigDict, ValidationError

from marvin_core import Field, Record, Settings, UsageError, one_line

from ..state import PHASES

_LARGEST, _MOST, _LONGEST = 100_000_000, 100_000, 1_000_000
"""Bytes of the file, tasks in it, bytes of a prompt."""
_SHOWN, _WHY = 20, 200
_ID = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|lock\Z)){0,63}(?<!\.)"
"""A valid part of a branch name and name of a folder."""
_URL = re.compile(r"(https?|ssh|git|file)://[^\s\x00-\x1f]+")
_SCP = re.compile(r"[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[^\s\x00-\x1f]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|:)")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]{0,199}")
TAKEN = frozenset(("batch.lock", "led.lock", "ledgers", "index.json", "index.md", "junit.xml"))
"""Names that a batch uses besides the folders of its tasks."""


class Task(Record):
    """One task of a batch."""

    id: str
    repository: str
    """A URL, or the absolute path of a folder."""
    prompt: str
    base: str = ""
    """The branch, tag or commit to start from; empty for the repository's HEAD."""
    until: str = ""
    """The last phase; empty for all."""
    max_cost: float | None = None
    """USD for all attempts; None for no ceiling of its own."""
    max_time: float | None = None
    """Seconds of one attempt; None for no limit."""
    models: tuple[tuple[str, str], ...] = ()
    """Models of tiers that differ from those of the batch."""

    @property
    def digest(self) -> str:
        """A hash that identifies the task. Limits and models are not part of it: they may change between runs."""
        return sha256(json.dumps([self.id, self.repository, self.prompt, self.base]).encode()).hexdigest()


class TaskLine(Settings):
    """A line of the file, as it is written."""

    model_config = ConfigDict(strict=True)

    id: str
    repository: str = Field(min_length=1, max_length=4_096)
    prompt: str = Field(default="", max_length=_LONGEST)
    prompt_file: str = Field(default="", max_length=4_096)
    base: str = Field(default="", max_length=200)
    until: str = ""
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_time: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    models: dict[str, str] = Field(default_factory=dict)


class Wrong(ValueError):
    """Why a line is not a valid task."""


def read_tasks(path: Path, tiers: Collection[str]) -> Sequence[Task]:
    """The tasks of a file. Blocks.

    Args:
        path: the file; paths in it are relative to its folder.
        tiers: the tiers that a line may set a model for.

    Raises:
        UsageError: the file is unreadable, or lines are not valid tasks; all of them are named.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > _LARGEST:
        raise UsageError(f"{path} has more than {_LARGEST:,} bytes. Split it into several batches.")
    tasks: list[Task] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            task = _task(line, path.parent, tiers)
            earlier = seen.setdefault(task.id.casefold(), number)
            if earlier != number:
                raise Wrong(f"the id {task.id!r} is already used in line {earlier}")
            tasks.append(task)
        except Wrong as wrong:
            problems.append(f"line {number}: {one_line(str(wrong), _WHY)}")
    if len(tasks) > _MOST:
        problems.append(f"{len(tasks):,} tasks are more than the limit of {_MOST:,}")
    if not tasks and not problems:
        problems.append("it contains no task")
    if problems:
        more = [f"and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        listed = "\n".join(f"- {problem}" for problem in (*problems[:_SHOWN], *more))
        raise UsageError(f"{path} has errors, so no task was started.\n{listed}")
    return tasks


def _task(line: bytes, folder: Path, tiers: Collection[str]) -> Task:
    given = _line(line)
    if not re.fullmatch(_ID, given.id) or given.id.casefold() in TAKEN:
        raise Wrong(
            f"the id {given.id!r} cannot be used as the name of a branch and a folder: use letters, digits, -, _ and ."
        )
    if given.base and not _REF.fullmatch(given.base):
        raise Wrong(f"base {given.base!r} is not a branch, tag or commit")
    if given.until and given.until not in PHASES:
        raise Wrong(f"until {given.until!r} is not a phase: {', '.join(PHASES)}")
    return Task(
        id=given.id,
        repository=_repository(given.repository, folder),
        prompt=_prompt(given, folder),
        base=given.base,
        until=given.until,
        max_cost=given.max_cost,
        max_time=given.max_time,
        models=tuple(_models(given.models, tiers)),
    )


def _line(line: bytes) -> TaskLine:
    try:
        value = json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"it is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise Wrong("it is not a JSON object")
    try:
        return TaskLine(**value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise Wrong("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found)) from error


def _once(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    """An object without duplicate keys, whose meaning would be ambiguous."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Wrong("a key occurs twice")
    return found


def _repository(given: str, folder: Path) -> str:
    if _URL.fullmatch(given):
        try:
            has_password = urlsplit(given).password is not None
        except ValueError as error:
            raise Wrong(f"repository is not a URL: {error}") from error
        if has_password:  # it would appear in logs and reports
            raise Wrong("the URL of the repository contains a password: remove it, and use a git credential helper")
        return given
    if _SCP.fullmatch(given):
        return given
    if given.startswith("-") or _SCHEME.match(given):
        raise Wrong(f"repository {given!r} is neither a path nor a URL with https, http, ssh, git or file")
    path = folder / given
    if "\0" in given or not path.is_dir():
        raise Wrong(f"repository {given!r} is not a folder")
    return str(path.resolve())


def _prompt(given: TaskLine, folder: Path) -> str:
    if bool(given.prompt.strip()) == bool(given.prompt_file):
        raise Wrong("it needs either a prompt or a prompt_file")
    text = given.prompt
    if given.prompt_file:
        try:
            with open(folder / given.prompt_file, "rb") as file:
                text = file.read(_LONGEST + 1).decode("utf-8")
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or "it is not text in UTF-8"
            raise Wrong(f"prompt_file {given.prompt_file!r} cannot be read: {why}") from error
    if not text.strip():
        raise Wrong("its prompt is empty")
    if len(text.encode()) > _LONGEST or "\0" in text:
        raise Wrong(f"its prompt contains a NUL character, or more than {_LONGEST:,} bytes")
    return text.strip()


def _models(given: Mapping[str, str], tiers: Collection[str]) -> Iterator[tuple[str, str]]:
    for tier, model in sorted(given.items()):
        if tier not in tiers:
            raise Wrong(f"models: unknown tier {tier!r}; known tiers: {', '.join(tiers)}")
        if not model.strip() or not model.isprintable():
            raise Wrong(f"models: {tier} needs the name of a model")
        yield tier, model
