"""The file of the tasks of a batch: all of it is understood before anything is begun."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import UsageError
from marvin_pipeline.batch.tasks import TAKEN, Task, read_tasks
from tests.support.examples import examples

TIERS = ("opus", "codex")


def tasks_of(folder: Path, *lines: Any) -> list[Task]:
    path = folder / "tasks.jsonl"
    written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    path.write_bytes(b"\n".join(written) + b"\n")
    return list(read_tasks(path, TIERS))


def test_a_line_is_a_task_with_its_options(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "wish.md").write_text("Build it.\n")
    full = {
        "id": "fix-1.2_b",
        "repository": "code",
        "prompt_file": "wish.md",
        "base": "release/1",
        "until": "2b",
        "max_cost": 2,
        "max_time": 60.5,
        "models": {"codex": "acme/model"},
    }
    plain = {"id": "b", "repository": "https://example.org/x.git", "prompt": " Mend it. "}
    first, second = tasks_of(tmp_path, full, b"", plain)
    assert first == Task(
        id="fix-1.2_b",
        repository=str((tmp_path / "code").resolve()),
        prompt="Build it.",
        base="release/1",
        until="2b",
        max_cost=2.0,
        max_time=60.5,
        models=(("codex", "acme/model"),),
    )
    assert second == Task(id="b", repository="https://example.org/x.git", prompt="Mend it.")


def test_the_file_of_the_page_is_taken(tmp_path: Path) -> None:
    """docs/how-to/run-many-tasks.md"""
    page = (Path(__file__).parents[2] / "docs/how-to/run-many-tasks.md").read_text()
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (tmp_path / "tasks").mkdir()
    (tmp_path / "adder").mkdir()
    (tmp_path / "tasks/docs-42.md").write_text("Describe it.")
    tasks = tasks_of(tmp_path / "tasks", *example.encode().splitlines())
    assert [task.id for task in tasks] == ["adder", "docs-42", "parser"]
    assert tasks[0].repository == str(tmp_path.resolve() / "adder")


def test_limits_may_change_and_the_work_may_not(tmp_path: Path) -> None:
    line = {"id": "a", "repository": ".", "prompt": "Build it."}
    (task,) = tasks_of(tmp_path, line)
    for same in ({"max_cost": 3}, {"until": "3"}, {"models": {"opus": "m"}}, {"max_time": 5}):
        assert tasks_of(tmp_path, {**line, **same})[0].digest == task.digest
    for other in ({"prompt": "Build that."}, {"base": "main"}, {"repository": "https://example.org/"}):
        assert tasks_of(tmp_path, {**line, **other})[0].digest != task.digest


GOOD = {"id": "a", "repository": ".", "prompt": "Build it."}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "it is not valid JSON"),
        (b"[" * 100_000, "it is not valid JSON"),
        (b"\xff\xfe", "it is not valid JSON"),
        (b"[1]", "it is not a JSON object"),
        (b'{"id": "a", "id": "b"}', "a key occurs twice"),
        ({"id": "a", "prompt": "Build it."}, "repository: Field required"),
        ({**GOOD, "prmpt": "x"}, "prmpt: Extra inputs are not permitted"),
        ({**GOOD, "id": 3}, "id: Input should be a valid string"),
        ({**GOOD, "id": "../a"}, "cannot be used as the name of a branch and a folder: use letters, digits, -, _ and"),
        ({**GOOD, "id": "-a"}, "cannot be used as the name"),
        ({**GOOD, "id": "a..b"}, "cannot be used as the name"),
        ({**GOOD, "id": "a.lock"}, "cannot be used as the name"),
        ({**GOOD, "id": "a."}, "cannot be used as the name"),
        ({**GOOD, "id": "a\n"}, "cannot be used as the name"),
        ({**GOOD, "id": ""}, "cannot be used as the name"),
        ({**GOOD, "id": "Index.json"}, "cannot be used as the name"),
        ({**GOOD, "repository": "nowhere"}, "repository 'nowhere' is not a folder"),
        ({**GOOD, "repository": "ext::sh -c date"}, "neither a path nor a URL"),
        ({**GOOD, "repository": "--upload-pack=date"}, "neither a path nor a URL"),
        ({**GOOD, "repository": "ftp://example.org/a"}, "neither a path nor a URL"),
        (
            {**GOOD, "repository": "https://me:word@example.org/a"},
            "the URL of the repository contains a password: remove it, and use a git credential helper",
        ),
        ({**GOOD, "prompt": "  "}, "it needs either a prompt or a prompt_file"),
        ({**GOOD, "prompt_file": "tasks.jsonl"}, "it needs either a prompt or a prompt_file"),
        ({"id": "a", "repository": ".", "prompt_file": "no.md"}, "prompt_file 'no.md' cannot be read"),
        (b'{"id": "a", "repository": ".", "prompt": "\\ud800"}', "prompt: Input should be a valid string"),
        ({**GOOD, "prompt": "a\0b"}, "its prompt contains a NUL character, or more than"),
        ({**GOOD, "base": "--detach"}, "is not a branch, tag or commit"),
        ({**GOOD, "base": "a b"}, "is not a branch, tag or commit"),
        ({**GOOD, "until": "9"}, "until '9' is not a phase"),
        ({**GOOD, "max_cost": 0}, "max_cost: Input should be greater than 0"),
        (b'{"id": "a", "repository": ".", "prompt": "x", "max_cost": NaN}', "max_cost: Input should be"),
        ({**GOOD, "max_cost": "1"}, "max_cost: Input should be a valid number"),
        ({**GOOD, "models": {"best": "x"}}, "models: unknown tier 'best'"),
        ({**GOOD, "models": {"opus": ""}}, "opus needs the name of a model"),
    ],
)
def test_a_line_that_is_no_task_is_named_with_its_number(tmp_path: Path, line: Any, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        tasks_of(tmp_path, {**GOOD, "id": "good"}, b"", line)
    assert "no task was started" in str(refused.value)
    assert "- line 3: " in str(refused.value)
    assert why in str(refused.value)


def test_all_bad_lines_are_named_and_a_long_list_is_cut(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        tasks_of(tmp_path, GOOD, {**GOOD, "id": "A"}, *([b"no"] * 30))
    told = str(refused.value).splitlines()
    assert told[1] == "- line 2: the id 'A' is already used in line 1"
    assert told[-1] == "- and 11 more"
    assert len(told) == 22


def test_a_file_that_is_missing_or_empty_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_tasks(tmp_path / "none", TIERS)
    with pytest.raises(UsageError, match="it contains no task"):
        tasks_of(tmp_path)


@examples(50)
@given(name=st.text(max_size=70))
def test_whatever_is_taken_as_an_id_names_one_folder_and_one_branch(name: str) -> None:
    """I4"""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        try:
            (task,) = tasks_of(Path(folder), {**GOOD, "id": name})
        except UsageError:
            return
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", task.id)
    assert ".." not in task.id
    assert not task.id.endswith((".", ".lock"))
    assert task.id.casefold() not in TAKEN
