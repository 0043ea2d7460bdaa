"""Rules with examples: they are checked when config.yaml is read, and a wrong one refuses the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.api.errors import ConfigError
from marvin_core.config.settings import parse_settings

PATH = Path("/home/me/config.yaml")


def rules(text: str) -> object:
    return parse_settings(text.encode(), PATH)["permissions"]


def test_examples_that_hold_leave_the_rule() -> None:
    text = """\
permissions:
  deny:
    - read_file(a)
    - rule: run_command(git push *)
      match: [git push, git push --tags]
      not_match: [git pull]
"""
    assert rules(text) == {"deny": ["read_file(a)", "run_command(git push *)"]}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            "{rule: 'x(git push*)', match: [git pull]}",
            "x(git push*) does not match 'git pull', which is listed in its `match`. Correct one of the two",
        ),
        (
            "{rule: 'x(git *)', not_match: [git pull]}",
            "x(git *) matches 'git pull', which is listed in its `not_match`. Correct one of the two",
        ),
        ("{rule: 'x(a)', matches: [a]}", "unknown key 'matches' of a rule. Did you mean 'match'"),
        ("{match: [a]}", "A rule is TOOL or TOOL(PATTERN)"),
        ("{rule: 'x(a)', match: a}", 'must be lists of text; found "a"'),
        ("'x(git'", "A rule is TOOL or TOOL(PATTERN)"),
        ("'(git)'", "A rule is TOOL or TOOL(PATTERN)"),
        ("5", "5 is not a rule. A rule is TOOL or TOOL(PATTERN)"),
    ],
)
def test_a_wrong_rule_refuses_the_file_with_its_line(entry: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rules(f"permissions:\n  ask: []\n  deny:\n    - b\n    - {entry}\n")
    assert why in str(caught.value)
    assert f"{PATH}, line 5: permissions.deny" in str(caught.value)


def test_what_is_no_list_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"permissions\.deny: must be a list"):
        rules("permissions:\n  deny: x\n")
