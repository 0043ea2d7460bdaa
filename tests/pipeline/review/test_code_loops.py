"""Reviews of code with real agents: what they are told of the phase, and what counts as a change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from marvin_core.testing.answers import Answer
from tests.e2e.support_e2e import Marvin, Result
from tests.support.pipeline import Asked, PipelineModels, Script, called, found, said, steps, writer

pytestmark = pytest.mark.slow
DOCUMENT = "It says in all detail what there is to be said. " * 30
TESTS = {
    "tests/test_login.py": "from login import login\n\n\ndef test_login() -> None:\n    assert login('ada', 'x')\n"
}
WEAK = "assert login('ada', 'x')"
STRONG = "assert login('ada', 'x') is True"


def in_turn(*agents: Answer) -> Script:
    """What each agent of a role says, one agent after the other."""
    left = list(agents)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


def findings(*made: str) -> Answer:
    blocks = "\n\n".join(f"```json\n{one}\n```" for one in made)
    return said(f"{blocks}\nREVIEW_FAILED")


class Prompts(PipelineModels):
    """Keeps the prompts of agents."""

    def __init__(self, scripts: dict[str, Script]) -> None:
        self.prompts: list[tuple[str, str]] = []
        super().__init__({role: self._keeping(script) for role, script in scripts.items()})

    def _keeping(self, script: Script) -> Script:
        def kept(asked: Asked) -> Answer:
            if asked.step == 0:
                self.prompts.append((asked.role, asked.prompt))
            return script(asked)

        return kept

    def of(self, role: str) -> Sequence[str]:
        """The prompts that a role got, one for each agent."""
        return [prompt for one, prompt in self.prompts if one == role]


def reviewed(tmp_path: Path, warm_cache: Path, models: Prompts, phase: str, before: str) -> Result:
    """One phase of a project with a design."""
    marvin = Marvin(tmp_path, models, warm_cache)
    marvin.env |= {"OPENAI_COMPAT_API_KEY": "sk-0123456789", "MARVIN_SANDBOX": "off"}
    marvin.make_repository()
    (marvin.project / ".marvin").mkdir()
    for name in ("spec.md", "ux.md", "design.md"):
        (marvin.project / ".marvin" / name).write_text(DOCUMENT)
    (marvin.project / ".marvin" / "pipeline_state").write_text(before)
    (marvin.project / ".marvin" / "request.md").write_text("Build a login.\n")
    return marvin.run("--non-interactive", "--design-first", "--working-dir=.", f"--until={phase}")


def fixer(*calls_made: tuple[str, dict[str, str]]) -> Script:
    """A fixer of code: its ticket, which is refused at first, then its calls."""

    def ticket(asked: Asked) -> Answer:
        line = f"create 'Mend the tests' --parent {asked.ticket} -d 'What was found.' --acceptance 'It is settled.'"
        return called(("tk", {"args": line}))

    made: list[Answer | Callable[[Asked], Answer]] = [ticket, ticket, *(called(one) for one in calls_made)]
    return steps(*made, said("done"))


def test_tests_that_fail_since_nothing_is_there_are_no_finding(tmp_path: Path, warm_cache: Path) -> None:
    """The reviewer is told so; it is told which files are new; the mended ones are shown; it can pass at once."""
    mend = ("apply_patch", {"path": "tests/test_login.py", "old_str": WEAK, "new_str": STRONG})
    scripts = {
        "integration_tests": writer(TESTS, "Tests of the login"),
        "code_reviewer": in_turn(
            findings(found("high", "The test passes for every true value.", "tests/test_login.py")),
            said("CODE_VERIFIED"),
        ),
        "code_fixer": fixer(mend),
    }
    with Prompts(scripts) as models:
        result = reviewed(tmp_path, warm_cache, models, "2b", "2a")
    assert result.code == 0, result.said
    assert STRONG in (tmp_path / "project" / "tests" / "test_login.py").read_text()
    first, second = models.of("code_reviewer")
    assert "Missing implementations are expected" in " ".join(first.split())
    assert "- `tests/test_login.py`" in first
    assert ".tickets" not in first.partition("# How you work")[0]
    assert "CODE_VERIFIED" in first, "code may pass at once"
    assert f"+    {STRONG}" in second
    assert "Missing implementations are expected" in " ".join(models.of("code_fixer")[0].split())
    assert "2b: passed" in result.said


def test_a_fixer_that_only_writes_tickets_has_changed_nothing(tmp_path: Path, warm_cache: Path) -> None:
    scripts = {
        "implementation": writer({"login.py": "def login(name, password):\n    return 1\n"}, "The login"),
        "code_reviewer": in_turn(findings(found("critical", "Any password is right.", "login.py"))),
        "code_fixer": fixer(),
    }
    with Prompts(scripts) as models:
        result = reviewed(tmp_path, warm_cache, models, "3", "2b")
    assert result.code == 4
    assert "fix_without_effect" in result.said
    assert "Any password is right." in result.text + result.said
    assert models.asked.count("code_reviewer") == 1
    assert models.asked.count("code_fixer") == 2
    assert "Missing implementations" not in models.of("code_reviewer")[0]
