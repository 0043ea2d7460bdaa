"""What the kit waits for is what the user set, in tools, hooks, providers and sub-commands."""

from __future__ import annotations

import fcntl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer

from marvin_core import (
    CliContext,
    Hook,
    JsonFile,
    RateLimit,
    StoredFile,
    ToolContext,
    YamlFile,
    fetch,
    hookimpl,
    tool,
)
from marvin_core.testing import HttpReplay, PackRunner, ToolRunner

URL = "https://service.example/things"
_LESS_THAN_USUAL = 3.0
"""Seconds for which a lock is held: a store that waits as long as usual gets it."""

begun = threading.Event()


@contextmanager
def held(path: Path) -> Iterator[None]:
    """The lock of a store is held, for less than it is usually waited for once the tool has begun."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = threading.Event()
    begun.clear()
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def release() -> None:
            begun.wait()
            done.wait(_LESS_THAN_USUAL)
            fcntl.flock(lock, fcntl.LOCK_UN)

        thread = threading.Thread(target=release)
        thread.start()
        try:
            yield
        finally:
            begun.set()
            done.set()
            thread.join()


def store(kind: str, context: ToolContext) -> StoredFile[dict[str, int]]:
    path = context.folders.data / f"kept.{kind}"
    if kind == "json":
        return JsonFile(path, dict, timeouts=context.timeouts)
    return YamlFile(path, timeouts=context.timeouts)


@tool(access=["write"])
async def keep(kind: str, *, context: ToolContext) -> str:
    """Keep something."""
    begun.set()
    await store(kind, context).change(lambda data: data.update(a=1))
    return "kept"


@tool(access=["net"])
async def take_turns(*, context: ToolContext) -> str:
    """Take two turns, of which the second comes later than the user wants to wait."""
    turns = RateLimit(context.folders.cache, 15.0, timeouts=context.timeouts)
    await turns.wait("service.example")
    await turns.wait("service.example")
    return "had two"


@tool(access=["net"])
async def look(*, context: ToolContext) -> str:
    """Look something up."""
    return (await fetch(context.http, URL)).text


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add two sub-commands; of one alone, typer would make the whole program."""

    @app.command("wait")
    def wait(context: typer.Context) -> None:
        run: CliContext = context.obj
        run.write(str(run.timeouts.lock))

    @app.command("other")
    def other() -> None:
        """Do nothing."""


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_a_store_waits_for_its_lock_as_long_as_the_user_set(marvin_tools: ToolRunner, kind: str) -> None:
    runner = marvin_tools.session(timeouts={"lock": 0.0})
    folder = runner.home / ".local/share/marvin/packs" / __name__.partition(".")[0]
    with held(folder / f"kept.{kind}"):
        assert (
            "is locked by another process. Try again when that process has finished"
            in runner.call(keep, kind=kind).text
        )
    assert runner.call(keep, kind=kind).text == "kept"


def test_a_turn_is_waited_for_as_long_as_the_user_set(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.session(timeouts={"http_turn": 5.0}).call(take_turns)
    assert "service.example accepts no further requests now: it would be" in outcome.text


def test_a_service_is_waited_for_as_long_as_the_user_set(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, status=429, headers={"retry-after": "8"})
    assert marvin_tools.session(timeouts={"http_patience": 5.0}).call(look).is_error
    assert len(marvin_http.requests) == 1


def test_hooks_providers_and_sub_commands_know_it_as_well(marvin_pack: PackRunner) -> None:
    pack = marvin_pack.session(timeouts={"lock": 7.0})
    assert pack.hook_context(Hook()).timeouts.lock == 7.0
    assert pack.pack_of("tests.core.kit.test_timeouts").timeouts.lock == 7.0
    assert pack.cli(sys.modules[__name__], "wait").out == "7.0"
