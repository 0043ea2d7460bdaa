"""The sub-command `marvin demo`: a script in place of a model fixes a bug with real tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from ...api.errors import ConfigError, MarvinError
from ...api.events import Event, MessageEnd, MessageUpdate, ToolExecutionEnd, ToolExecutionStart
from ...config.program import command_name
from ...recording.cassette import Cassette, read_cassette
from ...recording.playing import How
from ...recording.report import Report
from ...ui.headless import TextOutput
from ...ui.rendering import bounded_output, call_line
from ...util.git_calls import GIT_ALONE, git_command
from ...util.streams import StandardStreams, keep_stdout, silence_packs
from ...util.terminal_text import disarm
from ...util.watchdog import owner_of
from ..run import CommandContext
from ..watched import run_watched
from .stage import Stage, replayed

_ENDED_WELL = "[exit code 0]"
_PACE = 45.0
"""Characters per second, about the speed of reading."""
_BEGIN = """\
This is a demonstration by a script. Somebody wrote the answers and the calls by hand; no model is asked, no key is
needed, and nothing leaves this machine. Every tool does its work, though: in a git repository made for this, in
{folder}

> {prompt}

"""
_END = """
This was a script: its words were written by hand, and the bug was fixed just now. {left}
To have a model do such things, set one up: `{command} providers` says how. Then type `{command}` in a project of yours.
"""
_PROJECT: Mapping[str, str] = {
    "averages.py": '''\
"""Averages of measured values."""


def mean(values):
    """The arithmetic mean; None if there are no values."""
    if not values:
        return None
    return sum(values) / len(values)


def median(values):
    """The value in the middle; for an even number of values, the mean of the two in the middle."""
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]
''',
    "test_averages.py": """\
import unittest

from averages import mean, median


class Averages(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_median_of_an_odd_number(self):
        self.assertEqual(median([9, 1, 5]), 5)

    def test_median_of_an_even_number(self):
        self.assertEqual(median([4, 1, 3, 2]), 2.5)
""",
    ".gitignore": "__pycache__/\n",
}


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    app.command("demo")(demo)


def demo(
    context: typer.Context,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the repository where it is.")] = False,
) -> None:
    """Watch how a bug is found and fixed. It needs no model and no key: a script answers, and the tools are real.

    The exit code is 0 if the tests pass at the end, and 1 otherwise.
    """
    run: CommandContext = context.obj
    with as_file(files("marvin_core.recording") / "demo.cassette.jsonl") as bundled:
        cassette = read_cassette(bundled)
    _check_tools(run, cassette)
    keep_stdout(run.streams, owner_of)
    folder = Path(tempfile.mkdtemp(prefix="marvin-demo-")).resolve()
    work, view = folder / "averages", _View(run.streams)
    try:
        environment = run.secrets.child_environment()
        _make(work, environment)
        run.write(_BEGIN.format(folder=work, prompt=cassette.main.prompts[0].text))
        stage = Stage(
            config=run.config,
            secrets=run.secrets,
            folder=folder,
            work=work,
            environment=environment,
            on_ask="allow-all",
            listen=view.listen,
        )
        how = How(real=True, pace=_PACE if os.isatty(run.streams.stdout) else 0.0)
        _check(run_watched(run, replayed(cassette, stage, how)), view)
        left = f"The repository is in {work}." if keep else "The repository is removed again."
        run.write(_END.format(left=left, command=command_name()))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        silence_packs()


def _check_tools(run: CommandContext, cassette: Cassette) -> None:
    """Raise `ConfigError` if a tool of the demo is missing."""
    installed = {spec.name for spec in run.app().plugins.tools}
    if any(call.name not in installed for call in cassette.main.prompts[0].calls.values()):
        raise ConfigError(
            "The demo needs the tools for code, which are not installed: pip install 'marvin-core[coding]'"
        )
    if shutil.which("git", path=run.secrets.child_environment().get("PATH")) is None:
        raise ConfigError("The demo needs git, which is not installed.")


def _make(work: Path, environment: Mapping[str, str]) -> None:
    """Create the repository with the bug."""
    work.mkdir()
    for name, content in _PROJECT.items():
        (work / name).write_text(content, encoding="utf-8")
    git = git_command("init.defaultBranch=main", "user.name=Marvin", "user.email=marvin@example.org")
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "Averages"]):
        done = subprocess.run(
            [*git, *words], cwd=work, env={**environment, **GIT_ALONE}, capture_output=True, check=False
        )
        if done.returncode:
            raise MarvinError(f"The demo could not make its repository: {disarm(done.stderr.decode(errors='replace'))}")


def _check(report: Report, view: _View) -> None:
    """Raise `MarvinError` if a result differs from the recording, or the tests fail at the end."""
    for one in report.differences:
        if one.kind in ("result", "call", "ending"):
            raise MarvinError(f"The demo did not go as it should: {one.where}: {one.text}")
    if not view.passed:
        raise MarvinError("The demo did not go as it should: the tests do not pass at its end.")


class _View:
    """Shows the answers as a non-interactive run does, and also the tool calls."""

    def __init__(self, streams: StandardStreams) -> None:
        self._streams = streams
        self._text = TextOutput(streams.out)
        self.passed = False
        """Whether the last command succeeded."""

    def listen(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, MessageUpdate) and event.kind == "text":
            self._text.text(event.delta)
        elif isinstance(event, MessageEnd) and event.origin == "model":
            self._text.end()
        elif isinstance(event, ToolExecutionStart):
            self._out(f"\n{call_line(event)}\n")
        elif isinstance(event, ToolExecutionEnd):
            if "[exit code" in event.text:
                self.passed = _ENDED_WELL in event.text
            shown = bounded_output(event.text).rstrip("\n")
            self._out("".join(f"    {line}\n" for line in shown.split("\n")) + "\n")

    def _out(self, text: str) -> None:
        self._streams.out(disarm(text))
