"""However a run ends, it says so: a summary, a report, events, an exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support_e2e import PROGRAM, Marvin
from tests.support.pipeline import PipelineModels, said

pytestmark = pytest.mark.slow

PROMPT = "Build adder, a program that adds two numbers."
FLAGS = ("--non-interactive", "--design-first", "--working-dir=.", "--until=1a")


def report(marvin: Marvin) -> dict[str, Any]:
    """The report of the last run."""
    found: dict[str, Any] = json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())
    return found


def test_events_end_with_the_summary(marvin: Marvin, models: PipelineModels) -> None:
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--output-format=stream-json")
    assert done.code == 0, done.err.decode()
    events = done.events()
    assert events[-1]["type"] == "agent_end"
    assert events[-1]["stop_reason"] == "done"
    assert events[-1]["text"].startswith("The pipeline ended as planned.")
    told = [event["text"] for event in events if event["type"] == "notice"]
    assert any(text.startswith("1a: passed.") for text in told)
    assert all(f"marvin: {text}" in done.said for text in told)
    done.cost()


def test_staged_parts_of_files_are_kept_and_what_is_left_out_is_named(marvin: Marvin, models: PipelineModels) -> None:
    git = ["git", "-C", str(marvin.project)]
    subprocess.run([*git, "init", "--quiet"], env=marvin.env, check=True)
    (marvin.project / "list.txt").write_text("staged\n")
    subprocess.run([*git, "add", "list.txt"], env=marvin.env, check=True)
    (marvin.project / "list.txt").write_text("not staged\n")
    (marvin.project / "sample.sqlite").write_text("1\n")
    done = marvin.run(*FLAGS, "--prompt", PROMPT)
    assert done.code == 0, done.said
    assert "What is staged differs from the files: list.txt. The pipeline commits the files" in done.said
    (ref,) = re.findall(r"`git show (refs/marvin/snapshots/\S+)`", done.said)
    kept = subprocess.run([*git, "show", f"{ref}:list.txt"], env=marvin.env, capture_output=True, check=True)
    assert kept.stdout == b"staged\n"
    assert done.said.count("Not committed: sample.sqlite (a database).") == 1


@pytest.mark.parametrize(("flags", "reason", "code"), [((), "error", 1), (("--max-cost=0.0005",), "budget", 3)])
def test_events_of_a_run_that_fails_end_with_its_summary_and_the_reason(
    marvin: Marvin, models: PipelineModels, flags: tuple[str, ...], reason: str, code: int
) -> None:
    models.scripts["spec"] = lambda asked: said("I write nothing.")
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--output-format=stream-json", *flags)
    assert done.code == code
    last = done.events()[-1]
    assert (last["type"], last["stop_reason"]) == ("agent_end", reason)
    assert last["error"]
    assert last["error"] in last["text"]


def test_a_run_that_cannot_begin_tells_why_in_every_format(marvin: Marvin, models: PipelineModels) -> None:
    """Flags that do not fit the project are seen when the run is under way already."""
    for form in ("text", "json", "stream-json"):
        done = marvin.run(*FLAGS, "--prompt", PROMPT, "--from=7", f"--output-format={form}")
        assert done.code == 2
        assert "--from '7' is not a phase" in done.said
        if form == "stream-json":
            assert done.events()[-1]["error"].startswith("--from '7' is not a phase")
        elif form == "json":
            assert json.loads(done.text)["exit_code"] == 2
        else:
            assert done.out == b""


def test_an_interrupted_run_has_a_summary(marvin: Marvin, models: PipelineModels) -> None:
    held = threading.Event()
    models.holds["spec"] = held
    running = marvin.start(*FLAGS, "--prompt", PROMPT)
    running.until(lambda: models.was_asked("spec"), "the first agent")
    running.send(signal.SIGTERM)
    done = running.finish()
    held.set()
    assert done.code == 130
    assert done.text.startswith("The pipeline was interrupted.")
    assert "The next run starts with 1a." in done.text
    assert report(marvin)["ended"] == "interrupted"


@pytest.mark.parametrize("what", ["state", "report", "journal"])
def test_what_is_damaged_in_the_middle_of_a_run_takes_no_summary_away(
    marvin: Marvin, models: PipelineModels, what: str
) -> None:
    held = threading.Event()
    models.holds["spec"] = held
    running = marvin.start(*FLAGS, "--prompt", PROMPT)
    running.until(lambda: models.was_asked("spec"), "the first agent")
    folder = marvin.project / ".marvin"
    if what == "state":
        (folder / "pipeline_state").write_text("nonsense")
    elif what == "report":
        (folder / "logs" / "pipeline-report.json").mkdir()
    else:
        (folder / "logs" / "pipeline.jsonl").unlink()
        os.mkfifo(folder / "logs" / "pipeline.jsonl")
    held.set()
    done = running.finish()
    assert done.code == 1, done.err.decode() + done.text
    assert done.text.startswith("The pipeline ")
    done.cost()
    if what == "report":
        assert "pipeline-report.json cannot be written: " in done.text
    else:
        assert report(marvin)["ended"] == "failed"
        assert {"state": "is damaged", "journal": "pipeline.jsonl cannot be written"}[what] in done.text
    if what == "state":
        again = marvin.run(*FLAGS)
        assert (again.code, models.asked.count("spec")) == (1, 1)
        assert "--from 1a restarts the pipeline" in again.said
        refused = marvin.run(*FLAGS, "--from=1a")
        assert refused.code == 2
        assert "Add --yes" in refused.said
        assert marvin.run(*FLAGS, "--from=1a", "--yes").code == 0


def test_a_report_is_of_this_run_or_of_none(marvin: Marvin, models: PipelineModels) -> None:
    """A run that cannot begin must not look like the last one that could; and it changes nothing."""
    assert marvin.run(*FLAGS, "--prompt", PROMPT).code == 0
    assert report(marvin)["ended"] == "paused"
    (marvin.project / ".git" / "MERGE_HEAD").write_text(marvin.git("rev-parse", "HEAD"))
    done = marvin.run(*FLAGS, "--from=1a", "--yes")
    assert done.code == 1
    assert "A merge is not finished" in done.said
    assert not (marvin.project / ".marvin/logs/pipeline-report.json").exists()
    assert (marvin.project / ".marvin/pipeline_state").read_text() == "1a"


def test_a_pipeline_below_an_agent_hands_its_summary_back(marvin: Marvin, models: PipelineModels) -> None:
    """What launch_agent gives its model is what the pipeline says at its end."""
    from tests.support.pipeline import called, steps

    line = "create 'Build it' -d 'All of it.' --acceptance 'It is there.'"
    marvin.run("tk", "create", "Build it")
    ticket = next((marvin.project / ".tickets").glob("*.md")).stem
    build = {"ticket_id": ticket, "prompt": PROMPT, "design_first": True}
    outputs: list[str] = []

    def end(asked: Any) -> Any:
        outputs.extend(asked.outputs)
        return said("It is built.")

    models.otherwise = steps(called(("tk", {"args": line})), called(("launch_agent", build)), end)
    models.scripts["spec"] = lambda asked: said("I write nothing.")
    assert marvin.ask().code == 0
    assert any("The pipeline failed." in output for output in outputs), outputs


def test_a_folder_that_takes_nothing_is_told_before_anything_is_paid(marvin: Marvin, models: PipelineModels) -> None:
    (marvin.project / ".marvin").write_text("a file where the folder should be")
    done = marvin.run(*FLAGS, "--prompt", PROMPT)
    assert (done.code, models.asked) == (1, [])
    assert "cannot be used" in done.said
    done.cost()


@contextmanager
def small_disk(folder: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """A disk of 4 MB in the place of a folder, for programs that are started by these words; and where it is for us."""
    mount = 'mount -t tmpfs -o size=4m tmpfs "$0" && echo ready && sleep 3600'
    words = ["unshare", "--mount", "sh", "-c", mount, str(folder)]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen(words, **streams) as holder:
        try:
            assert holder.stdout is not None
            if not holder.stdout.readline():
                pytest.skip("no file system may be mounted here")
            inside = ("nsenter", f"--target={holder.pid}", "--mount", f"--wd={folder}", *PROGRAM)
            yield inside, Path(f"/proc/{holder.pid}/root{folder}")
        finally:
            os.killpg(holder.pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root may mount a file system")
def test_a_disk_that_is_full_ends_the_run_with_a_summary(marvin: Marvin, models: PipelineModels) -> None:
    held = threading.Event()
    models.holds["spec"] = models.holds["ux"] = held
    with small_disk(marvin.project) as (program, project):
        running = marvin.start(*FLAGS, "--prompt", PROMPT, program=program)
        running.until(lambda: models.was_asked("spec") and models.was_asked("ux"), "the first agents")
        with suppress(OSError), (project / "big").open("wb", buffering=0) as file:
            while file.write(b"x" * 4_096):
                pass
        held.set()
        done = running.finish()
        assert done.code == 1, done.err.decode() + done.text
        assert done.text.startswith("The pipeline failed.")
        assert "No space left" in done.text
        done.cost()
        (project / "big").unlink()
        again = marvin.run(*FLAGS, program=program)
        assert again.code == 0, again.err.decode() + again.text
        assert (project / ".marvin/pipeline_state").read_text() == "1a"
