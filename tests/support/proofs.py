"""Projects whose phases before the tests are finished, and what is recorded of the gates of runs in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marvin_core.testing.answers import Answer
from tests.e2e.support_e2e import Marvin, Result
from tests.support.pipeline import Asked, PipelineModels, Script, writer

DESIGN = "# The design of adder\n\nThe program is `adder.py`, its tests are in `tests/`.\n\n" + "It says it all. " * 90
GOOD = "from adder import add\n\n\ndef test_adds():\n    assert add(2, 3) == 5\n"
ADDER = "def add(a, b):\n    return a + b\n"


def lay(marvin: Marvin, finished: str, files: Mapping[str, str]) -> None:
    """A project with a design, whose phases up to one are finished."""
    marvin.make_repository()
    marvin.git("rm", "-q", "total.py")
    documents = {f".marvin/{name}.md": DESIGN for name in ("spec", "ux", "design")}
    state = {".marvin/pipeline_state": finished, ".marvin/request.md": "Build adder.\n"}
    project = {"pyproject.toml": '[project]\nname = "adder"\nversion = "1.0"\n[tool.pytest.ini_options]\n'}
    for name, text in {**project, **documents, **state, **files}.items():
        path = marvin.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    marvin.git("add", "-A")
    marvin.git("commit", "-q", "-m", "The project")


def until(marvin: Marvin, phase: str, *flags: str, **env: str) -> Result:
    own = ("--non-interactive", "--design-first", "--working-dir=.", f"--until={phase}")
    return marvin.run(*own, *flags, limit=600, env=env or None)


def gates(marvin: Marvin, name: str = "") -> list[dict[str, Any]]:
    """The gates that are recorded."""
    lines = (marvin.project / ".marvin/logs/evidence.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines if line]
    return [gate for gate in found if name in ("", gate["name"])]


def patch(path: str, content: str, message: str = "Mend the tests") -> Script:
    """An agent that rewrites a file."""
    return writer({path: content}, message, reads=(path,))


def prompts_of(models: PipelineModels, role: str, script: Script) -> list[str]:
    """Have an agent play a script, and keep the prompts that it gets."""
    found: list[str] = []

    def kept(asked: Asked) -> Answer:
        if asked.step == 0:
            found.append(asked.prompt)
        return script(asked)

    models.scripts[role] = kept
    return found
