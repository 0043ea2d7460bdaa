"""`marvin tools` and `marvin packs`: what there is, and calling it without a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.support_e2e import Marvin

pytestmark = pytest.mark.slow

CODING = {"read_file", "create_file", "apply_patch", "glob", "code_grep", "tree", "run_command", "git_commit"}


def test_list_names_every_tool_with_its_summary(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "list")
    assert (result.code, result.err) == (0, b"")
    lines = {words[0]: " ".join(words[1:]) for line in result.text.splitlines() if (words := line.split())}
    assert lines.keys() >= CODING
    assert "summary" not in lines
    assert all(lines[name] for name in CODING)
    assert unconfigured.run("tools", "list").out == result.out


@pytest.mark.parametrize(("group", "does"), [("tools", "list"), ("packs", "list"), ("config", "show")])
def test_a_group_alone_shows_what_there_is(unconfigured: Marvin, group: str, does: str) -> None:
    alone = unconfigured.run(group)
    assert alone.code == 0
    assert alone.out == unconfigured.run(group, does).out != b""


def test_list_says_why_a_tool_is_not_available(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "list", env={"MARVIN_READONLY": "1"})
    (line,) = [line for line in result.text.splitlines() if line.split()[:1] == ["run_command"]]
    assert "not available: " in line
    assert "MARVIN_READONLY" in line


def test_list_as_json(unconfigured: Marvin) -> None:
    entries = json.loads(unconfigured.run("tools", "list", "--json", env={"MARVIN_READONLY": "1"}).out)
    by_name: dict[str, dict[str, Any]] = {entry["name"]: entry for entry in entries}
    assert by_name.keys() >= CODING
    assert by_name["read_file"]["offered"] is True
    assert by_name["read_file"]["parameters"]["properties"]["path"]["type"] == "string"
    assert by_name["run_command"]["offered"] is False
    assert by_name["run_command"]["reason"]
    assert by_name["run_command"]["access"] == ["exec", "net", "write"]


def test_show_explains_a_tool(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "show", "apply_patch")
    assert result.code == 0
    for expected in ("apply_patch", "old_str", "new_str", "exactly once", "write", "marvin-tools-coding"):
        assert expected in result.text


@pytest.mark.parametrize("command", ["show", "call"])
def test_an_unknown_tool_names_the_nearest(unconfigured: Marvin, command: str) -> None:
    result = unconfigured.run("tools", command, "read_fiel")
    assert result.code != 0
    assert result.out == b""
    assert "read_file" in result.said
    assert "Traceback" not in result.said


def test_an_unknown_sub_command_names_the_nearest(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "lst")
    assert result.code == 2
    assert "Unknown sub-command 'lst'. Did you mean 'list'?" in result.said
    assert "No such option: --lst" in unconfigured.run("tools", "--lst").said


def test_a_person_replaces_a_file_by_hand(unconfigured: Marvin) -> None:
    """Each such call is a session of its own, in which nothing was read."""
    (unconfigured.project / "a.txt").write_text("old")
    result = unconfigured.run("tools", "call", "write_file", "path=a.txt", "content=new")
    assert (result.code, (unconfigured.project / "a.txt").read_text()) == (0, "new")


def test_call_needs_no_model_and_parses_values_by_the_schema(unconfigured: Marvin) -> None:
    (unconfigured.project / "a.txt").write_text("one\ntwo\nthree\n")
    result = unconfigured.run("tools", "call", "read_file", "path=a.txt", "start_line=2", "end_line=2")
    assert (result.code, result.err) == (0, b"")
    assert "two" in result.text
    assert "one" not in result.text
    made = unconfigured.run("tools", "call", "create_file", "path=k=v.txt", "content=a=b c\n")
    assert made.code == 0
    assert (unconfigured.project / "k=v.txt").read_text() == "a=b c\n"
    assert unconfigured.session_files() == []


def test_call_with_json(unconfigured: Marvin) -> None:
    arguments = json.dumps({"path": "ä.txt", "content": "漢字\n"})
    result = unconfigured.run("tools", "call", "create_file", "--json", arguments)
    assert result.code == 0
    assert (unconfigured.project / "ä.txt").read_text("utf-8") == "漢字\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["path=a.txt"], ["content"]),
        (["path=a.txt", "contents=x"], ["contents", "content"]),
        (["path=a.txt", "content"], ["key=value"]),
        (["--json", "{not json"], ["JSON"]),
        (["--json", "[1]"], ["JSON object"]),
        (["path=a.txt", "--json", "{}"], ["--json"]),
        (["path=../a.txt", "content=x"], ["outside", ".."]),
    ],
)
def test_mistakes_exit_with_an_error_and_say_what_is_wrong(
    unconfigured: Marvin, arguments: list[str], words: list[str]
) -> None:
    result = unconfigured.run("tools", "call", "create_file", *arguments)
    assert result.code in (1, 2)
    shown = result.text + result.said
    assert "Traceback" not in shown
    assert any(word in shown for word in words), shown
    assert list(unconfigured.project.iterdir()) == []


def test_a_value_of_the_wrong_type(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "call", "run_command", "command=true", "timeout=soon")
    assert result.code in (1, 2)
    assert "timeout" in result.text + result.said


def test_a_correct_call_is_shown_as_the_shell_takes_it(unconfigured: Marvin) -> None:
    for words in ((), ("val=5",)):
        result = unconfigured.run("tools", "call", "convert_units", *words)
        assert result.code == 1
        assert "For example: marvin tools call convert_units value=" in result.text + result.said


def test_a_tool_error_is_the_exit_code(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "call", "read_file", "path=missing.txt")
    assert result.code == 1
    assert "missing.txt" in result.text
    assert unconfigured.run("tools", "call", "run_command", "command=true").code == 0


def test_a_command_by_hand_leaves_nothing_behind(unconfigured: Marvin) -> None:
    """I25: a job ends with the call, since nobody could look after it."""

    result = unconfigured.run("tools", "call", "run_command", "command=sleep 60 & echo $! >> pids")
    assert result.code == 0
    unconfigured.assert_nothing_left()


def test_flags_before_the_sub_command(unconfigured: Marvin) -> None:
    """The sandbox can be set for a call by hand, too."""
    folder = unconfigured.home / "elsewhere"
    folder.mkdir()
    result = unconfigured.run("--working-dir", str(folder), "tools", "call", "get_working_dir")
    assert result.code == 0
    assert str(folder.resolve()) in result.text


def test_packs_list(unconfigured: Marvin) -> None:
    result = unconfigured.run("packs", "list")
    assert (result.code, result.err) == (0, b"")
    for name in ("marvin-core", "marvin-tools-coding"):
        assert name in result.text


def test_help_of_sub_commands(unconfigured: Marvin) -> None:
    for words in (["tools", "--help"], ["tools", "call", "--help"], ["packs", "--help"]):
        result = unconfigured.run(*words)
        assert result.code == 0
        assert "Usage" in result.text


def test_a_wrong_sub_command_is_a_usage_error(unconfigured: Marvin) -> None:
    result = unconfigured.run("tools", "lits")
    assert result.code == 2
    assert "lits" in result.said
    assert "Traceback" not in result.said


def test_a_pipe_that_is_closed_early(unconfigured: Marvin) -> None:
    from tests.e2e.support_e2e import PROGRAM

    result = unconfigured.run("-c", '"$@" | head -c1 >/dev/null', "sh", *PROGRAM, "tools", "list", program=["sh"])
    assert result.said == ""
