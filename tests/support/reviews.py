"""A repository with a mistake, and the agents that find and fix it in a review job."""

from __future__ import annotations

import json
import re
from pathlib import Path

from marvin_core.testing import answers
from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import Asked, PipelineModels, called, found, said, steps, writer

REVIEWER, FIXER, PERSON = "# Review this code base", "# Fix what a review of the code base found", "Review it."
CODE = "def mean(values):\n    return sum(values) / len(values)\n"
FIXED = "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n"
TESTS = "from means import mean\n\n\ndef test_mean():\n    assert mean([1, 3]) == 2\n"


def reviewer(asked: Asked) -> answers.Answer:
    """Finds that the mean of nothing is not thought of, until it is."""
    if "if values else" in json.dumps(asked.body["messages"]) or "This is round" in asked.prompt:
        return said('{"findings": []}\nCODE_VERIFIED')
    if asked.step == 0:
        return called(("read_file", {"path": "means.py"}))
    if any("if values else" in output for output in asked.outputs):
        return said('{"findings": []}\nCODE_VERIFIED')
    return said(f"```json\n{found('high', 'The mean of no values divides by zero.', 'means.py')}\n```\nREVIEW_FAILED")


def make_project(marvin: Marvin, models: PipelineModels) -> Path:
    """Make the repository, and have the agents play their parts."""
    folder = marvin.project
    marvin.make_repository()
    (folder / "means.py").write_text(CODE)
    (folder / "test_means.py").write_text(TESTS)
    marvin.git("add", "-A")
    marvin.git("commit", "--quiet", "-m", "Means")
    models.scripts |= {
        REVIEWER: reviewer,
        FIXER: writer({"means.py": FIXED}, "Think of no values", reads=("means.py",)),
        PERSON: steps(called(("review_codebase", {"working_dir": "."})), said("It runs.")),
    }
    return folder


def job_of(marvin: Marvin) -> str:
    """The id of the one job that there is."""
    (job,) = re.findall(r"^review-[\d-]+", marvin.run("pipeline", "review").text, re.MULTILINE)
    return str(job)


def state_of(marvin: Marvin) -> str:
    """Its state, as the command line lists it."""
    return marvin.run("pipeline", "review").text.split()[1]


def branch_of(marvin: Marvin) -> str:
    """The one branch of reviews that there is."""
    (branch,) = re.findall(r"review/[\d-]+", marvin.git("branch", "--list", "review/*"))
    return str(branch)
