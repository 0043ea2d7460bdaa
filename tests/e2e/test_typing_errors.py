"""What is mistyped on the command line is refused with what may be meant, and nothing is sent to a model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from marvin_core.testing import ModelServer, text
from tests.e2e.support_e2e import Marvin


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["hlep"], "--help`"),
        (["docter"], "doctor`"),
        (["provider"], "providers`"),
        (["--non-interactive", "sesions"], "sessions`"),
        (["--plain", "tool"], "tools`"),
        (["pipline"], "pipeline`"),
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


@pytest.mark.parametrize("argv", [["hello"], ["--", "hlep"], ["--prompt", "hlep"], ["hlep me"], ["hlep", "me"]])
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


# --- hints name what can be typed -----------------------------------------------------------------------------------

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
    assert "!marvin providers runs it from here" in typed
    assert f"in a shell `{name} providers`" in typed
