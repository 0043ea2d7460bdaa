"""The state of the pipeline: it never goes back by itself, and it is always what the file says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from marvin_core import MarvinError
from marvin_pipeline.state import MEANINGS, PHASES, PipelineState, StateError
from tests.support.examples import examples
from tests.support.swapping import swapped

pytestmark = pytest.mark.slow

phases = st.sampled_from(PHASES)


class Machine(RuleBasedStateMachine):
    """I1, I2: two pipelines work on one project, as after a crash; `model` is the number of finished phases."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.mine = PipelineState(Path(self.folder.name))
        self.other = PipelineState(Path(self.folder.name))
        self.model = 0

    @rule(phase=phases, by_other=st.booleans())
    def save(self, phase: str, by_other: bool) -> None:
        number = PHASES.index(phase) + 1
        assert (self.other if by_other else self.mine).save(phase) == (number > self.model)
        self.model = max(self.model, number)

    @rule(phase=phases)
    def restart(self, phase: str) -> None:
        self.other.restart_from(phase)
        self.model = PHASES.index(phase)

    @rule(phase=phases)
    def write_by_hand(self, phase: str) -> None:
        self.mine.path.parent.mkdir(exist_ok=True)
        self.mine.path.write_text(f"{phase}\n")
        self.model = PHASES.index(phase) + 1

    @invariant()
    def the_file_is_what_counts(self) -> None:
        done = [phase for phase in PHASES if self.mine.is_done(phase)]
        assert done == list(PHASES[: self.model])
        assert self.mine.next_phase() == (PHASES[self.model] if self.model < len(PHASES) else None)
        assert self.mine.last_finished() == (PHASES[self.model - 1] if self.model else None)

    def teardown(self) -> None:
        self.folder.cleanup()


TestMachine = Machine.TestCase
TestMachine.settings = examples(40, stateful_step_count=15)


@pytest.fixture
def state(tmp_path: Path) -> PipelineState:
    return PipelineState(tmp_path)


def test_the_phases_are_those_of_the_design() -> None:
    assert PHASES == ("1a", "1a_review", "1b", "1b_review", "2a", "2b", "3", "4a", "4b", "4c", "5")
    assert MEANINGS.keys() == set(PHASES)


def test_an_earlier_phase_is_not_saved_over_a_later_one(state: PipelineState) -> None:
    """I1: state never downgrades."""
    assert state.save("2a")
    assert not state.save("1b")
    assert not state.save("2a")
    assert state.path.read_text() == "2a"


def test_what_another_process_writes_is_seen_at_once(state: PipelineState) -> None:
    """I2: phase reads are never cached."""
    state.save("1a")
    assert not state.is_done("3")
    subprocess.run([sys.executable, "-c", f"open({str(state.path)!r}, 'w').write('3')"], check=True)
    assert state.is_done("3")


def test_the_way_back_is_logged(state: PipelineState) -> None:
    state.save("4a")
    state.restart_from("1b")
    state.restart_from("1a")
    assert state.last_finished() is None
    lines = (state.path.parent / "logs" / "pipeline.log").read_text().splitlines()
    assert re.fullmatch(r"[\d-]+T[\d:]+Z --from 1b: '4a' was finished, now 1a_review is", lines[0])
    assert lines[1].endswith("--from 1a: '1a_review' was finished, now nothing is")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"2a 3", b"\xff\xfe", b"2A", b"x" * 1_000_000])
def test_a_damaged_file_is_an_error_until_somebody_says_where_to_start(state: PipelineState, content: bytes) -> None:
    state.path.parent.mkdir()
    state.path.write_bytes(content)
    for ask in (state.last_finished, state.next_phase, lambda: state.is_done("1a"), lambda: state.save("5")):
        with pytest.raises(MarvinError, match=r"is damaged: it holds .* --from 1a restarts the pipeline"):
            ask()
    assert state.path.read_bytes() == content
    state.restart_from("3")
    assert state.last_finished() == "2b"


def test_unknown_phases_are_refused(state: PipelineState) -> None:
    for ask in (state.save, state.is_done, state.restart_from):
        with pytest.raises(StateError, match=r"Unknown phase '6'\. Use one of 1a, 1a_review"):
            ask("6")
    assert not state.path.exists()


def test_a_folder_that_takes_nothing_is_an_error_that_names_it(state: PipelineState) -> None:
    state.path.parent.write_text("a file where the folder should be")
    with pytest.raises(StateError, match=r"\.marvin"):
        state.save("1a")


def test_a_reader_never_sees_half_a_phase_and_no_writer_is_lost(state: PipelineState) -> None:
    """I1: several writers at once end with the latest phase."""
    seen: set[str | None] = set()
    writers = [threading.Thread(target=state.save, args=(phase,)) for phase in PHASES]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        seen.add(state.last_finished())
    assert seen <= {None, *PHASES}
    assert state.last_finished() == "5"
    assert not list(state.path.parent.glob(".pipeline_state*"))


def marvin(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "marvin_core", "pipeline", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=150, check=False)


def test_the_status_on_the_command_line(marvin_home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    PipelineState(project).save("1b")
    done = marvin("status", "--working-dir", project, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == list(PHASES)
    assert [line[1] for line in lines[:5]] == ["done", "done", "done", "next", "functional"]
    assert marvin("status", cwd=project).stdout == done.stdout


def test_the_command_line_tells_of_mistakes(marvin_home: Path, tmp_path: Path) -> None:
    PipelineState(tmp_path).save("5")
    (tmp_path / ".marvin" / "pipeline_state").write_text("oops")
    damaged = marvin("status", cwd=tmp_path)
    assert (damaged.returncode, damaged.stdout) == (1, "")
    assert "is damaged: it holds 'oops'" in damaged.stderr
    assert "Traceback" not in damaged.stderr
    missing = marvin("status", "--working-dir", tmp_path / "none", cwd=tmp_path)
    assert missing.returncode == 2
    assert marvin("stauts", cwd=tmp_path).returncode == 2


LINKED = {".marvin": "folder", ".marvin/logs": "folder", ".marvin/pipeline_state": "file"}
LINKED |= {".marvin/logs/pipeline.log": "file", ".marvin/pipeline_state.lock": "nothing"}


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("name", LINKED)
def test_a_link_that_a_repository_brings_is_neither_read_nor_written_through(
    tmp_path: Path, name: str, is_there: bool
) -> None:
    """I4."""
    link, target = tmp_path / "project" / name, tmp_path / "outside" / "target"
    target.parent.mkdir()
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    if is_there and LINKED[name] == "folder":
        target.mkdir()
    elif is_there and LINKED[name] == "file":
        target.write_text("5")

    def outside() -> list[tuple[Path, str]]:
        return [(path, path.read_text() if path.is_file() else "") for path in target.parent.rglob("*")]

    before, state = outside(), PipelineState(tmp_path / "project")
    works: list[Callable[[], object]] = [
        state.last_finished,
        lambda: state.save("1a"),
        lambda: state.restart_from("1b"),
    ]
    for work in works:
        with suppress(StateError):
            assert work() in (None, True)
    assert outside() == before


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_told_and_nothing_waits_for_it(state: PipelineState, make: Callable[[Path], object]) -> None:
    state.path.parent.mkdir()
    make(state.path)
    for ask in (state.last_finished, lambda: state.save("5"), lambda: state.restart_from("3")):
        with pytest.raises(StateError, match="pipeline_state"):
            ask()


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is missing")
def test_a_link_that_is_swapped_in_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    """I4: whoever checks first and opens then is led elsewhere now and then."""
    outside, project = tmp_path / "outside", tmp_path / "project"
    outside.write_text("theirs")
    project.mkdir()
    state = PipelineState(project)
    state.save("1a")
    link = project / "link"
    link.symlink_to(outside)
    seen: set[str | None] = set()
    with swapped(state.path, link, may_be_missing=True):
        for number in range(300):
            with suppress(StateError):
                state.restart_from(PHASES[number % 3 + 1])
            with suppress(StateError):
                seen.add(state.last_finished())
    assert outside.read_text() == "theirs"
    assert seen <= {None, *PHASES}
