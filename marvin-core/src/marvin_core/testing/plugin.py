"""The pytest plugin. Every environment with marvin-core loads it, so it imports nothing before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .model_server import ModelServer
    from .pack_runner import PackRunner
    from .replay import HttpReplay
    from .tool_runner import ToolRunner


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect recorded sessions as tests; `marvin replay --as-test` creates them."""
    if not file_path.name.endswith(".cassette.jsonl"):
        return None
    return CassetteFile.from_parent(parent, path=file_path)


class CassetteFile(pytest.File):
    """A file with a recorded session."""

    def collect(self) -> Iterator[pytest.Item]:
        """The one test of the file."""
        yield CassetteItem.from_parent(self, name="replay")


class CassetteItem(pytest.Item):
    """Replays the session with the recorded results of its tools, in a temporary home folder."""

    def runtest(self) -> None:
        """Replay the session; fails with the report if anything differs."""
        from .cassettes import ReplayFailed, check

        try:
            check(self.path)
        except ReplayFailed as failed:
            pytest.fail(str(failed), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The name of the test for pytest."""
        return self.path, None, f"replay of {self.path.name}"


@pytest.fixture
def marvin_guard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the test if it leaks variables, files outside of its folders, processes, connections or open files.

    Its folders are those of pytest's temporary files, including `marvin_home` and `marvin_workdir`. Files that child
    processes write are not detected.
    """
    from .leaks import Guard

    guard = Guard([tmp_path_factory.getbasetemp()])
    yield
    leaks = guard.leaks()
    if leaks:
        pytest.fail("the test left behind:\n" + "\n".join(f"- {leak}" for leak in leaks), pytrace=False)


@pytest.fixture
def marvin_home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A new home folder, in HOME. No variable refers to another one, and no key is set."""
    _guard_first(request)
    from .environment import own_home

    with own_home(tmp_path / "home") as folder:
        yield folder


@pytest.fixture
def marvin_workdir(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A new empty folder, which is the current one."""
    _guard_first(request)
    from .environment import own_working_dir

    with own_working_dir(tmp_path / "work") as folder:
        yield folder


@pytest.fixture
def marvin_repository(marvin_workdir: Path) -> Path:
    """`marvin_workdir` as a git repository with one empty commit."""
    from .environment import start_repository

    start_repository(marvin_workdir)
    return marvin_workdir


@pytest.fixture
def marvin_http(request: pytest.FixtureRequest) -> Iterator[HttpReplay]:
    """Answers requests to every host with the answers set by `on`. An unexpected request fails the test."""
    _guard_first(request)
    from .replay import HttpReplay

    with HttpReplay() as replay:
        yield replay
    try:
        replay.check()
    except AssertionError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def marvin_tools(marvin_home: Path, marvin_workdir: Path, marvin_http: HttpReplay) -> Iterator[ToolRunner]:
    """Calls tools as a session does, in `marvin_home` and `marvin_workdir`, with `marvin_http` as the network."""
    from .tool_runner import ToolRunner

    with ToolRunner(marvin_home, marvin_workdir, marvin_http.transport) as runner:
        yield runner


@pytest.fixture
def marvin_pack(marvin_home: Path, marvin_workdir: Path, marvin_http: HttpReplay) -> Iterator[PackRunner]:
    """Tests every part of a pack in `marvin_home` and `marvin_workdir`, with `marvin_http` as the network."""
    from .pack_runner import PackRunner

    with PackRunner(marvin_home, marvin_workdir, marvin_http.transport) as runner:
        yield runner


@pytest.fixture
def marvin_model_server(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    """A model server on loopback; set its answers with `script`."""
    _guard_first(request)
    from .model_server import ModelServer

    with ModelServer() as server:
        yield server


def _guard_first(request: pytest.FixtureRequest) -> None:
    """Set up the guard before another fixture, so that it checks after that one is closed, in any order of names."""
    if "marvin_guard" in request.fixturenames:
        request.getfixturevalue("marvin_guard")
