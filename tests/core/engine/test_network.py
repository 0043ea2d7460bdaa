"""The network of commands: who is asked, what is remembered, and that a real sandbox holds commands to it."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from marvin_core.api.config import Config, NetworkPolicy
from marvin_core.config.load import load
from marvin_core.engine.calls.processes import CallProcesses
from marvin_core.engine.calls.timer import CallTimer
from marvin_core.engine.network import SessionNetwork
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.guard.sandbox.proxy_environment import proxy_environment
from marvin_core.http.clients import Clients
from marvin_core.testing import ModelServer
from marvin_core.util.bus import Bus
from marvin_core.util.git_calls import GIT_ALONE, GIT_PROGRAMS, git_command, git_without_programs
from tests.support.engine import run
from tests.support.folders import Folders
from tests.support.sandboxes import Place, in_sandbox


class Person:
    """Answers questions, and knows which were asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.questions: list[str] = []

    async def __call__(self, question: str, choices: Sequence[str]) -> str:
        self.questions.append(question)
        await asyncio.sleep(0)  # meanwhile others may want to know the same
        assert self.answers, question
        return self.answers.pop(0)


def config(home: Path, *flags: str, yaml: str = "", **env: str) -> Config:
    folder = home / ".config" / "marvin"
    folder.mkdir(parents=True, exist_ok=True)
    if yaml:
        (folder / "config.yaml").write_text(yaml)
    return load(flags, {"HOME": str(home), **env}, cwd=home)[0]


def network(given: Config, person: Person | None = None, environment: dict[str, str] | None = None) -> SessionNetwork:
    return SessionNetwork(given, Clients(given), Bus(), person, {} if environment is None else environment)


def test_without_a_setting_a_chat_asks_and_an_unattended_run_reaches_everything(tmp_path: Path) -> None:
    given = config(tmp_path)
    assert network(given).policy == NetworkPolicy(kind="all")
    assert not network(given).is_filtered
    chat = network(given, Person())
    assert chat.policy == NetworkPolicy(kind="loopback")
    assert chat.is_filtered


@pytest.mark.parametrize(
    ("kind", "attended", "filtered"),
    [("none", True, False), ("all", True, False), ("loopback", False, True), ("example.org", False, True)],
)
def test_a_setting_counts_with_and_without_a_person(tmp_path: Path, kind: str, attended: bool, filtered: bool) -> None:
    found = network(config(tmp_path, "--network", kind), Person() if attended else None)
    assert found.policy.as_text() == kind
    assert found.is_filtered == filtered


def test_a_host_is_asked_about_once_however_often_it_is_wanted(tmp_path: Path) -> None:
    async def work() -> None:
        person = Person("session", "no")
        found = network(config(tmp_path), person)
        several = await asyncio.gather(*(found.refusal("example.org", 443) for _ in range(5)))
        assert several == [""] * 5
        assert await found.refusal("example.org", 443) == ""
        refusals = [await found.refusal("evil.example", 22) for _ in range(3)]
        assert len(set(refusals)) == 1
        assert "cannot reach evil.example, port 22" in refusals[0]
        assert "--network" in refusals[0]
        assert len(person.questions) == 2
        assert "wants to reach example.org:443 on" in person.questions[0]
        assert "wants to reach evil.example:22 on" in person.questions[1]
        assert found.policy == NetworkPolicy(kind="hosts", hosts=("example.org:443",))
        assert config(tmp_path).network is None

    run(work())


class ShiftedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    shift = 0.0

    def time(self) -> float:
        return super().time() + self.shift


def test_the_time_that_a_person_takes_is_not_that_of_commands(tmp_path: Path) -> None:
    """Neither that of the program nor that of the call ends while a question about a host is open."""
    loop = ShiftedLoop()

    async def work() -> bool:
        for name in ("begun", "gate"):
            os.mkfifo(tmp_path / name)
        given = config(tmp_path)
        runner = ProcessRunner(Folders(root=tmp_path, base=tmp_path), {"PATH": os.environ["PATH"]}, given.timeouts)
        started = asyncio.Event()

        async def takes_long(question: str, choices: Sequence[str]) -> str:
            loop.shift += 10_000
            await runner.run(["true"])
            return "no"

        async def command() -> bool:
            timer = CallTimer(2_000)
            async with timer:
                calls = CallProcesses(runner, timer, outside=True)
                running = asyncio.ensure_future(calls.run(["sh", "-c", "echo > begun; cat gate"], timeout=1_000))
                await asyncio.to_thread((tmp_path / "begun").read_bytes)
                started.set()
                return (await running).timed_out

        found = SessionNetwork(given, Clients(given), Bus(), takes_long, {}, runner.held)
        call = asyncio.ensure_future(command())
        await started.wait()
        assert await found.refusal("example.org", 443)
        await asyncio.to_thread((tmp_path / "gate").write_text, "done")
        try:
            return await call
        finally:
            await runner.close()

    try:
        assert not loop.run_until_complete(work())
    finally:
        loop.close()


def test_a_marvin_among_the_commands_is_told_what_was_allowed_since(tmp_path: Path) -> None:
    async def work() -> None:
        environment = {"MARVIN_NETWORK": "loopback"}
        found = network(config(tmp_path), Person("no", "session", "session"), environment)
        await found.refusal("evil.example", 443)
        assert environment == {"MARVIN_NETWORK": "loopback"}
        await found.refusal("example.org", 443)
        await found.refusal("example.com", 22)
        assert environment == {"MARVIN_NETWORK": "example.org:443,example.com:22"}

    run(work())


def test_a_yes_is_for_the_port_that_was_asked_about_and_for_no_other(tmp_path: Path) -> None:
    """A yes for the web is none for mail or a shell on the same host, as an entry without a port in config.yaml is."""

    async def work() -> None:
        person = Person("session", "no", "no")
        found = network(config(tmp_path, yaml="network:\n  hosts: [open.example, one.example:443]\n"), person)
        assert await found.refusal("example.org", 443) == ""
        assert await found.refusal("example.org", 22) != ""
        assert (await found.refusal("open.example", 22), await found.refusal("one.example", 443)) == ("", "")
        assert await found.refusal("one.example", 22) != ""
        assert len(person.questions) == 3

    run(work())


def test_while_nobody_may_be_asked_a_host_is_refused_and_asked_about_later(tmp_path: Path) -> None:
    async def work() -> None:
        person = Person("session")
        found = network(config(tmp_path), person)
        found.may_ask = lambda: False
        assert await found.refusal("example.org", 443)
        assert person.questions == []
        found.may_ask = lambda: True
        assert await found.refusal("example.org", 443) == ""

    run(work())


def test_nobody_is_asked_where_nobody_is_there(tmp_path: Path) -> None:
    async def work() -> None:
        found = network(config(tmp_path, "--network", "example.org,*.example.com:8443"))
        before = found.mark()
        wanted = [
            ("example.org", 443),
            ("a.example.com", 8443),
            ("a.example.com", 443),
            ("b.example", 80),
            ("b.example", 80),
        ]
        assert [bool(await found.refusal(*one)) for one in wanted] == [False, False, True, True, True]
        assert found.refused_since(before) == ("a.example.com:443", "b.example:80")
        assert found.refused_since(found.mark()) == ()

    run(work())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "network:\n  hosts:\n  - example.org:443\n  - git.example.com:22\n"),
        ("# mine\nnetwork: loopback # so far\nseed: off\n", None),
        ("network:\n  hosts: [a.example] # work\n", None),
    ],
)
def test_always_is_kept_in_config_yaml(tmp_path: Path, before: str, after: str | None) -> None:
    async def work() -> None:
        given = config(tmp_path, yaml=before)
        found = network(given, Person("always", "always"))
        assert await found.refusal("example.org", 443) == ""
        assert await found.refusal("git.example.com", 22) == ""
        kept = config(tmp_path)
        assert kept.network == found.policy
        assert kept.network is not None
        assert kept.network.hosts[-2:] == ("example.org:443", "git.example.com:22")
        written = (tmp_path / ".config" / "marvin" / "config.yaml").read_text()
        assert after in (None, written)
        assert ("# mine" in written) == ("# mine" in before)
        assert kept.seed == given.seed

    run(work())


def test_always_that_cannot_be_kept_counts_for_the_session_and_is_told(tmp_path: Path) -> None:
    async def work() -> None:
        given = config(tmp_path)
        told: list[str] = []
        bus = Bus()
        bus.subscribe(lambda event: told.append(str(event)))
        (given.config_folder / "config.yaml").mkdir()
        found = SessionNetwork(given, Clients(given), bus, Person("always"), {})
        assert await found.refusal("example.org", 443) == ""
        assert any("example.org:443 is allowed for this session only" in text for text in told)

    run(work())


def test_a_question_that_broke_off_is_asked_again(tmp_path: Path) -> None:
    async def work() -> None:
        class Leaving(Person):
            async def __call__(self, question: str, choices: Sequence[str]) -> str:
                if not self.questions:
                    self.questions.append(question)
                    raise asyncio.CancelledError
                return await super().__call__(question, choices)

        found = network(config(tmp_path), Leaving("session"))
        with pytest.raises(asyncio.CancelledError):
            await found.refusal("example.org", 443)
        assert await found.refusal("example.org", 443) == ""

    run(work())


def test_programs_are_told_of_the_proxy_and_not_of_that_of_the_user() -> None:
    variables = proxy_environment(3128)
    assert {variables[name] for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY", "npm_config_https_proxy")} == {
        "http://127.0.0.1:3128"
    }
    assert variables["NO_PROXY"] == variables["no_proxy"] == "localhost,127.0.0.1,::1"


def test_settings_of_git_that_a_call_was_given_stay_beside_that_of_the_proxy() -> None:
    """They switch off what a repository would have git run; the proxy's took the place of the first of them."""
    off = git_without_programs(b"local\0filter.a.clean\ncat\0local\0hook.b.command\ntrue\0")
    for given in (off, {}, {"GIT_CONFIG_COUNT": "nonsense"}):
        variables = {**given, **proxy_environment(3128, given)}
        count = int(variables["GIT_CONFIG_COUNT"])
        settings = {
            variables[f"GIT_CONFIG_KEY_{number}"]: variables[f"GIT_CONFIG_VALUE_{number}"] for number in range(count)
        }
        assert settings.pop("http.proxy") == "http://127.0.0.1:3128"
        assert settings == ({"filter.a.clean": "", "hook.b.enabled": "false"} if given is off else {})


# In a real sandbox.


def test_git_that_only_looks_runs_no_filter_of_a_repository_behind_the_proxy(tmp_path: Path) -> None:
    async def work(place: Place) -> None:
        await place.sh("git init -q . && echo one > a.txt && echo '*.txt filter=evil' > .gitattributes && git add .")
        setting = f"sh -c 'echo ran >> {place.root}/ran; cat'"
        assert (await place.runner.run(["git", "config", "filter.evil.clean", setting], outside=True)).exit_code == 0
        await place.sh("sleep 0.01; echo two > a.txt")
        git = git_command()
        listed = await place.runner.run([*git, *GIT_PROGRAMS], env=GIT_ALONE)
        alone = {**GIT_ALONE, **git_without_programs(listed.output)}
        ended = await place.runner.run([*git, "diff", "--stat"], env=alone)
        assert b"a.txt" in ended.output
        assert not (place.root / "ran").exists()
        await place.runner.run([*git, "diff", "--stat"], env=GIT_ALONE)
        assert (place.root / "ran").exists(), "the filter is there, and would run"

    in_sandbox(tmp_path, work, settings="network: {hosts: [localhost]}\n", decides=network)


UV = str(Path(sys.executable).with_name("uv"))


FETCH = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=50).read().decode())
except Exception as error:
    print(type(error).__name__, error, getattr(error, "read", lambda: b"")().decode())
"""
AROUND = """
import os, socket, sys
for key in [key for key in os.environ if "proxy" in key.lower()]:
    del os.environ[key]
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 50)
    print("reached")
except OSError as error:
    print(error.strerror)
try:
    socket.getaddrinfo("example.com", 80)
    print("looked up")
except OSError as error:
    print("no names")
"""


def python(code: str, argument: str) -> list[str]:
    return [sys.executable, "-c", code, argument]


def test_a_command_in_a_sandbox_reaches_allowed_hosts_and_no_others(tmp_path: Path) -> None:
    # To the program localhost is its own, where nothing is; so it has to be told to ask the proxy.
    fetch = f"import os; os.environ['no_proxy'] = ''\n{FETCH}"

    async def work(place: Place) -> None:
        with ModelServer() as server:
            url = f"http://localhost:{server.port}/"
            ended = await place.runner.run(python(fetch, url))
            assert b"there is nothing here" in ended.output  # as that server answers to a GET
            assert not ended.held_back
            ended = await place.runner.run(python(fetch, "http://evil.example/"))
            assert b"403" in ended.output
            assert b"cannot reach evil.example" in ended.output
            assert "did not let commands reach evil.example:80" in ended.held_back
            ended = await place.runner.run(python(AROUND, str(server.port)))
            assert ended.output.splitlines() == [b"Connection refused", b"no names"]
            assert not ended.held_back
            assert len(server.requests) == 1

    allowed = "allow_addresses: [localhost]\nnetwork: {hosts: [localhost]}\n"
    in_sandbox(tmp_path, work, settings=allowed, decides=network)


def test_a_host_that_is_allowed_meanwhile_needs_no_other_sandbox(tmp_path: Path) -> None:
    person = Person("session", "no")

    async def work(place: Place) -> None:
        await place.sh("echo kept > /tmp/kept; sleep 60 & echo $! > /tmp/job", leave_jobs=True)
        fetch = python(FETCH, "http://no-such-name.invalid/")
        assert b"could not be reached" in (await place.runner.run(fetch)).output
        assert b"403" in (await place.runner.run(python(FETCH, "http://evil.example/"))).output
        ended = await place.sh("cat /tmp/kept && kill -0 $(cat /tmp/job)")
        assert (ended.exit_code, ended.output) == (0, b"kept\n")

    in_sandbox(tmp_path, work, decides=lambda given: network(given, person))
    assert len(person.questions) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["curl", "-sS", "http://evil.example/"],
        ["git", "ls-remote", "https://evil.example/a.git"],
        [UV, "pip", "install", "--dry-run", "--index-url", "https://evil.example/", "--target=x", "marvin-x"],
        ["npm", "view", "--registry", "https://evil.example/", "--fetch-retries=0", "left-pad"],
    ],
    ids=lambda command: str(command[0]).rpartition("/")[2],
)
def test_everyday_programs_ask_the_proxy(command: list[str], tmp_path: Path) -> None:
    found_program = shutil.which(command[0])
    if found_program is None:
        pytest.skip(f"{command[0]} is not installed")

    person = Person(*["no"] * 3)

    async def work(place: Place) -> None:
        ended = await place.runner.run([found_program, *command[1:]], merge_stderr=True)
        assert person.questions, ended.output
        assert "evil.example:" in ended.held_back

    in_sandbox(tmp_path, work, env={"UV_HTTP_RETRIES": "0"}, decides=lambda given: network(given, person))
    assert len(person.questions) == 1
    assert "reach evil.example:" in person.questions[0]


def test_the_end_of_the_session_ends_every_connection(tmp_path: Path) -> None:
    async def work() -> None:
        given = config(tmp_path, "--network", "localhost", yaml="allow_addresses: [localhost]\n")
        found = network(given)
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        await found.serve(listener)
        with socket.create_server(("127.0.0.1", 0)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % server.getsockname()[1])
            await reader.readuntil(b"\r\n\r\n")
            await found.close()
            assert await reader.read() == b""
            writer.close()
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)

    run(work())
