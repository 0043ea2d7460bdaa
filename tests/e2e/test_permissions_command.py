"""`marvin permissions`: the rules in force, and what they say of a call."""

from __future__ import annotations

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin

RULES = """\
permissions:
  allow: ["run_command(git *)"]
  ask: ["git_comit"]
  deny: ["run_command(touch *)"]
"""


@pytest.mark.slow
def test_a_command_is_explained_part_by_part_and_not_run(unconfigured: Marvin) -> None:
    unconfigured.config(RULES)
    result = unconfigured.run("permissions", "test", 'git status && rm -rf "$X"; echo ${x:-$(touch p)}', "--no-sandbox")
    assert (result.code, result.err) == (0, b"")
    assert "allowed  'git status'\n           allow: run_command(git *)" in result.text
    assert "asked    'rm -rf \"$X\"'" in result.text
    assert "denied   'touch p'\n           deny: run_command(touch *)" in result.text
    assert "Denied: the rule `deny: run_command(touch *)` in config.yaml forbids it." in result.text
    assert "The rule git_comit matches no installed tool. Did you mean 'git_commit'" in result.text


@pytest.mark.slow
def test_the_verdict_depends_on_sandbox_and_attendance(unconfigured: Marvin) -> None:
    command = ("permissions", "test", 'rm -rf "$X"')
    alone = (*command, "--unattended", "--no-sandbox")
    assert "Asked about: this command may be one that removes" in unconfigured.run(*command, "--no-sandbox").text
    assert "Denied: this command may be one that removes" in unconfigured.run(*alone).text
    assert "removes" not in unconfigured.run(*command, "--unattended", "--sandbox").text


@pytest.mark.slow
def test_the_sandbox_of_this_machine_counts_unless_another_one_is_named(unconfigured: Marvin) -> None:
    command = ("permissions", "test", 'rm -rf "$X"', "--unattended")
    doctor = unconfigured.run("doctor").text
    section = doctor[doctor.index("Sandbox for commands") : doctor.index("Installed")]
    lacking = [line for line in section.splitlines() if "not enforced:" in line and "network" not in line]
    holds = "bubblewrap works" in section and not lacking
    assert ("removes" not in unconfigured.run(*command).text) is holds
    unconfigured.config("sandbox: off\n")
    assert "Denied: this command may be one that removes" in unconfigured.run(*command).text


@pytest.mark.slow
def test_other_tools_and_what_cannot_be_tested(unconfigured: Marvin) -> None:
    assert (
        "Denied: .env is a file for keys" in unconfigured.run("permissions", "test", "--tool", "read_file", ".env").text
    )
    result = unconfigured.run("permissions", "test", "--tool", "read_fil", "x")
    assert result.code == 2
    assert b"read_file" in result.err


@pytest.mark.slow
def test_the_rules_are_listed(unconfigured: Marvin) -> None:
    assert "There are no rules" in unconfigured.run("permissions").text
    unconfigured.config(RULES)
    assert (
        "deny   run_command(touch *)\nask    git_comit\nallow  run_command(git *)"
        in unconfigured.run("permissions").text
    )
    assert "commands are parsed by" in unconfigured.run("doctor").text


def test_the_history_of_nobody_proposes_nothing_and_changes_nothing(unconfigured: Marvin) -> None:
    result = unconfigured.run("permissions", "history", "--add", "--no-sandbox")
    assert (result.code, result.err) == (0, b"")
    assert result.text.startswith("0 of 0 past calls would need your approval today, in the mode")


@pytest.mark.slow
def test_a_proposal_is_stored_with_a_yes_and_not_without(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin.make_repository()
    habits = [("run_command", {"command": f"git status {option}".strip()}) for option in ("", "-s", "--short")]
    marvin_model_server.script(calls(*habits), text("Done."))
    assert marvin.ask().code == 0
    command = ("permissions", "history", "--no-sandbox")
    plain = marvin.run(*command)
    assert "These rules would have asked 0 times instead of 3" in plain.text
    assert "Nothing was changed." in plain.text
    for answer in (b"n\n", b"\n", b""):
        marvin.run(*command, "--add", stdin=answer)
        assert "git status" not in marvin.run("permissions").text
    assert "Stored in" in marvin.run(*command, "--add", stdin=b"y\n").text
    assert "allow  run_command(git status *)" in marvin.run("permissions").text
    assert marvin.run(*command).text.startswith("0 of 3 past calls")
