"""A model for each role of the pipeline's reviews: it is known by what its prompt says."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from marvin_core.testing import ModelServer, RecordedRequest, answers, calls, text
from marvin_core.testing.answers import Answer

MARKS = {
    "DOCUMENT EDITOR": "fixer",
    "You fix what a review found": "code_fixer",
    "You review what the phase": "code_reviewer",
    "You are the main reviewer": "main",
    "above all for\ngaps: required behaviour that is not described, errors": "aux-1",
    "above all for\ninconsistencies: statements that contradict each other, the": "aux-2",
    "You review the quality": "quality",
    "Your task: the product specification": "spec",
    "Your task: the structure of the project": "structure",
    "Your task: the user experience": "ux",
}
"""Words of a prompt that tell whose it is."""
REVIEWERS = ("main", "aux-1", "aux-2", "quality")
PASS, FAIL = text("SPEC_VERIFIED"), "REVIEW_FAILED"


def finding(claim: str, severity: str = "high", id: str = "", file: str = ".marvin/design.md") -> dict[str, str]:
    """A finding as reviewers give it."""
    return {"id": id, "severity": severity, "file": file, "claim": claim, "evidence": claim}


def review(*findings: dict[str, str]) -> Answer:
    """A review that failed."""
    return text(f"```json\n{json.dumps({'findings': findings})}\n```\n{FAIL}")


def edit(old: str, new: str, path: str = ".marvin/design.md") -> list[Answer]:
    """What a fixer does that changes one place."""
    arguments = {"path": path, "old_str": old, "new_str": new}
    return [calls(("apply_patch", arguments)), text("done")]


class RoleModels(ModelServer):
    """Answers each role with the next answer of its script. A role whose script is over gets its last answer again."""

    def __init__(self) -> None:
        self.scripts: dict[str, deque[Answer]] = {}
        self.asked: list[tuple[str, str]] = []
        """Who began, and with which prompt."""
        self.together = 0
        """So many agents have to have begun before the first one gets an answer."""
        self.all_there = threading.Event()
        super().__init__(models=("qwen/qwen3-32b",))

    def play(self, **roles: Sequence[Answer]) -> None:
        """Say what the roles answer; `_` stands for a hyphen."""
        for role, steps in roles.items():
            self.scripts[role.replace("aux_", "aux-")] = deque(steps)

    def all_review(self, *rounds: Answer) -> None:
        """Have all reviewers of documents say the same, round by round."""
        for role in REVIEWERS:
            self.scripts[role] = deque(rounds)

    def prompts(self, role: str) -> list[str]:
        """The prompts that a role got, one for each agent."""
        return [prompt for one, prompt in self.asked if one == role]

    def answer_to(self, request: RecordedRequest) -> Answer:
        """The next answer for whoever asks."""
        if request.method != "POST":
            return super().answer_to(request)
        messages: list[dict[str, Any]] = request.body["messages"]
        prompt = _text(next(message for message in messages if message["role"] == "user"))
        role = next((name for mark, name in MARKS.items() if mark in prompt), "")
        with self._lock:
            if not any(message["role"] == "assistant" for message in messages):
                self.asked.append((role, prompt))
            if len(self.asked) >= self.together:
                self.all_there.set()
        self.hold(self.all_there)
        with self._lock:
            script = self.scripts.get(role)
            if not script:
                return answers.error(500, f"no answer is left for {role!r}: {prompt[:200]}")
            return script.popleft() if len(script) > 1 else script[0]


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
