"""What the model is told of what the sandbox held back: the place that is meant, and how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.escapes import prepare
from tests.support.sandboxes import Place, in_sandbox


@pytest.mark.parametrize(
    ("script", "place", "advice"),
    [
        ("echo x > .git/info/attributes", ".git/info/attributes", "to .gitattributes"),
        (
            "echo x > .git/hooks/pre-commit",
            ".git/hooks/pre-commit",
            "only the user can change hooks: describe the change to them",
        ),
        (
            "git config user.name x",
            ".git/config",
            "only the user can change git settings: give them the command to run, such as git remote add or git config",
        ),
        (
            "cat .tickets/one.md",
            ".tickets/one.md",
            "use the ticket tools for tickets.",
        ),
        ("echo x > .marvin/pipeline_state", ".marvin/pipeline_state", "change: it belongs to Marvin"),
        ("echo x > ../outside", "../outside", "the working directory"),
        ("cat ~/.ssh/id", "../.ssh/id", "keys, browser profiles"),
    ],
)
def test_the_place_is_named_with_what_to_do(tmp_path: Path, script: str, place: str, advice: str) -> None:
    async def use(found: Place) -> None:
        result = await found.sh(script)
        assert result.exit_code != 0
        meant = (found.root / place).resolve()
        assert str(meant) in result.held_back, result
        assert advice in result.held_back

    prepare(tmp_path / "home")
    project = tmp_path / "home" / "project"
    for name in (".marvin/pipeline_state", ".tickets/one.md"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("1a", encoding="utf-8")
    in_sandbox(tmp_path, use)
