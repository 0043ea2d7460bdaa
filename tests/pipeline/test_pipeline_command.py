"""How the pipeline is asked for: flags, prompts, going back, and what is refused before anything is done."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support_e2e import Marvin
from tests.support.agents import agents_in
from tests.support.ntfy import NtfyService
from tests.support.pipeline import PipelineModels, called, document, said, steps

pytestmark = pytest.mark.slow

PROMPT = "Build adder, a program that adds two numbers."
FLAGS = ("--non-interactive", "--design-first", "--working-dir=.")


def to_1a(marvin: Marvin, *flags: str) -> Any:
    """A run that ends behind its first phase."""
    done = marvin.run(*FLAGS, "--until=1a", *flags)
    assert done.code == 0, done.err.decode() + done.text
    return done


def state(marvin: Marvin) -> str:
    """The last finished phase."""
    return (marvin.project / ".marvin" / "pipeline_state").read_text()


def finished(marvin: Marvin, phase: str, prompt: str = PROMPT) -> None:
    """A project that is so far, without the work."""
    folder = marvin.project / ".marvin"
    folder.mkdir()
    (folder / "pipeline_state").write_text(phase)
    (folder / "request.md").write_text(f"{prompt}\n")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--prompt", "x", "--from", "7"), "--from '7' is not a phase. Use one of 1a, "),
        (("--prompt", "x", "--until", "0"), "--until '0' is not a phase"),
        (("--prompt", "x", "--from", "2a", "--until", "1b"), "--until 1b comes before --from 2a"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(
    marvin: Marvin, models: PipelineModels, flags: tuple[str, ...], told: str
) -> None:
    done = marvin.run(*FLAGS, *flags)
    assert (done.code, done.out, models.asked) == (2, b"", [])
    assert told in done.said
    done.cost()
    assert not (marvin.project / ".git").exists()


def test_a_run_whose_end_was_reached_before_has_nothing_to_do(marvin: Marvin, models: PipelineModels) -> None:
    """Whoever starts it again after a kill cannot know how far it came."""
    to_1a(marvin, "--prompt", PROMPT)
    asked = list(models.asked)
    assert to_1a(marvin).text.startswith("The pipeline ended as planned.")
    assert models.asked == asked
    assert state(marvin) == "1a"


def test_without_a_prompt_there_is_nothing_to_build(marvin: Marvin, models: PipelineModels) -> None:
    done = marvin.run(*FLAGS)
    assert (done.code, done.out, models.asked) == (1, b"", [])
    assert "The prompt is empty. Use --prompt TEXT" in done.said
    done.cost()


def test_another_prompt_than_the_recorded_one_is_refused(marvin: Marvin, models: PipelineModels) -> None:
    finished(marvin, "1b")
    done = marvin.run(*FLAGS, "--prompt", "Build something else.")
    assert done.code == 2
    assert "was started with another prompt (.marvin/" in done.said
    assert "--from 1a --yes" in done.said
    assert (state(marvin), models.asked) == ("1b", [])


def test_going_back_to_the_beginning_needs_a_yes_and_removes_no_document(
    marvin: Marvin, models: PipelineModels
) -> None:
    finished(marvin, "2a")
    (marvin.project / ".marvin" / "design.md").write_text("The old design.")
    refused = marvin.run(*FLAGS, "--from=1a")
    assert (refused.code, state(marvin), models.asked) == (2, "2a", [])
    assert "Add --yes" in refused.said
    to_1a(marvin, "--from=1a", "--yes", "--prompt", "Build something else.")
    assert state(marvin) == "1a"
    assert (marvin.project / ".marvin" / "design.md").read_text() == "The old design."
    assert "--from 1a: '2a' was finished" in (marvin.project / ".marvin/logs/pipeline.log").read_text()
    assert (marvin.project / ".marvin" / "request.md").read_text() == "Build something else.\n"


def test_a_later_phase_without_its_documents_says_where_to_begin(marvin: Marvin, models: PipelineModels) -> None:
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--from=2a")
    assert (done.code, models.asked) == (1, [])
    assert "Phase 2a needs .marvin/design.md, which is missing. Write it, or start with --from 1b." in done.text


def test_the_sub_command_is_the_same_and_shows_how_far_it_is(marvin: Marvin, models: PipelineModels) -> None:
    done = marvin.run("pipeline", "run", "--prompt", PROMPT, "--until", "1a", "--output-format=json")
    assert done.code == 0, done.err.decode()
    told = json.loads(done.text)
    assert (told["exit_code"], told["is_error"]) == (0, False)
    assert told["text"].startswith("The pipeline ended as planned.")
    done.cost()
    shown = marvin.run("pipeline", "status")
    assert "1a         done  specification" in shown.text
    assert "1a_review  next" in shown.text
    assert sorted(models.asked) == ["spec", "ux"]


def test_reset_asks_first(marvin: Marvin) -> None:
    finished(marvin, "3")
    refused = marvin.run("pipeline", "reset")
    assert (refused.code, state(marvin)) == (2, "3")
    assert "Add --yes" in refused.said
    done = marvin.run("pipeline", "reset", "--yes")
    assert done.code == 0
    assert "The next run starts with 1a." in done.text
    assert not (marvin.project / ".marvin" / "pipeline_state").exists()
    assert (marvin.project / ".marvin" / "request.md").exists()


def test_two_runs_do_not_work_on_one_project(marvin: Marvin, models: PipelineModels) -> None:
    held = threading.Event()
    models.holds["spec"] = held
    first = marvin.start(*FLAGS, "--prompt", PROMPT, "--until=1a")
    first.until(lambda: models.was_asked("spec"), "the first agent")
    second = marvin.run(*FLAGS, "--prompt", PROMPT)
    held.set()
    assert second.code == 1
    assert "Another run of the pipeline is working on" in second.said
    assert first.finish().code == 0


def test_the_home_folder_is_no_project(marvin: Marvin, models: PipelineModels) -> None:
    done = marvin.run(*FLAGS[:2], f"--working-dir={marvin.home}", "--prompt", PROMPT)
    assert (done.code, models.asked) == (2, [])
    assert "The pipeline does not run in your home folder. Give a project with --working-dir" in done.said
    assert not (marvin.home / ".git").exists()


def test_standard_input_may_say_what_to_build(marvin: Marvin) -> None:
    done = marvin.run(*FLAGS, "--until=1a", stdin=PROMPT.encode())
    assert done.code == 0, done.err.decode()
    assert (marvin.project / ".marvin" / "request.md").read_text() == f"{PROMPT}\n"


def test_writers_of_documents_with_bad_habits_get_there_in_three_tries(marvin: Marvin, models: PipelineModels) -> None:
    """I5, I12: a tiny file, arguments that are none, other places than the document: each try is told of the last."""
    bad = [
        steps(called(("create_file", {"path": ".marvin/spec.md", "content": "I will plan first."})), said("Done!")),
        steps(
            called(("create_file", {"path": str(marvin.project / "src.py"), "content": "x = 1\n"})),
            called(("create_file", {"path": "/etc/spec.md", "content": "x" * 2_000})),
            called(("run_command", {"command": "echo x > .marvin/spec.md"})),
            said("The specification stands above."),
        ),
        document(".marvin/spec.md", "The specification"),
    ]
    prompts: list[str] = []

    def spec(asked: Any) -> Any:
        if asked.step == 0:
            prompts.append(asked.prompt)
        return bad[len(prompts) - 1](asked)

    models.scripts["spec"] = spec
    to_1a(marvin, "--prompt", PROMPT)
    assert len(prompts) == 3
    assert "An earlier attempt failed" not in prompts[0]
    assert all("An earlier attempt failed" in prompt for prompt in prompts[1:])
    assert not (marvin.project / "src.py").exists()
    assert (marvin.project / ".marvin/spec.md").read_text().startswith("# The specification")


def test_the_two_writers_work_side_by_side_each_on_its_own_document(marvin: Marvin, models: PipelineModels) -> None:
    both = threading.Barrier(2)

    def together(path: str) -> Any:
        usual = document(path, "Side by side")

        def script(asked: Any) -> Any:
            if asked.step == 0:
                both.wait(120)
            return usual(asked)

        return script

    models.scripts |= {"spec": together(".marvin/spec.md"), "ux": together(".marvin/ux.md")}
    to_1a(marvin, "--prompt", PROMPT)
    assert not both.broken


def test_a_fallback_model_goes_on_where_that_of_the_tier_fails(marvin: Marvin, models: PipelineModels) -> None:
    from marvin_core.testing import answers

    usual = models.scripts["spec"]
    models.scripts["spec"] = lambda asked: answers.error(400) if asked.model.endswith("32b") else usual(asked)
    marvin.config("packs: {pipeline: {fallback: {plan_gen: qwen/qwen3-14b}}}\n")
    done = to_1a(marvin, "--prompt", PROMPT)
    assert "the agent with the tier plan_gen failed, so qwen/qwen3-14b continues" in done.said
    report = json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())
    assert "qwen/qwen3-14b" in {agent["model"] for agent in report["agents"]}


def test_models_of_tiers_and_upstream_documents_reach_the_agents(
    marvin: Marvin, models: PipelineModels, tmp_path: Path
) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "API.md").write_text("The interface.")
    seen: list[tuple[str, str]] = []
    usual = models.scripts["spec"]

    def spec(asked: Any) -> Any:
        seen.append((asked.model, asked.prompt))
        return usual(asked)

    models.scripts["spec"] = spec
    to_1a(marvin, "--prompt", PROMPT, f"--upstream={tmp_path / 'up'}", "--model=plan_gen=qwen/qwen3-14b")
    assert seen[0][0] == "qwen/qwen3-14b"
    assert ".marvin/upstream/API.md" in seen[0][1]
    assert (marvin.project / ".marvin/upstream/API.md").read_text() == "The interface."


def test_an_agent_that_is_told_to_begin_the_pipeline_runs_it(marvin: Marvin, models: PipelineModels) -> None:
    """launch_agent with design_first: a pipeline below an agent, in the folder that it names."""
    (marvin.project / "inner").mkdir()
    line = "create 'Build it' -d 'All of it.' --acceptance 'It is there.'"
    marvin.run("tk", "create", "Build it")
    ticket = next((marvin.project / ".tickets").glob("*.md")).stem
    build = {"ticket_id": ticket, "prompt": PROMPT, "design_first": True, "working_dir": "inner"}
    models.otherwise = steps(called(("tk", {"args": line})), called(("launch_agent", build)), said("It is built."))
    models.scripts["spec"] = lambda asked: said("I write nothing.")
    done = marvin.ask()
    assert done.code == 0, done.err.decode()
    assert (marvin.project / "inner/.marvin/request.md").read_text() == f"{PROMPT}\n"
    assert models.asked.count("spec") == 3
    assert (marvin.project / "inner/.marvin/ux.md").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_run_has_a_report_and_leaves_no_agent(
    marvin: Marvin, models: PipelineModels, number: signal.Signals
) -> None:
    """I22, I25"""
    held = threading.Event()
    models.holds["spec"] = held
    running = marvin.start(*FLAGS, "--prompt", PROMPT)
    running.until(lambda: models.was_asked("spec"), "the first agent")
    running.send(number)
    done = running.finish()
    held.set()
    assert done.code == 130
    done.cost()
    assert agents_in(marvin.home) == {}
    report = json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())
    assert (report["ended"], report["exit_code"], report["next_phase"]) == ("interrupted", 130, "1a")


def test_an_agent_that_is_killed_is_started_again_or_stops_the_run(marvin: Marvin, models: PipelineModels) -> None:
    held = threading.Event()
    models.holds["spec"] = held
    running = marvin.start(*FLAGS, "--prompt", PROMPT, "--until=1a")
    running.until(lambda: models.was_asked("spec"), "the first agent")

    def writing_the_spec() -> list[int]:
        agents = agents_in(marvin.home).values()
        return [agent.pid for agent in agents if "spec.md" in agent.prompt_file.read_text()[:200]]

    running.until(lambda: bool(writing_the_spec()), "its process")
    os.kill(writing_the_spec()[0], signal.SIGKILL)
    del models.holds["spec"]
    held.set()
    done = running.finish()
    assert done.code == 0, done.err.decode()
    assert "the agent did not finish (failed: It was killed by signal 9" in done.said
    assert models.asked.count("spec") == 2


def test_a_key_in_the_prompt_is_written_nowhere(marvin: Marvin, models: PipelineModels) -> None:
    """I24"""
    key = marvin.env["OPENAI_COMPAT_API_KEY"]
    to_1a(marvin, "--prompt", f"{PROMPT} Use the key {key} for it.")
    kept = "\n".join(path.read_text("utf-8", "replace") for path in marvin.project.rglob("*") if path.is_file())
    assert PROMPT in kept
    assert key not in kept
    to_1a(marvin, "--from=1a", "--yes", "--prompt", f"{PROMPT} Use the key {key} for it.")


def test_notices_tell_of_phases_and_of_the_end(marvin: Marvin, models: PipelineModels) -> None:
    with NtfyService() as service:
        marvin.env["MARVIN_URL_NTFY"] = f"http://127.0.0.1:{service.port}"
        to_1a(marvin, "--prompt", PROMPT, "--ntfy=building")
    texts = [notice["message"] for notice in service.notices]
    assert len(texts) == 3
    assert texts[0].startswith("1a: specification and user experience, for about ")
    assert texts[1].startswith("1a: passed.")
    assert texts[2].startswith("The run in project is done: exit code 0, ")


def test_a_document_of_the_project_that_is_a_link_leads_nowhere(marvin: Marvin, models: PipelineModels) -> None:
    """I4: a repository brings a link in the place of what the pipeline writes."""
    outside = marvin.home / "theirs"
    outside.write_text("Theirs.")
    (marvin.project / ".marvin").mkdir()
    for name in ("request.md", "spec.md", "pipeline_state"):
        (marvin.project / ".marvin" / name).symlink_to(outside)
    done = marvin.run(*FLAGS, "--until=1a", "--prompt", PROMPT)
    assert done.code != 0
    assert outside.read_text() == "Theirs."


def test_flags_in_front_of_the_sub_command_count(marvin: Marvin, models: PipelineModels, tmp_path: Path) -> None:
    """A ceiling and a folder, above all."""
    flags = ("--max-cost=0.000001", f"--working-dir={marvin.project}")
    done = marvin.run(*flags, "pipeline", "run", "--until=1a", "--prompt", PROMPT, cwd=tmp_path)
    assert done.code == 3, done.err.decode() + done.text
    assert (marvin.project / ".marvin" / "request.md").read_text() == f"{PROMPT}\n"
    assert not (tmp_path / ".marvin").exists()
