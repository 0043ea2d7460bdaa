"""The system prompt: what stays the same first, what changes last, and never a secret."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Hook, HookContext
from marvin_core.prompt import CODING, DOCUMENT_LIMIT, PERSONALITY, stable_parts, volatile_part

from .support_engine import Made, make, run, says

NOON = 1_700_000_000.0


def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    return root


def sent(made: Made) -> str:
    async def go() -> None:
        await made.session.submit("go")
        await made.session.close()

    run(go())
    assert made.provider is not None
    return made.provider.requests[-1].system


def in_order(text: str, *parts: str) -> None:
    places = [text.index(part) for part in parts]
    assert places == sorted(places), parts


def test_the_parts_stand_in_their_order_and_what_changes_is_last(tmp_path: Path) -> None:
    root = project(tmp_path)
    for name, text in {
        "AGENTS.md": "Use tabs.",
        ".marvin-instructions": "Be kind.",
        ".marvin/instructions.md": "Test first.",
        ".marvin/spec.md": "The spec.",
        ".marvin/ux.md": "The looks.",
        ".marvin/design.md": "The plan.",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)

    class Adds(Hook):
        async def system_prompt(self, context: HookContext) -> str | None:
            return "From a pack."

    made = make(tmp_path, says("Fine."), hooks=[Adds()], yaml="instructions: Call me Ada.\n")
    text = sent(made)
    in_order(
        text,
        PERSONALITY,
        "Call me Ada.",
        CODING,
        f"The working directory is {root}.",
        "Use tabs.",
        "Be kind.",
        "Test first.",
        "The spec.",
        "The looks.",
        "The plan.",
        "From a pack.",
        "Today is ",
    )
    assert text.splitlines()[-1].startswith("Today is ")


def test_in_a_chat_there_is_nothing_about_code_and_no_document(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "AGENTS.md").write_text("Use tabs.")
    (root / ".marvin").mkdir()
    (root / ".marvin" / "spec.md").write_text("The spec.")
    text = sent(make(tmp_path, says("Fine."), argv=()))
    assert "Use tabs." in text
    assert CODING not in text
    assert "The spec." not in text


def test_project_instructions_are_named_with_their_file(tmp_path: Path) -> None:
    (project(tmp_path) / "AGENTS.md").write_text("Use tabs.")
    assert "(AGENTS.md)\nUse tabs." in sent(make(tmp_path, says("Fine.")))


@pytest.mark.parametrize("size", [DOCUMENT_LIMIT - 1, DOCUMENT_LIMIT, DOCUMENT_LIMIT + 1_234])
def test_a_long_document_is_cut_with_its_path_and_how_much_is_missing(tmp_path: Path, size: int) -> None:
    (project(tmp_path) / "AGENTS.md").write_text("x" * size)
    text = sent(make(tmp_path, says("Fine.")))
    assert text.count("x" * DOCUMENT_LIMIT) == (size >= DOCUMENT_LIMIT)
    assert ("[... 1,234 more characters in AGENTS.md; read_file shows them]" in text) == (size > DOCUMENT_LIMIT)


@pytest.mark.parametrize("kind", ["folder", "empty", "outside", "binary"])
def test_a_document_that_cannot_be_read_is_left_out(tmp_path: Path, kind: str) -> None:
    """I4: not even a link in the project leads the prompt out of it."""
    path = project(tmp_path) / "AGENTS.md"
    if kind == "folder":
        path.mkdir()
    elif kind == "empty":
        path.write_text(" \n")
    elif kind == "outside":
        (tmp_path / "private").write_text("PRIVATE")
        path.symlink_to(tmp_path / "private")
    else:
        path.write_bytes(b"\xff\xfetext")
    text = sent(make(tmp_path, says("Fine.")))
    assert "PRIVATE" not in text
    assert ("(AGENTS.md)" in text) == (kind == "binary")


def test_the_prompt_stays_the_same_while_nothing_changes(tmp_path: Path) -> None:
    """Caches of the services hold: even when the files change, the beginning does not."""
    made = make(tmp_path, says("One."), says("Two."))

    async def go() -> None:
        await made.session.submit("a")
        (tmp_path / "project" / "AGENTS.md").write_text("New rules.")
        await made.session.submit("b")
        await made.session.close()

    run(go())
    assert made.provider is not None
    assert made.provider.requests[0].system == made.provider.requests[1].system


def test_another_working_directory_brings_its_own_instructions(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("Other rules.")
    made = make(tmp_path, says("One."), says("Two."))

    async def go() -> None:
        await made.session.submit("a")
        made.engine.workspace.move(other)
        await made.session.submit("b")
        await made.session.close()

    run(go())
    assert made.provider is not None
    assert "Other rules." not in made.provider.requests[0].system
    assert "Other rules." in made.provider.requests[1].system
    assert str(other) in made.provider.requests[1].system


def test_the_volatile_part_holds_the_date_and_the_jobs() -> None:
    lines = volatile_part(NOON, ["1 (npm start)", "2 (make watch)"]).splitlines()
    assert lines[0].startswith("Today is ")
    assert "2023-11-1" in lines[0]
    assert lines[1:] == ["Background jobs: 1 (npm start), 2 (make watch)."]
    assert len(volatile_part(NOON, []).splitlines()) == 1


def test_a_running_job_is_named_in_the_next_request(tmp_path: Path) -> None:
    made = make(tmp_path, says("Fine."))

    async def go() -> None:
        await made.engine.processes.run(["sh", "-c", "sleep 60 & exit 0"], leave_jobs=True)
        await made.session.submit("go")
        await made.session.close()

    run(go())
    assert made.provider is not None
    assert "Background jobs: 1 (sleep 60 & exit 0)." in made.provider.requests[0].system


def test_nothing_of_the_environment_is_in_the_prompt(tmp_path: Path) -> None:
    """I24: neither keys nor anything else that only the environment holds."""
    env: dict[str, Any] = {
        "OPENAI_API_KEY": "sk-very-secret-12345",
        "GH_TOKEN": "gh-secret-12345",
        "STREET": "Elm St 5",
    }
    text = sent(make(tmp_path, says("Fine."), env=env))
    for value in env.values():
        assert value not in text


def test_each_part_says_where_it_comes_from() -> None:
    documents = {"AGENTS.md": "a", ".marvin/spec.md": "b"}
    parts = stable_parts("coding", Path(os.sep), documents.get, "c")
    assert [part.origin for part in parts] == ["built in", "config.yaml", "built in", "AGENTS.md", ".marvin/spec.md"]
