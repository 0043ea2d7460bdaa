"""First steps: what is mistyped is refused and not sent, hints can be typed, and a chat says what it begins with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import Marvin


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["hlep"], "--help`"),
        (["docter"], "doctor`"),
        (["provider"], "providers`"),
        (["--non-interactive", "sesions"], "sessions`"),
        (["--plain", "tool"], "tools`"),
        (["pipline"], "pipeline`"),
        (["provider", "list"], "marvin providers list`"),
        (["sesions", "show", "x"], "marvin sessions show x`"),
    ],
)
def test_a_lone_word_close_to_a_sub_command(
    marvin: Marvin, marvin_model_server: ModelServer, argv: list[str], meant: str
) -> None:
    result = marvin.run(*argv, stdin=b"")
    assert (result.code, result.out) == (2, b"")
    assert meant in result.said
    assert "nothing was sent" in result.said
    assert marvin_model_server.requests == []
    assert marvin.session_files() == []


@pytest.mark.parametrize(
    "argv", [["hello"], ["--", "hlep"], ["--prompt", "hlep"], ["hlep me"], ["hlep", "me"], ["provider", "choice"]]
)
def test_what_is_a_prompt_is_sent(marvin: Marvin, marvin_model_server: ModelServer, argv: list[str]) -> None:
    marvin_model_server.script(text("Hi."))
    result = marvin.run("--non-interactive", *argv)
    assert (result.code, result.text) == (0, "Hi.\n")


@pytest.mark.parametrize(
    ("flag", "meant"),
    [("--modle", "--model"), ("--provder=x", "--provider"), ("--non-interactiv", "--non-interactive")],
)
def test_a_flag_that_there_is_not(marvin: Marvin, marvin_model_server: ModelServer, flag: str, meant: str) -> None:
    result = marvin.run(flag, "Do it.")
    assert result.code == 2
    assert f"Did you mean '{meant}'" in result.said
    assert marvin_model_server.requests == []


def test_help_as_a_word_is_the_help(unconfigured: Marvin) -> None:
    assert unconfigured.run("help").out == unconfigured.run("--help").out


# --- hints name list the commands and keys
# -----------------------------------------------------------------------------------

WRAPPER = Path(__file__).parents[2] / "marvin"


def started(marvin: Marvin, way: str) -> tuple[list[str], str, str]:
    """How Marvin is started, as what hints are to name it, and with which PATH."""
    bare = "/usr/local/bin:/usr/bin:/bin"
    script = str(Path(sys.executable).with_name("marvin"))
    (marvin.project / "marvin").symlink_to(WRAPPER)
    return {
        "script on PATH": (["marvin"], "marvin", f"{Path(script).parent}:{bare}"),
        "script": ([script], script, bare),
        "module": ([sys.executable, "-P", "-m", "marvin_core"], f"{sys.executable} -m marvin_core", bare),
        "wrapper": (["./marvin"], "./marvin", bare),
        "wrapper on PATH": (["marvin"], "marvin", f"{marvin.project}:{bare}"),
    }[way]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["script on PATH", "script", "module", "wrapper", "wrapper on PATH"])
def test_hints_name_the_command_as_it_can_be_typed(unconfigured: Marvin, way: str) -> None:
    program, name, path = started(unconfigured, way)
    run = ["sh", "-c", '"$0" "$@"', *program]
    env = {"PATH": path}
    assert f"Run `{name} --help`" in unconfigured.run("--nope", program=run, env=env).said
    assert f"`{name} doctor`" in unconfigured.run("docter", program=run, env=env).said
    shown = unconfigured.run("--help", program=run, env=env).text
    assert (f"is not on your PATH. Type this in its place:\n  {name}\n" in shown) == (name != "marvin")
    typed = unconfigured.run(
        "--plain", program=run, env=env, stdin=b"marvin providers\nhow do I add an API key?\n"
    ).text
    assert "!marvin providers runs it here" in typed
    assert f"For all options, type /model in a chat, or run `{name} providers`" in typed


# --- what goes along with the first request -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_chat_says_what_it_begins_with(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(text("Hello Ada."), text("Ada."), text("Who?"), text("Who?"))
    first = marvin.run("--plain", stdin=b"I am Ada\n")
    assert "earlier chats" not in first.text
    second = marvin.run("--plain", stdin=b"Who am I?\n")
    assert "2 messages of earlier chats in this folder will be sent with the first" in second.text
    assert len(marvin_model_server.requests[1].body["messages"]) == 4
    other = marvin.home / "other"
    other.mkdir()
    third = marvin.run("--plain", stdin=b"Who am I?\n", cwd=other)
    assert "earlier chats" not in third.text
    marvin.config("seed: off\n")
    fourth = marvin.run("--plain", stdin=b"Who am I?\n")
    assert "earlier chats" not in fourth.text
    for request in marvin_model_server.requests[2:]:
        assert len(request.body["messages"]) == 2, "the system prompt and what was typed"


@pytest.mark.parametrize("value", ["maybe", "[]", "1"])
def test_a_wrong_value_of_seed_is_named(unconfigured: Marvin, value: str) -> None:
    unconfigured.config(f"seed: {value}\n")
    result = unconfigured.run("tools", "list")
    assert result.code == 1
    assert "seed" in result.said


# --- lists that a first look asks for --------------------------------------------------------------------


@pytest.mark.slow
def test_agents_and_rules_are_listed(unconfigured: Marvin) -> None:
    (unconfigured.config_folder / "agents").mkdir()
    (unconfigured.config_folder / "agents" / "critic.md").write_text(
        "---\ndescription: Finds faults\n---\nFind faults.\n"
    )
    unconfigured.config("permissions: {deny: ['run_command(git push*)']}\n")
    agents = unconfigured.run("agents", "list")
    assert (agents.code, "critic" in agents.text) == (0, True), agents.said
    rules = unconfigured.run("permissions", "list")
    assert (rules.code, "run_command(git push*)" in rules.text) == (0, True), rules.said
