"""What packs of third parties can do: tools, hooks, providers, commands, sub-commands. Each in a real run."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pexpect
import pytest

from marvin_core.builtin import marvin_register_tools
from marvin_core.testing import ModelServer, calls, text
from tests.support.installing import MARVIN, Ended, Place, tool_pack

pytestmark = pytest.mark.slow

WATCHMAN = """
import sys

from marvin_core import Deny, Hook, hookimpl

class Watchman(Hook):
    async def before_tool(self, context, spec, arguments):
        return Deny(reason=f"the watchman says no to {spec.name}") if spec.name == "wave" else None

    async def system_prompt(self, context):
        return "A watchman is on duty."

    async def on_prompt(self, context, text):
        return text + " (seen by the watchman)"

@hookimpl
def marvin_register_hooks():
    return [Watchman()]
"""
ECHO_PROVIDER = """
from marvin_core import ProviderSpec, Stop, TextDelta, hookimpl

@hookimpl
def marvin_register_providers():
    return [ProviderSpec(name="echo", factory="acme_echo:create", base_url="http://localhost/", default_model="e1")]

class Echo:
    name = "echo"
    context_window = None
    max_tools = None

    def __init__(self, model):
        self.model = model

    async def stream(self, request):
        yield TextDelta(text=f"{self.model} heard: {request.messages[-1].text}")
        yield Stop(reason="end")

    async def aclose(self):
        pass

def create(endpoint, client):
    return Echo(endpoint.model)
"""
SUB_COMMANDS = """
from marvin_core import hookimpl

@hookimpl
def marvin_extend_cli(app):
    import typer

    @app.command()
    def say_hello(name: str, loud: bool = False):
        typer.echo(f"HELLO {name.upper()}" if loud else f"hello {name}")

    garden = typer.Typer()

    @garden.command()
    def water():
        typer.echo("watered")

    app.add_typer(garden, name="garden")
"""
COMMANDS = """
from marvin_core import Command, hookimpl

async def moon(session, rest):
    return f"the moon is {rest or 'full'} over {session.working_dir.name}"

@hookimpl
def marvin_register_commands():
    return [Command(name="moon", help="Say how the moon is.", run=moon)]
"""


def ask(place: Place, server: ModelServer, prompt: str = "hello", **env: str) -> Ended:
    """A non-interactive run against the server, its tools narrowed to none of the coding pack's."""
    return place.marvin(
        "--non-interactive", "--prompt", prompt, OPENAI_COMPAT_URL=server.url, OPENAI_COMPAT_MODEL="scripted", **env
    )


def test_a_hook_denies_and_its_reason_reaches_the_model(tmp_path: Path) -> None:
    """marvin_register_hooks: a `before_tool` that denies, `system_prompt`, and `on_prompt`."""
    place = Place(tmp_path)
    place.install("acme-wave", tool_pack("wave", "waved"))
    place.install("acme-bow", tool_pack("bow", "bowed"))
    place.install("watchman", WATCHMAN)
    with ModelServer(calls(("wave", {}), ("bow", {})), text("Done.")) as server:
        ended = ask(place, server, MARVIN_PACKS="acme_wave,acme_bow,watchman")
    assert (ended.code, ended.out) == (0, "  🔧 wave, bow\nDone.\n"), ended.err
    first, second = [request.body["messages"] for request in server.requests if request.method == "POST"]
    assert "A watchman is on duty." in json.dumps(first[0])
    assert "hello (seen by the watchman)" in json.dumps(first[1])
    refused, done = [message["content"] for message in second if message["role"] == "tool"]
    assert "the watchman says no to wave" in refused
    assert "waved" not in refused
    assert done == "bowed"


def test_a_provider_of_a_pack_answers(tmp_path: Path) -> None:
    """marvin_register_providers."""
    place = Place(tmp_path)
    place.install("acme-echo", ECHO_PROVIDER)
    ended = place.marvin("--non-interactive", "--prompt", "hi there", "--provider", "echo", "--model", "e2")
    assert (ended.code, ended.out) == (0, "e2 heard: hi there\n"), ended.err


@pytest.mark.parametrize("factory", ["nowhere:create", "acme_echo:missing", "no colon"])
def test_a_provider_whose_factory_is_not_there_is_named(tmp_path: Path, factory: str) -> None:
    place = Place(tmp_path)
    place.install("acme-echo", ECHO_PROVIDER.replace("acme_echo:create", factory))
    ended = place.marvin("--non-interactive", "--prompt", "hi there", "--provider", "echo")
    assert ended.code == 1
    assert f"The provider '{factory}' cannot be loaded: " in ended.err
    assert "Traceback" not in ended.err


def test_sub_commands_of_a_pack_run_from_the_command_line(tmp_path: Path) -> None:
    """marvin_extend_cli: named as typer names them, found before the word is taken for a prompt."""
    place = Place(tmp_path)
    place.install("acme-cli", SUB_COMMANDS)
    assert place.marvin("say-hello", "Ada").out == "hello Ada\n"
    assert place.marvin("say-hello", "Ada", "--loud").out == "HELLO ADA\n"
    assert place.marvin("garden", "water").out == "watered\n"
    wrong = place.marvin("say-hello", "--quiet", "x")
    assert wrong.code == 2
    assert "--quiet" in wrong.err
    assert "packs" in place.marvin("--plain", "packs", "--help").out, "the core's own are still there"


def test_a_sub_command_that_fails_for_a_file_or_a_connection_says_so(tmp_path: Path) -> None:
    """An OSError is not taken for a closed standard output, of which nobody could be told."""
    place = Place(tmp_path)
    body = "from marvin_core import hookimpl\n\n@hookimpl\ndef marvin_extend_cli(app):\n"
    for name, failure in {"opens": "open('/not/there')", "connects": "raise ConnectionError('nobody')"}.items():
        body += f"    @app.command()\n    def {name}():\n        {failure}\n"
    place.install("acme-cli", body)
    for name, said in {"opens": "/not/there", "connects": "nobody"}.items():
        ended = place.marvin(name)
        assert ended.code == 1
        assert said in ended.err


def test_a_command_of_a_pack_runs_in_the_chat(tmp_path: Path) -> None:
    """marvin_register_commands."""
    place = Place(tmp_path)
    place.install("acme-moon", COMMANDS)
    ended = place.run([*MARVIN, "--plain"], stdin=b"/moon new\n/help\n")
    assert ended.code == 0, ended.err
    assert "the moon is new over home" in ended.out
    assert "Say how the moon is." in ended.out


@pytest.mark.parametrize(
    ("hook", "returned", "said"),
    [
        ("marvin_register_hooks", "[42]", "registered 42 where a Hook was expected"),
        ("marvin_register_hooks", "1 / 0", "ZeroDivisionError"),
        ("marvin_register_hooks", "(1 / 0 for _ in range(3))", "ZeroDivisionError"),
        ("marvin_register_hooks", "7", "it must return a list of Hooks"),
        ("marvin_register_hooks", "exit(3)", "SystemExit: 3"),
    ],
)
def test_a_pack_that_fails_at_start_is_skipped_alone_and_named(
    tmp_path: Path, hook: str, returned: str, said: str
) -> None:
    place = Place(tmp_path)
    place.install("aa-bad", f"from marvin_core import hookimpl\n\n@hookimpl\ndef {hook}():\n    return {returned}\n")
    place.install("watchman", WATCHMAN)
    with ModelServer(text("Fine.")) as server:
        ended = ask(place, server)
    assert (ended.code, ended.out) == (0, "Fine.\n"), ended.err
    assert "marvin: pack aa_bad of aa-bad was left out: " in ended.err
    assert said in ended.err
    assert "seen by the watchman" in json.dumps(server.requests[-1].body), "the next pack's hooks run"


def test_configure_comes_before_the_other_hooks_and_its_failure_skips_the_pack(tmp_path: Path) -> None:
    """marvin_configure."""
    place = Place(tmp_path)
    source = """
    from marvin_core import Hook, hookimpl
    seen = []

    @hookimpl
    def marvin_configure(config):
        seen.append(config.working_dir.name)
        {then}

    class Tells(Hook):
        async def system_prompt(self, context):
            return f"configured for {{seen}}"

    @hookimpl
    def marvin_register_hooks():
        return [Tells()]
    """
    place.install("good-one", source.format(then="pass"))
    place.install("shy-one", source.format(then="raise OSError('not today')"))
    with ModelServer(text("Fine.")) as server:
        ended = ask(place, server)
    assert "pack shy_one of shy-one was left out: OSError: not today" in ended.err
    prompt = json.dumps(server.requests[-1].body["messages"][0])
    assert prompt.count("configured for ['home']") == 1


OF_THE_CORE = tuple(name for group in marvin_register_tools() for name in group.tools)


def test_marvin_packs_narrows_what_loads(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("acme-wave", tool_pack("wave"))
    place.install("acme-bow", tool_pack("bow"), pack="bowing")
    place.install("watchman", WATCHMAN)
    assert set(place.tools(MARVIN_PACKS=" acme_wave , bowing ")) == {"wave", "bow", *OF_THE_CORE}
    assert set(place.tools(MARVIN_PACKS="bowing")) == {"bow", *OF_THE_CORE}
    assert {"wave", "bow", "read_file"} <= set(place.tools(MARVIN_PACKS=""))
    with ModelServer(text("Fine.")) as server:
        ask(place, server, MARVIN_PACKS="bowing")
    assert "watchman" not in json.dumps(server.requests[0].body)


def test_marvin_packs_tells_two_packs_of_one_distribution_apart(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install(
        "acme",
        tool_pack("wave"),
        modules={"acme_more": tool_pack("bow")},
        entry_points="[marvin]\nwaving = acme\nbowing = acme_more\n",
    )
    assert set(place.tools(MARVIN_PACKS="bowing")) == {"bow", *OF_THE_CORE}
    listed = place.marvin("packs", "list", MARVIN_PACKS="bowing,waving").out
    assert "bowing  acme 1.0, 1 tool\nwaving  acme 1.0, 1 tool\n" in listed


def test_marvin_packs_with_an_unknown_name_says_so(tmp_path: Path) -> None:
    ended = Place(tmp_path).marvin("packs", "list", MARVIN_PACKS="coding,wether")
    assert "MARVIN_PACKS names wether, which is not installed. Installed: core, " in ended.err
    assert [line.split()[0] for line in ended.out.splitlines()] == ["core", "coding"]


def test_trace_hooks_prints_each_call_to_stderr(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("watchman", WATCHMAN)
    with ModelServer(text("Fine."), repeat=True) as server:
        traced = ask(place, server, MARVIN_TRACE_HOOKS="1")
        for off in ("", "0"):
            assert "marvin_register" not in ask(place, server, MARVIN_TRACE_HOOKS=off).err
    assert "marvin: watchman marvin_register_hooks\n" in traced.err
    assert traced.out == "Fine.\n"


def test_an_interface_of_a_pack_is_chosen_by_config(tmp_path: Path) -> None:
    """marvin_register_uis."""
    place = Place(tmp_path)
    source = """
    from marvin_core import UISpec, hookimpl

    class Tiny:
        def run(self, session, prompt):
            print(f"tiny: {prompt}, configured: {session.configured}")
            return 7

        async def ask(self, question, choices):
            return choices[-1]

    @hookimpl
    def marvin_register_uis():
        return [UISpec(name="tiny", factory="acme_tiny:Tiny")]
    """
    place.install("acme-tiny", source)
    (place.home / "marvin").mkdir()
    (place.home / "marvin" / "config.yaml").write_text("ui: tiny\n")
    chat = pexpect.spawn(
        sys.executable, [*MARVIN[1:], "hello"], env=place.environment(), cwd=place.home, encoding="utf-8", timeout=150
    )
    chat.expect_exact("tiny: hello, configured: True")
    chat.expect(pexpect.EOF)
    chat.wait()  # `close` alone sends signals to one that is slow to go
    chat.close()
    assert chat.exitstatus == 7


def test_packs_that_are_not_needed_are_not_imported(tmp_path: Path) -> None:
    """A run imports the module of a pack with hooks, and none of a pack with tools only."""
    place = Place(tmp_path)
    log = tmp_path / "imported"
    note = f"open({str(log)!r}, 'a').write(__name__ + '\\n')\n"
    for name, source in (("acme-wave", tool_pack("wave")), ("watchman", WATCHMAN)):
        file = place.install(name, source)
        file.write_text(note + file.read_text())
    assert {"wave"} <= set(place.tools())
    place.tools()
    log.write_text("")
    with ModelServer(text("Fine.")) as server:
        assert ask(place, server).code == 0
    assert set(log.read_text().split()) == {"watchman"}


def test_hooks_for_chats_alone_are_not_imported_by_a_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    log = tmp_path / "imported"
    source = WATCHMAN.replace("(Hook):\n", "(Hook):\n    chats_only = True\n\n")
    file = place.install("watchman", source)
    file.write_text(f"open({str(log)!r}, 'a').write(__name__)\n" + source)
    place.tools()
    log.write_text("")
    with ModelServer(text("Fine."), text("Fine.")) as server:
        assert ask(place, server).code == 0
        assert log.read_text() == ""
        assert "on duty" not in str(server.requests[-1].body)
        models = {"OPENAI_COMPAT_URL": server.url, "OPENAI_COMPAT_MODEL": "scripted"}
        chat = pexpect.spawn(
            sys.executable,
            [*MARVIN[1:], "--plain", "hello"],
            env={**place.environment(), **models},
            cwd=place.home,
            encoding="utf-8",
            timeout=150,
        )
        chat.expect_exact("Fine.")
        chat.close()
        assert log.read_text() == "watchman"
        assert "on duty" in str(server.requests[-1].body)


def test_a_run_from_a_folder_with_files_named_like_modules_uses_none_of_them(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name in ("httpx", "json", "pluggy", "marvin_core", "typing"):
        (place.home / f"{name}.py").write_text("raise SystemExit('the wrong module was imported')\n")
    (place.home / "marvin_core").mkdir()
    (place.home / "marvin_core" / "__init__.py").write_text("raise SystemExit('the wrong package was imported')\n")
    with ModelServer(text("Fine.")) as server:
        ended = place.marvin(
            "--non-interactive",
            "--prompt",
            "x",
            OPENAI_COMPAT_URL=server.url,
            OPENAI_COMPAT_MODEL="scripted",
            PYTHONPATH="",
        )
    assert (ended.code, ended.out) == (0, "Fine.\n"), ended.err


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_standard_stream_that_is_closed_is_not_replaced_by_a_file_of_ours(tmp_path: Path, closed: int) -> None:
    """I5: what is meant for standard output or error is written nowhere else."""
    place = Place(tmp_path)
    with ModelServer(text("The answer.")) as server:
        environment = place.environment(OPENAI_COMPAT_URL=server.url, OPENAI_COMPAT_MODEL="scripted")
        process = os.posix_spawn(
            sys.executable,
            [*MARVIN, "--non-interactive", "--prompt", "x"],
            environment,
            file_actions=[
                *((os.POSIX_SPAWN_OPEN, other, os.devnull, os.O_RDWR, 0) for other in range(3) if other != closed),
                (os.POSIX_SPAWN_CLOSE, closed),
            ],
        )
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code == (1 if closed == 1 else 0)
    (session,) = (place.home / "marvin" / "data" / "sessions").glob("*.jsonl")
    for line in session.read_text(encoding="utf-8").splitlines():
        assert json.loads(line)["type"] in ("session", "message", "state"), line
    assert time.time() - session.stat().st_mtime < 60


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            "async def aclose(self):\n        raise RuntimeError('stuck')",
            "marvin: While closing: RuntimeError: stuck\n",
        ),
        ("async def served(self):\n        raise RuntimeError('lost')", "The provider echo failed: RuntimeError: lost"),
    ],
)
def test_the_doctor_ends_in_order_where_a_provider_does_not(tmp_path: Path, fault: str, told: str) -> None:
    place = Place(tmp_path)
    source = ECHO_PROVIDER.replace(
        "async def aclose(self):\n        pass",
        "FAULT" if "aclose" in fault else "FAULT\n\n    async def aclose(self):\n        pass",
    )
    assert "FAULT" in source
    place.install("acme-echo", source.replace("FAULT", fault))
    ended = place.marvin("--provider", "echo", "doctor")
    assert "Traceback" not in ended.err
    assert told in ended.out + ended.err
    assert ended.code == int("served" in fault)
    assert "Tools" in ended.out.partition("Model")[2], "what comes behind it is looked at, too"
