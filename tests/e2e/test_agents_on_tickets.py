"""Eight agents at work at a time on one folder of tickets: what each of them wrote is there, whole."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import ModelServer, RecordedRequest, answers, calls, text
from marvin_core.testing.answers import Answer
from tests.e2e.support_e2e import PROGRAM, Marvin

pytestmark = pytest.mark.slow

AGENTS, NOTES = 8, 6


class Team(ModelServer):
    """Answers a person's run with eight agents, and each agent with what it does to the tickets.

    How far one is, its own conversation tells: so many calls have an output in it.
    """

    epic = ""
    shared = ""

    def __init__(self) -> None:
        self.arrived: set[int] = set()
        self.together = threading.Event()
        """All of them have their tickets, and go on at the same time."""
        super().__init__(models=("qwen/qwen3-32b",))

    def answer_to(self, request: RecordedRequest) -> Answer:
        """The next answer for whoever asks."""
        if request.method != "POST":
            return super().answer_to(request)
        messages = request.body["messages"]
        outputs = [message["content"] for message in messages if message["role"] == "tool"]
        prompt = str(next(message["content"] for message in messages if message["role"] == "user"))
        if prompt.startswith("Do it."):
            return text("Done.") if outputs else calls(*(self._start(number) for number in range(AGENTS)))
        number = int(prompt.partition("You are number ")[2][0])
        return self._step(number, outputs)

    def _start(self, number: int) -> tuple[str, dict[str, str]]:
        prompt = f"You are number {number}."
        return "launch_agent", {"ticket_id": self.epic, "prompt": prompt, "isolation": "worktree"}

    def _step(self, number: int, outputs: list[str]) -> Answer:
        create = ("tk", {"args": f"create 'Part {number}' --parent {self.epic} -d 'Why' --acceptance 'It is there'"})
        if len(outputs) < 2:
            return calls(create)  # refused once, on purpose
        if len(outputs) == 2:
            own = outputs[1].split()[0]
            lines = [f"add-note {self.shared} 'note {number}-{note}'" for note in range(NOTES)]
            lines += [f"dep {self.epic} {own}", f"link {own} {self.shared}", f"start {own}", f"close {own}"]
            self.arrived.add(number)
            if len(self.arrived) == AGENTS:
                self.together.set()
            return answers.pause(self.together, calls(*(("tk", {"args": line}) for line in lines)))
        wrong = [output for output in outputs[2:] if output.startswith("Error")]
        return answers.error(400, f"the tickets refused: {wrong}") if wrong else text(f"Number {number} is done.")


def tk(marvin: Marvin, *words: str) -> str:
    """What the ticket program prints."""
    argv = [*PROGRAM, "tk", *words]
    done = subprocess.run(argv, cwd=marvin.project, env=marvin.env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_eight_agents_on_one_folder_of_tickets_lose_nothing(tmp_path: Path, warm_cache: Path) -> None:
    with Team() as models:
        marvin = Marvin(tmp_path, models, warm_cache)
        marvin.env["OPENAI_COMPAT_API_KEY"] = "sk-of-the-tests"
        marvin.make_repository()
        models.epic, models.shared = tk(marvin, "create", "All of it"), tk(marvin, "create", "Where notes go")
        done = marvin.ask("--output-format", "stream-json")
    assert done.code == 0, done.said
    told = [event["text"] for event in done.events() if event["type"] == "tool_execution_end"]
    assert sorted(one.partition("\n")[0] for one in told) == [f"Number {number} is done." for number in range(AGENTS)]
    records: dict[str, Any] = {one["id"]: one for one in map(json.loads, tk(marvin, "query").splitlines())}
    parts = {name for name, one in records.items() if one.get("parent") == models.epic}
    assert len(parts) == AGENTS
    assert {records[name]["status"] for name in parts} == {"closed"}
    assert set(records[models.epic]["deps"]) == parts
    assert set(records[models.shared]["links"]) == parts
    assert all(records[name]["links"] == [models.shared] for name in parts)
    notes = (marvin.project / ".tickets" / f"{models.shared}.md").read_text()
    assert all(notes.count(f"\nnote {number}-{note}\n") == 1 for number in range(AGENTS) for note in range(NOTES))
    left = sorted(path.name for path in (marvin.project / ".tickets").iterdir())
    assert left == sorted(f"{name}.md" for name in records)
