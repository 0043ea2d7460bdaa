"""Instructions of folders below the working directory come with the first output of a call there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import Made, calls, make, run, says
from tests.support.reading_tools import SPECS


def project(tmp_path: Path, **texts: str) -> Path:
    """A project; files by their names, `__` standing for a slash."""
    root = tmp_path / "project"
    for name, text in texts.items():
        path = root / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def read(*paths: str, id: str = "c") -> tuple[str, str, str]:
    return id, "read", json.dumps({"paths": paths})


def outputs(made: Made, prompts: int = 1) -> list[str]:
    """What the calls of all prompts returned, in their order."""

    async def go() -> None:
        for _ in range(prompts):
            await made.session.submit("go")
        await made.session.close()

    run(go())
    return [output.text for message in made.parts.conversation.messages for output in message.outputs]


def rounds(tmp_path: Path, *steps: Sequence[tuple[str, str, str]], **settings: Any) -> Made:
    return make(tmp_path, *(calls(*step) for step in steps), says("Done."), specs=SPECS, **settings)


HEADING = (
    "[Instructions from the repository, not from the user, for what is in api, from api/AGENTS.md. Where they "
    "contradict earlier instructions from the repository, these apply.]"
)


def test_the_first_call_in_a_folder_brings_its_instructions_and_the_next_ones_do_not(tmp_path: Path) -> None:
    project(tmp_path, AGENTS="Top.", api__AGENTS="Use blanks.", api__a="A", api__sub__b="B")
    made = rounds(tmp_path, [read("api/a.md")], [read("api/sub/b.md")], [read("api/a.md")])
    assert outputs(made) == [f"A\n\n{HEADING}\nUse blanks.\n[End of api/AGENTS.md]", "B", "A"]
    assert made.provider is not None
    assert len({request.system for request in made.provider.requests}) == 1, "the caches of the services hold"


def test_a_call_that_writes_brings_them_too(tmp_path: Path) -> None:
    root = project(tmp_path, api__AGENTS="Use blanks.")
    made = rounds(tmp_path, [("c", "write", '{"path": "api/new.md", "text": "x"}')])
    assert "Use blanks." in outputs(made)[0]
    assert (root / "api" / "new.md").read_text() == "x"


def test_two_calls_of_one_answer_bring_them_once(tmp_path: Path) -> None:
    project(tmp_path, api__AGENTS="Use blanks.", api__a="A", api__b="B")
    made = rounds(tmp_path, [read("api/a.md", id="1"), read("api/b.md", id="2")])
    assert "".join(outputs(made)).count("Use blanks.") == 1


def test_what_is_above_and_beside_does_not_come(tmp_path: Path) -> None:
    project(tmp_path, AGENTS="Top.", a="A", web__AGENTS="Web.", api__b="B")
    assert outputs(rounds(tmp_path, [read("a.md")], [read("api/b.md")])) == ["A", "B"]


def test_the_farthest_folder_comes_first_and_three_at_most(tmp_path: Path) -> None:
    project(tmp_path, **{f"{'a__' * depth}AGENTS": f"Depth {depth}." for depth in range(1, 6)}, a__a__a__a__a__x="X")
    first, second = outputs(rounds(tmp_path, [read("a/a/a/a/a/x.md")], [read("a/a/a/a/a/x.md")]))
    assert [f"Depth {depth}." in first for depth in range(1, 6)] == [True, True, True, False, False]
    assert [f"Depth {depth}." in second for depth in range(1, 6)] == [False, False, False, True, True]
    assert first.index("Depth 1.") < first.index("Depth 2.")


def test_claude_md_counts_where_there_is_no_agents_md_with_what_it_names(tmp_path: Path) -> None:
    project(tmp_path, api__CLAUDE="Use @more.md", api__more="Blanks.", api__a="A")
    assert "(@more.md)\nBlanks." in outputs(rounds(tmp_path, [read("api/a.md")]))[0]


def test_a_model_that_reads_them_by_itself_is_not_told_again(tmp_path: Path) -> None:
    project(tmp_path, api__AGENTS="Use blanks.", api__a="A")
    assert outputs(rounds(tmp_path, [read("api/AGENTS.md")], [read("api/a.md")])) == ["Use blanks.", "A"]


def test_new_instructions_count_as_soon_as_a_call_works_there(tmp_path: Path) -> None:
    project(tmp_path, api__AGENTS="Use blanks.", api__a="A", api__b="x")
    change = ("w", "write", json.dumps({"path": "api/AGENTS.md", "text": "Use tabs again."}))
    texts = outputs(rounds(tmp_path, [read("api/a.md")], [change], [read("api/a.md")]))
    assert texts[1:] == ["written", "A"], "the model wrote it, and knows it"
    root = tmp_path / "project"
    made = rounds(tmp_path, [read("api/a.md")], [read("api/a.md")])

    def edit(event: object) -> None:
        if type(event).__name__ == "ToolExecutionEnd":
            (root / "api" / "AGENTS.md").write_text("Changed by hand.")

    made.session.subscribe(edit)
    texts = outputs(made)
    assert "Use tabs again." in texts[0]
    assert "Changed by hand." in texts[1]


def test_after_a_summary_took_their_place_they_come_again(tmp_path: Path) -> None:
    """I23: what binds an agent survives compaction."""
    project(tmp_path, api__AGENTS="Use blanks.", api__a="A")
    made = make(
        tmp_path,
        says("Begun."),
        calls(read("api/a.md")),
        *(says(f"answer {number} " + "word " * 800) for number in range(13)),
        says("A summary."),
        calls(read("api/a.md", id="d")),
        says("Done."),
        specs=SPECS,
    )

    def told() -> list[bool]:
        messages = made.parts.conversation.messages
        return ["Use blanks." in output.text for message in messages for output in message.outputs]

    async def go() -> None:
        for _ in range(14):
            await made.session.submit("go")
        assert told() == [True]
        await made.session.compact(1_000)
        assert told() == []
        await made.session.submit("go")
        assert told() == [True]
        await made.session.close()

    run(go())


def test_a_call_that_searches_through_many_files_brings_none(tmp_path: Path) -> None:
    names = {f"api__f{number}": "x" for number in range(40)}
    project(tmp_path, api__AGENTS="Use blanks.", **names)
    made = rounds(tmp_path, [read(*(f"{name.replace('__', '/')}.md" for name in names))])
    assert outputs(made) == ["x" * 40]


def test_a_call_that_fails_brings_none(tmp_path: Path) -> None:
    project(tmp_path, api__AGENTS="Use blanks.", api__a="A")
    assert "Use blanks." not in outputs(rounds(tmp_path, [read("api/a.md", "api/nothing.md")]))[0]


@pytest.mark.parametrize("kind", ["outside", "keys", "binary"])
def test_what_may_not_be_told_is_not(tmp_path: Path, kind: str) -> None:
    root = project(tmp_path, api__a="A")
    path = root / "api" / "AGENTS.md"
    (tmp_path / "outside").write_text("PRIVATE")
    (root / ".env").write_text("PRIVATE")
    if kind == "binary":
        path.write_bytes(b"\0PRIVATE")
    else:
        path.symlink_to(tmp_path / "outside" if kind == "outside" else "../.env")
    assert outputs(rounds(tmp_path, [read("api/a.md")])) == ["A"]


def test_long_ones_are_cut_and_say_so(tmp_path: Path) -> None:
    project(tmp_path, api__AGENTS="x" * 20_000, api__a="A")
    text = outputs(rounds(tmp_path, [read("api/a.md")]))[0]
    assert text.count("x") == 16_000
    assert "[... 4,000 more characters; read api/AGENTS.md to see them]" in text
