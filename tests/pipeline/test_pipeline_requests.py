"""What a run is asked for: prompts of every size and kind, states and documents that are of something else."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import answers
from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import USAGE, PipelineModels, called, document, said, steps

pytestmark = pytest.mark.slow

PROMPT = "Build adder, a program that adds two numbers."
FLAGS = ("--non-interactive", "--design-first", "--working-dir=.", "--until=1a")
OLD = "# The old specification\n\n" + "It says what was asked for before. " * 50


def request(marvin: Marvin) -> str:
    """What is recorded."""
    return (marvin.project / ".marvin/request.md").read_text()


def test_a_state_that_nothing_tells_of_what_is_not_gone_on_with(marvin: Marvin, models: PipelineModels) -> None:
    """As one that came with the files of another project: all would be finished, and nothing built."""
    (marvin.project / ".marvin").mkdir()
    (marvin.project / ".marvin/pipeline_state").write_text("5")
    done = marvin.run(*FLAGS[:3], "--prompt", PROMPT)
    assert (done.code, done.out, models.asked) == (2, b"", [])
    assert "says that 5 is finished, but .marvin/request.md is missing" in done.said
    assert "--from 1a --yes restarts" in done.said
    assert marvin.run(*FLAGS, "--prompt", PROMPT, "--from=1a", "--yes").code == 0


def test_what_was_done_for_another_prompt_is_none_of_this_one(marvin: Marvin, models: PipelineModels) -> None:
    """As notes that came with the files of another project."""
    assert marvin.run(*FLAGS, "--prompt", PROMPT).code == 0
    for name in ("request.md", "pipeline_state"):
        (marvin.project / ".marvin" / name).unlink()
    assert marvin.run(*FLAGS, "--prompt", "Build something else.").code == 0
    assert (models.asked.count("spec"), models.asked.count("ux")) == (2, 2)


@pytest.mark.parametrize(("given", "code"), [("Build something else.", 2), (f"{PROMPT}\n", 0), ("", 0)])
def test_what_comes_on_standard_input_counts_for_a_run_that_goes_on_too(
    marvin: Marvin, models: PipelineModels, given: str, code: int
) -> None:
    assert marvin.run(*FLAGS, "--prompt", PROMPT).code == 0
    done = marvin.run(*FLAGS, stdin=given.encode())
    assert done.code == code, done.err.decode()
    assert ("was started with another prompt (.marvin/" in done.said) == bool(code)


def test_a_run_that_goes_on_waits_for_no_standard_input(marvin: Marvin, models: PipelineModels) -> None:
    """As a job of CI has it, which never closes it."""
    assert marvin.run(*FLAGS, "--prompt", PROMPT).code == 0
    running = marvin.start(*FLAGS, stdin=subprocess.PIPE)
    assert running.process.wait(50) == 0
    running.finish()


ODD = [b"Build \xff\xfe it.", "Build \u202eit\u2028 \x1b[31mred".encode(), b"- --help\r\n'$(x)'"]


@pytest.mark.parametrize("prompt", ODD)
def test_a_prompt_of_odd_bytes_is_the_same_the_next_time(marvin: Marvin, models: PipelineModels, prompt: bytes) -> None:
    for _ in range(2):
        done = marvin.run(*FLAGS, b"--prompt=" + prompt)
        assert done.code == 0, done.err.decode() + done.text
    assert models.asked.count("spec") == 1


def test_a_prompt_of_a_megabyte_is_too_long_and_half_of_one_is_not(
    marvin: Marvin, models: PipelineModels, tmp_path: Path
) -> None:
    wishes = tmp_path / "wishes.md"
    wishes.write_text("It adds. " * 120_000)
    done = marvin.run(*FLAGS, f"--prompt-file={wishes}")
    assert (done.code, models.asked) == (2, [])
    assert "more than 1,000,000 bytes" in done.said
    assert "--upstream" in done.said
    wishes.write_text("It adds. " * 50_000)
    for _ in range(2):
        assert marvin.run(*FLAGS, f"--prompt-file={wishes}").code == 0
    assert len(request(marvin)) > 400_000


def test_flags_that_are_for_a_prompt_are_refused(marvin: Marvin, models: PipelineModels) -> None:
    for flag in ("--continue", "--resume=x"):
        done = marvin.run(*FLAGS, "--prompt", PROMPT, flag)
        assert (done.code, done.out, models.asked) == (2, b"", [])
        assert f"{flag.partition('=')[0]} applies to a prompt" in done.said


def test_nothing_is_set_back_while_a_run_works(marvin: Marvin, models: PipelineModels) -> None:
    held = threading.Event()
    models.holds["spec"] = held
    first = marvin.start(*FLAGS, "--prompt", PROMPT)
    first.until(lambda: models.was_asked("spec"), "the first agent")
    reset = marvin.run("pipeline", "reset", "--yes")
    held.set()
    assert reset.code == 1
    assert "Another run of the pipeline is working on" in reset.said
    assert first.finish().code == 0
    assert marvin.run("pipeline", "reset", stdin=b"").code == 2


def test_something_else_that_is_asked_for_gets_an_epic_of_its_own(marvin: Marvin, models: PipelineModels) -> None:
    epics = []
    for prompt in (PROMPT, PROMPT, "Build something else."):
        assert marvin.run(*FLAGS, "--prompt", prompt, "--from=1a", "--yes").code == 0
        epics.append((marvin.project / ".marvin/logs/pipeline-epic").read_text())
    assert epics[0] == epics[1] != epics[2]
    assert "Build something else." in marvin.run("tk", "show", epics[2]).text


def test_a_document_from_before_is_none_until_it_is_written_anew(marvin: Marvin, models: PipelineModels) -> None:
    """Else an agent that writes nothing would have the old specification built again."""
    path = marvin.project / ".marvin/spec.md"
    path.parent.mkdir()
    path.write_text(OLD)
    prompts: list[str] = []

    def idle(asked: Any) -> Any:
        prompts.append(asked.prompt)
        return said("There is one already.")

    models.scripts["spec"] = idle
    done = marvin.run(*FLAGS, "--prompt", PROMPT)
    assert done.code == 1
    assert "the file is still the one from before the run" in done.text
    assert "A file .marvin/spec.md from before this run exists" in prompts[0]
    assert path.read_text() == OLD
    content = OLD.replace("before", "now")
    written = called(
        ("read_file", {"path": ".marvin/spec.md"}), ("write_file", {"path": ".marvin/spec.md", "content": content})
    )
    models.scripts["spec"] = steps(written, said("Done."))
    assert marvin.run(*FLAGS).code == 0
    assert path.read_text() == content


def test_what_an_agent_left_that_did_not_come_to_its_end_is_finished_by_the_next(
    marvin: Marvin, models: PipelineModels
) -> None:
    """A first section is longer than 1,000 bytes, and no document."""
    path, prompts = ".marvin/spec.md", list[str]()
    first = steps(called(("create_file", {"path": path, "content": OLD})), answers.error(400))
    second = steps(
        called(("read_file", {"path": path}), ("append_file", {"path": path, "content": "## The end\n"})), said("Done.")
    )

    def spec(asked: Any) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return (first, second)[len(prompts) - 1](asked)

    models.scripts["spec"] = spec
    done = marvin.run(*FLAGS, "--prompt", PROMPT)
    assert done.code == 0, done.err.decode() + done.text
    assert len(prompts) == 2
    assert "the agent did not finish (failed: " in prompts[1]
    assert f"left {len(OLD):,} bytes in {path}" in prompts[1]
    assert (marvin.project / path).read_text() == f"{OLD}## The end\n"


def test_a_writer_that_never_comes_to_its_end_and_one_whose_calls_are_none(
    marvin: Marvin, models: PipelineModels
) -> None:
    """An endless loop ends with its rounds; arguments that are no JSON, and a patch in their place, are no file."""
    path, prompts = ".marvin/spec.md", list[str]()
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"
    odd = steps(
        answers.calls(("create_file", "no JSON at all"), usage=USAGE),
        answers.calls(("create_file", patch), usage=USAGE),
        answers.calls(("create_file", '{"path": ".marvin/spec.md", "content": "' + "x" * 2_000), usage=USAGE),
        said("I have written it."),
    )
    bad = [steps(called(("read_file", {"path": ".marvin/request.md"}))), odd, document(path, "The specification")]

    def spec(asked: Any) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return bad[len(prompts) - 1](asked)

    models.scripts["spec"] = spec
    done = marvin.run(*FLAGS, "--prompt", PROMPT)
    assert done.code == 0, done.err.decode() + done.text
    assert len(prompts) == 3
    assert (marvin.project / path).read_text().startswith("# The specification")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/etc/hostname", path)])
def test_what_stands_in_the_place_of_a_document_is_told_or_removed(
    marvin: Marvin, models: PipelineModels, make: Any
) -> None:
    """I4"""
    (marvin.project / ".marvin").mkdir()
    make(marvin.project / ".marvin/spec.md")
    models.scripts["spec"] = document(".marvin/spec.md", "The specification")
    done = marvin.run(*FLAGS, "--prompt", PROMPT)
    if done.code:
        assert ".marvin/spec.md cannot be read" in done.text
        assert "spec" not in models.asked
    else:
        assert (marvin.project / ".marvin/spec.md").read_text().startswith("# The specification")


def test_a_later_phase_takes_documents_by_the_same_rule(marvin: Marvin, models: PipelineModels) -> None:
    folder = marvin.project / ".marvin"
    folder.mkdir()
    for data in (b" \n" * 2_000, b"\0" * 2_000, b"\xff" * 2_000, "é".encode("utf-16") * 1_000):
        (folder / "design.md").write_bytes(data)
        done = marvin.run(*FLAGS[:3], "--prompt", PROMPT, "--from=2a")
        assert (done.code, models.asked) == (1, [])
        assert "Phase 2a needs .marvin/design.md, which is not a document: " in done.text


def test_a_fallback_model_goes_on_where_no_service_has_that_of_the_tier(marvin: Marvin, models: PipelineModels) -> None:
    marvin.config("packs: {pipeline: {fallback: {plan_gen: qwen/qwen3-14b}}}\n")
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--model=plan_gen=groq/no-such-model")
    assert done.code == 0, done.err.decode() + done.text
    assert "qwen/qwen3-14b continues" in done.said
