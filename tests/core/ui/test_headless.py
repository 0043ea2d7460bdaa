"""A non-interactive run whose output cannot be written, or whose work is ended from within, is no success."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Hook, HookContext, ThinkingDelta
from marvin_core.api.config import OutputFormat
from marvin_core.api.messages import ProviderData
from marvin_core.ui.headless import Headless, TextOutput
from marvin_core.util.streams import StandardStreams
from tests.support.engine import make, says


def ran(tmp_path: Path, kind: OutputFormat, *script: Any, hooks: Sequence[Hook] = ()) -> tuple[int, str, str]:
    """The exit code of a run, and what it wrote."""
    paths = [tmp_path / "out", tmp_path / "err"]
    descriptors = [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in paths]
    try:
        made = make(tmp_path, *script, hooks=hooks, listening=False)
        streams = StandardStreams(stdout=descriptors[0], stderr=descriptors[1])
        code = Headless(streams, kind, made.meter).run(made.session, "go")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    out, err = (path.read_text("utf-8") for path in paths)
    return code, out, err


def unwritable() -> ThinkingDelta:
    """A piece of an answer whose data no JSON can hold: a value that is no number, and too many levels."""
    value: list[Any] = [float("nan")]
    for _ in range(150):
        value = [value]
    return ThinkingDelta(text="hm", provider_data=ProviderData(provider="scripted", data={"signature": value}))


def test_an_event_that_cannot_be_written_ends_the_run_with_a_word(tmp_path: Path) -> None:
    code, out, err = ran(tmp_path, "stream-json", [unwritable(), *says("Fine.")])
    assert code == 1
    assert "the event message_end cannot be written: ValueError: it is nested more than 100 deep" in err
    assert [json.loads(line)["type"] for line in out.splitlines()][:2] == ["app_start", "session_start"]


def test_in_text_nothing_of_that_matters(tmp_path: Path) -> None:
    assert ran(tmp_path, "text", [unwritable(), *says("Fine.")]) == (0, "Fine.\n", "")


@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_provider_that_cancels_itself_is_an_error(tmp_path: Path, kind: OutputFormat) -> None:
    code, out, err = ran(tmp_path, kind, [asyncio.CancelledError()])
    assert code == 1
    assert "The provider scripted failed: CancelledError" in err
    assert kind == "text" or json.loads(out)["is_error"] is True


def test_a_sequence_in_one_answer_takes_nothing_from_the_next() -> None:
    written: list[str] = []
    output = TextOutput(written.append)
    output.text("one \x1b]0;never ended")
    output.tools(["look\x1b[2J", "read"])
    output.text("two")
    output.end()
    assert "".join(written) == "one \n  🔧 look, read\ntwo\n"


class Again(Hook):
    """Has the model answer once more."""

    async def on_stop(self, context: HookContext, answer: str) -> str | None:
        return None if "More" in answer else "Go on."


@pytest.mark.parametrize("first", ["Done.", "Done.\n", "Done. \x1b]0;never ended"])
def test_an_answer_after_another_one_begins_on_a_line_of_its_own(tmp_path: Path, first: str) -> None:
    code, out, _ = ran(tmp_path, "text", says(first), says("More."), hooks=[Again()])
    assert (code, [line.rstrip() for line in out.splitlines()]) == (0, ["Done.", "More."])
