"""The kit that packs test with: calls as a session makes them, a server for every host, a guard against leaks."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest

from marvin_core import (
    Ask,
    Field,
    Hook,
    HookContext,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
    call_of,
    tool,
)
from marvin_core.api.errors import PluginError
from marvin_core.testing import HttpReplay, ToolRunner, cut_after, hang, raw

ROOT = Path(__file__).resolve().parents[3]


@tool(access=["read"])
async def greet(name: Annotated[str, Field(min_length=1)], times: int = 1) -> str:
    """Greet somebody."""
    return " ".join([f"Hello, {name}!"] * times)


@tool(access=["write"])
async def put(path: str, text: str, context: ToolContext) -> ToolResult:
    """Write a file."""
    context.progress("writing")
    context.paths.replace(path, text.encode())
    return ToolResult(content=f"Wrote {path}.", details={"bytes": len(text)})


@tool(access=["state"])
async def open_gate(context: ToolContext) -> ToolResult:
    """Open the gate."""
    context.state["gate"] = "open"
    return ToolResult(content="The gate is open.", undo=call_of(close_gate))


@tool(access=["state"])
async def close_gate(context: ToolContext) -> str:
    """Close the gate."""
    context.state["gate"] = "closed"
    return "The gate is closed."


@tool(access=["state"])
async def count_up(context: ToolContext) -> str:
    """Count the calls of this session."""
    context.state["count"] = context.state.get("count", 0) + 1
    return str(context.state["count"])


@tool(access=["exec"])
async def run(program: str, context: ToolContext) -> str:
    """Run a program."""
    done = await context.processes.run(["sh", "-c", program])
    return done.output.decode()


@tool(access=["write"], confirm=True)
async def erase(context: ToolContext) -> str:
    """Ask, and ask again, before erasing."""
    return await context.ask("Really?", ["no", "maybe", "yes"])


@tool(access=["read"], secrets=["WEATHER_KEY"], requires=["env:WEATHER_KEY"])
async def key(context: ToolContext) -> str:
    """Give the key away."""
    return f"{context.mode} {context.secret('WEATHER_KEY')} {context.secret('OTHER_KEY')}"


@tool(access=["net"])
async def fetch(url: str, context: ToolContext) -> str:
    """Fetch a page."""
    try:
        answer = await context.http.get(url, follow_redirects=True)
    except Exception as error:
        raise ToolError(f"{type(error).__name__}. Try later.") from error
    return f"{answer.status_code} {answer.url} {answer.text}"


class Resource:
    """Counts how often it was opened and closed."""

    opened = 0
    closed = 0

    @classmethod
    @asynccontextmanager
    async def make(cls) -> AsyncIterator[int]:
        cls.opened += 1
        yield cls.opened
        cls.closed += 1


@tool(access=["read"])
async def use(context: ToolContext) -> str:
    """Use what is opened once a session."""
    return str(await context.resource(Resource.make))


class AsksBeforeGreeting(Hook):
    async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
        return Ask(reason=f"{context.cwd.name} wants to know") if arguments.get("name") == "Ada" else None


# Calls


def test_a_call_gives_text_details_and_progress(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.call(put, path="notes/a.txt", text="hello")
    assert (outcome.text, outcome.is_error) == ("Wrote notes/a.txt.", False)
    assert outcome.details == {"bytes": 5}
    assert outcome.progress == ("writing",)
    assert (marvin_tools.working_dir / "notes/a.txt").read_text() == "hello"


def test_arguments_are_checked_and_repaired_as_in_a_session(marvin_tools: ToolRunner) -> None:
    assert (
        marvin_tools.call_raw(greet, '```json\n{"name": "Ada", "times": "2",}\n```').text == "Hello, Ada! Hello, Ada!"
    )
    wrong = marvin_tools.call(greet, name="", tmies=3)
    assert wrong.is_error
    assert "name:" in wrong.text
    assert "times" in wrong.text


def test_the_sandbox_holds(marvin_tools: ToolRunner, tmp_path: Path) -> None:
    """I4: also in tests a path cannot escape."""
    outcome = marvin_tools.call(put, path="../escaped.txt", text="")
    assert outcome.is_error
    assert not (tmp_path / "escaped.txt").exists()


def test_an_installed_tool_is_called_by_its_name(marvin_tools: ToolRunner) -> None:
    (marvin_tools.working_dir / "a.txt").write_text("one\ntwo\n")
    assert "two" in marvin_tools.call("read_file", path="a.txt").text


def test_a_wrong_name_finds_its_like(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.call("read_fiel", path="a.txt")
    assert outcome.is_error
    assert "read_file" in outcome.text


def test_state_survives_calls_but_not_the_session(marvin_tools: ToolRunner) -> None:
    assert [marvin_tools.call(count_up).text for _ in range(3)] == ["1", "2", "3"]
    assert {"count": 3} in marvin_tools.state.values()
    assert marvin_tools.session().call(count_up).text == "1"


def test_a_call_is_taken_back_by_a_tool_that_was_never_called(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.call(open_gate)
    assert (outcome.undo, marvin_tools.take_back()) == (call_of(close_gate), ("open_gate: no arguments",))
    assert [state["gate"] for state in marvin_tools.state.values()] == ["closed"]


def test_a_resource_is_opened_once_and_closed_at_the_end(tmp_path: Path) -> None:
    Resource.opened = Resource.closed = 0
    with ToolRunner(tmp_path, tmp_path) as runner:
        assert [runner.call(use).text, runner.call(use).text] == ["1", "1"]
        assert runner.session().call(use).text == "2"
        assert Resource.closed == 0
    assert Resource.closed == 2


def test_what_a_tool_left_running_is_ended(marvin_tools: ToolRunner, marvin_guard: None) -> None:
    """I25: nothing of a call is alive after the session."""
    assert marvin_tools.call(run, program="sleep 60 >&2 & echo started").text == "started\n"


def test_children_find_programs_and_the_home_of_the_test(marvin_tools: ToolRunner) -> None:
    assert marvin_tools.call(run, program="cd && pwd").text.strip() == str(marvin_tools.home)


def test_questions_get_their_answers_in_order(marvin_tools: ToolRunner) -> None:
    runner = marvin_tools.session(answers=["yes", "maybe"])
    assert runner.call(erase).text == "maybe"
    assert [choices for _, choices in runner.questions] == [("yes", "session", "no"), ("no", "maybe", "yes")]


def test_a_question_without_an_answer_fails_the_test(marvin_tools: ToolRunner) -> None:
    with pytest.raises(AssertionError, match="erase asked"):
        marvin_tools.call(erase)


def test_where_nobody_is_there_a_question_is_an_error(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.session(interactive=False).call(erase)
    assert outcome.is_error
    assert "Nobody can answer" in outcome.text


def test_read_only_leaves_out_what_writes(marvin_tools: ToolRunner) -> None:
    runner = marvin_tools.session(read_only=True)
    assert "read-only" in runner.call(put, path="a.txt", text="").text
    assert runner.call(greet, name="Ada").text == "Hello, Ada!"


def test_secrets_come_from_the_options_and_are_redacted(
    marvin_tools: ToolRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I24: the key of the developer's own environment is not seen, the test's own is redacted."""
    monkeypatch.setenv("WEATHER_KEY", "the-developers-own")
    assert "needs the variable WEATHER_KEY" in marvin_tools.call(key).text
    with_key = marvin_tools.session(env={"WEATHER_KEY": "tests-secret-key"}).call(key)
    assert "OTHER_KEY, which it does not declare" in with_key.text
    assert "tests-secret-key" not in with_key.text


def test_modes(marvin_tools: ToolRunner) -> None:
    @tool(access=["read"])
    async def mode(context: ToolContext) -> str:
        """Tell the mode."""
        return context.mode

    assert marvin_tools.call(mode).text == "chat"
    assert marvin_tools.session(mode="coding").call(mode).text == "coding"
    assert marvin_tools.session(interactive=False).call(mode).text == "coding"


def test_hooks_are_told_of_the_mode(marvin_tools: ToolRunner) -> None:
    class Notes(Hook):
        def __init__(self) -> None:
            self.modes: list[str] = []

        async def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
            self.modes.append(context.mode)
            return None

    @tool(access=["read"])
    async def wave() -> str:
        """Wave."""
        return "waved"

    notes = Notes()
    marvin_tools.session(hooks=[notes]).call(wave)
    marvin_tools.session(hooks=[notes], mode="coding").call(wave)
    assert notes.modes == ["chat", "coding"]


def test_hooks_watch_the_calls(marvin_tools: ToolRunner) -> None:
    runner = marvin_tools.session(hooks=[AsksBeforeGreeting()], answers=["no"])
    assert "the user said no" in runner.call(greet, name="Ada").text
    assert "work wants to know" in runner.questions[0][0]
    assert not runner.call(greet, name="Bob").is_error


def test_rules_of_the_homes_configuration_hold(marvin_tools: ToolRunner) -> None:
    folder = marvin_tools.home / ".config" / "marvin"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("permissions:\n  deny: [greet(Ada)]\n")
    assert "forbids it" in marvin_tools.call(greet, name="Ada").text


# The server for every host


def test_a_request_to_any_host_is_answered_and_remembered(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", "https://api.example.com/v1/weather", json={"sky": "blue"})
    outcome = marvin_tools.call(fetch, url="https://api.example.com/v1/weather?q=Z%C3%BCrich&units=m#today")
    assert outcome.text.endswith('{"sky": "blue"}')
    request = marvin_http.requests[0]
    assert (request.method, request.url) == ("GET", "https://api.example.com/v1/weather?q=Z%C3%BCrich&units=m")
    assert request.params == {"q": "Zürich", "units": "m"}
    assert request.headers["host"] == "api.example.com"
    assert request.headers["user-agent"].startswith("marvin/")


def test_answers_follow_each_other_and_a_query_tells_them_apart(
    marvin_tools: ToolRunner, marvin_http: HttpReplay
) -> None:
    marvin_http.on("GET", "http://a.example/", status=429, headers={"retry-after": "2"}, times=1)
    marvin_http.on("GET", "http://a.example/?x=1&y=2", text="both")
    marvin_http.on("GET", "http://a.example/", text="any")
    answers = [marvin_tools.call(fetch, url=f"http://a.example/{query}").text for query in ("", "?y=2&x=1", "?x=1")]
    assert [(text[:3], text.rpartition(" ")[2]) for text in answers] == [("429", ""), ("200", "both"), ("200", "any")]


def test_redirects_lead_to_the_other_hosts_answer(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", "https://old.example/a", status=301, headers={"Location": "http://new.example/b"})
    marvin_http.on("GET", "http://new.example/b", text="moved")
    assert marvin_tools.call(fetch, url="https://old.example/a").text == "200 http://new.example/b moved"
    assert [request.url for request in marvin_http.requests] == ["https://old.example/a", "http://new.example/b"]


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_come_as_they_were_given(marvin_tools: ToolRunner, marvin_http: HttpReplay, chunked: bool) -> None:
    big = "0123456789" * 300_000
    latin = {"content-type": "text/plain; charset=iso-8859-1"}
    zipped = {"content-encoding": "gzip", "content-type": "text/plain; charset=utf-8"}
    marvin_http.on("GET", "http://a.example/big", text=big, chunked=chunked)
    marvin_http.on("GET", "http://a.example/latin", body="déjà".encode("latin-1"), headers=latin, chunked=chunked)
    marvin_http.on("GET", "http://a.example/zip", body=gzip.compress("Ω".encode()), headers=zipped, chunked=chunked)

    async def texts() -> list[str]:
        client = marvin_http.client()
        try:
            return [(await client.get(f"http://a.example/{name}")).text for name in ("big", "latin", "zip")]
        finally:
            await client.aclose()

    assert asyncio.run(texts()) == [big, "déjà", "Ω"]


def test_silence_and_a_broken_answer(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    runner = marvin_tools.session(timeouts={"http": 0.2})
    marvin_http.on("GET", "http://a.example/silent", answer=hang())
    broken = raw(b"0123456789", {"content-type": "text/plain"})
    marvin_http.on("GET", "http://a.example/broken", answer=cut_after(4, broken))
    assert "ReadTimeout" in runner.call(fetch, url="http://a.example/silent").text
    assert runner.call(fetch, url="http://a.example/broken").is_error


def test_methods_and_bodies_are_recorded() -> None:
    async def send(replay: HttpReplay) -> None:
        client = replay.client()
        await client.put("https://a.example/x", json={"n": 1})
        assert (await client.head("https://a.example/x")).headers["content-length"] == "4"
        assert (await client.delete("https://a.example/x")).status_code == 204
        await client.aclose()

    with HttpReplay() as replay:
        replay.on("put", "https://a.example:443/x")
        replay.on("HEAD", "https://a.example/x", text="body")
        replay.on("DELETE", "https://a.example/x", status=204)
        asyncio.run(send(replay))
        assert replay.requests[0].json == {"n": 1}
        assert [request.method for request in replay.requests] == ["PUT", "HEAD", "DELETE"]
        replay.check()


# What the fixtures do to tests: each text is a test module, run by a pytest of its own


PYTEST = [sys.executable, "-B", "-P", "-m", "pytest", "-c", "/dev/null", "--rootdir", "."]
# Only our own plugin: what the others import is not ours to answer for.
OTHERS = ("cacheprovider", "anyio", "hypothesispytest", "timeout", "xdist", "xdist.looponfail")
PLUGINS = [f"-pno:{name}" for name in OTHERS]


def run_tests(folder: Path, source: str) -> str:
    """What pytest reports of these tests; its last line, without the dashes, comes first."""
    (folder / "test_inner.py").write_text(f"import os, socket, subprocess, sys, pathlib, tempfile, pytest\n{source}")
    command = [*PYTEST, *PLUGINS, "--basetemp", str(folder / "temp"), "test_inner.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=150, check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return "\n".join([lines[-1].strip("= "), *lines])


LEAKS = """
def test_a_variable(marvin_guard):
    os.environ["LEFT_BEHIND"] = "1"

def test_a_file(marvin_guard, marvin_workdir):
    pathlib.Path("inside.txt").write_text("fine")
    pathlib.Path(__file__).with_name("outside.txt").write_text("leak")

def test_a_file_by_descriptor(marvin_guard):
    os.close(os.open(os.path.join(os.path.dirname(__file__), "low.txt"), os.O_CREAT | os.O_WRONLY))

def test_a_process(marvin_workdir, marvin_guard):
    test_a_process.child = subprocess.Popen(["sleep", "60"])

def test_a_socket(marvin_guard):
    test_a_socket.kept = socket.create_server(("127.0.0.1", 0))

def test_a_folder(marvin_guard, tmp_path):
    os.chdir(tmp_path)
"""


@pytest.mark.slow
def test_the_guard_fails_a_test_that_leaks(tmp_path: Path) -> None:
    report = run_tests(tmp_path, LEAKS + "\ndef test_end():\n    test_a_process.child.kill()\n")
    assert "7 passed, 6 errors" in report
    for leak in ("variable LEFT_BEHIND: set", "outside.txt", "low.txt", "sleep 60", "socket:[", "current folder: "):
        assert leak in report, leak
    assert "inside.txt" not in report


CLEAN = """
def test_everything(marvin_tools, marvin_http, marvin_repository, marvin_model_server, marvin_guard):
    (marvin_repository / "a.txt").write_text("one")
    (pathlib.Path.home() / "b.txt").write_text("two")
    tempfile.TemporaryFile().close()
    tempfile.NamedTemporaryFile().close()
    subprocess.run(["git", "add", "a.txt"], check=True)
    assert "a.txt" in marvin_tools.call("git_status").text
    assert marvin_tools.session(answers=["yes"]).call("run_command", command="sleep 30 & echo done").text
"""


@pytest.mark.slow
def test_the_guard_passes_a_test_that_cleans_up(tmp_path: Path) -> None:
    report = run_tests(tmp_path, CLEAN)
    assert report.startswith("1 passed"), report


@pytest.mark.slow
def test_an_unexpected_request_fails_the_test(tmp_path: Path) -> None:
    report = run_tests(
        tmp_path,
        "from marvin_core import tool, ToolContext\n"
        "@tool(access=['net'])\n"
        "async def get(context: ToolContext) -> str:\n"
        "    'Get.'\n"
        "    return str((await context.http.get('https://a.example/x?y=1')).status_code)\n"
        "def test_it(marvin_tools, marvin_http):\n"
        "    marvin_http.on('GET', 'https://a.example/other')\n"
        "    assert marvin_tools.call(get).text == '599'\n",
    )
    assert report.startswith("1 passed, 1 error"), report
    assert "unexpected request GET https://a.example/x?y=1; expected: GET https://a.example/other" in report


@pytest.mark.slow
def test_home_and_working_directory_are_the_tests_own(
    marvin_home: Path, marvin_repository: Path, tmp_path: Path
) -> None:
    assert (Path.home(), Path.cwd()) == (marvin_home, marvin_repository)
    assert marvin_home.parent == tmp_path
    asked = [sys.executable, "-P", "-m", "marvin_core", "packs", "list"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=150, check=False)
    assert done.stdout.startswith("core"), done.stderr
    assert (marvin_home / ".cache" / "marvin").is_dir()
    log = subprocess.run(["git", "log", "--format=%s"], capture_output=True, text=True, check=True)
    assert log.stdout == "Begin\n"


@pytest.mark.slow
def test_the_plugin_imports_nothing_until_a_fixture_is_used(tmp_path: Path) -> None:
    report = run_tests(
        tmp_path,
        "def test_nothing_of_marvin_is_loaded():\n"
        "    loaded = {name for name in sys.modules if name.startswith('marvin_core')}\n"
        "    kit = {'marvin_core.testing', 'marvin_core.testing.plugin'}\n"
        "    assert loaded == {'marvin_core', 'marvin_core.version', *kit}\n"
        "    assert not {'httpx', 'pydantic', 'asyncio', 'typer', 'rich'} & set(sys.modules)\n",
    )
    assert report.startswith("1 passed"), report


@pytest.mark.slow
def test_fixtures_are_named_for_marvin_and_none_is_automatic(tmp_path: Path) -> None:
    listing = [*PYTEST, *PLUGINS, "--fixtures", "-q", "."]
    listed = subprocess.run(listing, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    lines = [line for line in listed.stdout.splitlines() if "testing/plugin.py" in line]
    assert {line.partition(" ")[0] for line in lines} == {
        "marvin_guard",
        "marvin_home",
        "marvin_http",
        "marvin_model_server",
        "marvin_pack",
        "marvin_repository",
        "marvin_tools",
        "marvin_workdir",
    }
    report = run_tests(tmp_path, "def test_none(request):\n    assert request.fixturenames == ['request']\n")
    assert report.startswith("1 passed"), report


@pytest.mark.slow
def test_the_documented_example_works_as_it_is_written() -> None:
    folder = ROOT / "docs" / "examples" / "marvin_dice"
    page = (ROOT / "docs" / "how-to" / "test-a-pack.md").read_text(encoding="utf-8")
    for name in ("marvin_dice.py", "pyproject.toml", "test_dice.py"):
        assert (folder / name).read_text(encoding="utf-8") in page, f"{name} is not on the page as it is"
    pack = [(folder / name).read_text().count("\n") for name in ("pyproject.toml", "marvin_dice.py")]
    assert sum(pack) < 40
    done = subprocess.run(
        [*PYTEST, *PLUGINS, "-q"], cwd=folder, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.stdout.splitlines()[-1].startswith("3 passed"), done.stdout


def test_a_hook_that_would_be_refused_is_an_error_of_the_test(marvin_tools: ToolRunner) -> None:
    class Plain(Hook):
        def before_tool(self, context: HookContext, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:  # type: ignore[override]
            return None

    with pytest.raises(PluginError, match="Write `async def before_tool`"):
        marvin_tools.session(hooks=[Plain()]).call(greet, name="Ada")
