"""Flags, environment and config.yaml: what each does, which one counts, and what a mistake is told."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest

from marvin_core.api.config import Config, NetworkPolicy
from marvin_core.api.errors import ConfigError, UsageError
from marvin_core.api.limits import Limits, Telemetry
from marvin_core.api.providers import Secret
from marvin_core.api.timeouts import Timeouts
from marvin_core.config import folders as folders_module
from marvin_core.config import load as config_module
from marvin_core.config import tiers as tiers_module
from marvin_core.config.environment import ENVIRONMENT
from marvin_core.config.file.sections import FileSettings
from marvin_core.config.load import load
from marvin_core.config.secrets import GIT_LOCAL_VARIABLES, Secrets
from marvin_core.config.services import key_variables
from marvin_core.guard.redaction import Redactor
from tests.support.installing import unprivileged

KEY = "sk-verysecret-0123456789"


class Desk:
    """A home folder, a current folder, and what is read there."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.cwd = folder / "project"
        self.home.mkdir()
        self.cwd.mkdir()

    def yaml(self, text: str) -> None:
        folder = self.home / ".config" / "marvin"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(text, encoding="utf-8")

    def both(self, *argv: str, **env: str) -> tuple[Config, Secrets]:
        return load(argv, {"HOME": str(self.home), **env}, cwd=self.cwd)

    def config(self, *argv: str, **env: str) -> Config:
        return self.both(*argv, **env)[0]

    def secrets(self, **env: str) -> Secrets:
        return self.both(**env)[1]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# What each flag, variable and key does.

TIER_MODELS = {
    "opus": "claude-opus-4.6",
    "codex": "gpt-5.3-codex",
    "plan": "gpt-5.2",
    "plan_gen": "gemini-3.8-flash",
    "test_writer": "gemini-3.8-flash",
    "aux_reviewer": "gpt-5.2",
}
FLAGS: list[tuple[list[str], str, Any]] = [
    ([], "prompt", None),
    (["fix", "the", "tests"], "prompt", "fix the tests"),
    (["--plain", "fix", "it"], "prompt", "fix it"),
    (["fix", "it", "--plain"], "prompt", "fix it"),
    (["fix", "--plain", "it"], "prompt", "fix it"),
    (["--prompt", "fix it"], "prompt", "fix it"),
    (["--prompt", ""], "prompt", ""),
    (["--prompt=--odd"], "prompt", "--odd"),
    (["--", "--odd"], "prompt", "--odd"),
    (["--non-interactive"], "non_interactive", True),
    (["--plain"], "plain", True),
    (["--design-first"], "design_first", True),
    (["--design-first", "--from", "2a"], "pipeline_from", "2a"),
    (["--design-first"], "pipeline_from", ""),
    (["--design-first", "--until", "3"], "pipeline_until", "3"),
    (["--design-first", "--yes"], "yes", True),
    (["--design-first", "--strict"], "strict", True),
    (["--design-first", "--github"], "github", True),
    ([], "strict", False),
    (["--ntfy", "my-topic_1"], "ntfy", "my-topic_1"),
    ([], "ntfy", ""),
    (["--provider", "groq"], "provider", "groq"),
    (["--provider", "groq"], "provider_origin", "--provider"),
    (["--model", "m1"], "model", "m1"),
    (["--model", "m1"], "model_origin", "--model"),
    (
        ["--model", "high=big", "--model", "low=small"],
        "tiers",
        TIER_MODELS | {"opus": "big", "plan": "big", "codex": "small"},
    ),
    (["--model", "plan=other"], "tiers", TIER_MODELS | {"plan": "other"}),
    (["--model", "high=big", "--model", "m1"], "model", "m1"),
    (["--model", "one", "--model", "two"], "model", "two"),
    (["--tools", "coding,-run_command"], "tools", "coding,-run_command"),
    ([], "output_format", "text"),
    (["--output-format", "json"], "output_format", "json"),
    (["--output-format", "stream-json"], "output_format", "stream-json"),
    ([], "on_ask", "allow"),
    (["--on-ask", "deny"], "on_ask", "deny"),
    (["--on-ask", "allow-all"], "on_ask", "allow-all"),
    (["--on-ask", "deny,run_command=allow"], "on_ask", "deny"),
    (
        ["--on-ask", "deny,run_command=allow, git_commit=allow-all"],
        "on_ask_tools",
        {"run_command": "allow", "git_commit": "allow-all"},
    ),
    ([], "permission_mode", None),
    (["--permission-mode", "readonly"], "permission_mode", "readonly"),
    ([], "trust_project", False),
    (["--trust-project"], "trust_project", True),
    (["--continue"], "continue_session", True),
    (["--resume", "abc"], "resume", "abc"),
]


@pytest.mark.parametrize(("argv", "field", "value"), FLAGS)
def test_flags(desk: Desk, argv: list[str], field: str, value: Any) -> None:
    assert getattr(desk.config(*argv), field) == value


VARIABLES: list[tuple[dict[str, str], str, Any]] = [
    ({"LLM_PROVIDER": "groq"}, "provider", "groq"),
    ({"LLM_PROVIDER": "groq"}, "provider_origin", "LLM_PROVIDER"),
    ({"MARVIN_MODEL": "m"}, "model", "m"),
    ({"MARVIN_THINKING": "medium"}, "thinking", "medium"),
    ({"MARVIN_MODEL": "m"}, "model_origin", "MARVIN_MODEL"),
    ({}, "packs", None),
    ({"MARVIN_PACKS": ""}, "packs", None),
    ({"MARVIN_PACKS": "coding, web ,"}, "packs", {"coding", "web"}),
    ({"MARVIN_TRACE_HOOKS": "1"}, "trace_hooks", True),
    ({"MARVIN_TRACE_HOOKS": "0"}, "trace_hooks", False),
    ({}, "depth", 0),
    ({"MARVIN_DEPTH": "5"}, "depth", 5),
    ({"MARVIN_DEPTH": "-3"}, "depth", 0),
    ({}, "read_only", False),
    ({"MARVIN_READONLY": "1"}, "read_only", True),
    ({"MARVIN_READONLY": "true"}, "read_only", True),
    ({"MARVIN_READONLY": "0"}, "read_only", False),
    ({}, "writable_files", None),
    ({"MARVIN_WRITABLE_FILES": "a.txt, b/c.txt"}, "writable_files", ("a.txt", "b/c.txt")),
    ({"MARVIN_WRITABLE_FILES": ","}, "writable_files", ()),
    ({"MARVIN_TICKET": "t-1"}, "ticket", "t-1"),
    ({}, "subagent_log", None),
    ({"MARVIN_SUBAGENT_LOG": "/var/log/agent.jsonl"}, "subagent_log", Path("/var/log/agent.jsonl")),
    ({}, "color", True),
    ({"NO_COLOR": "1"}, "color", False),
    ({"HTTP_PROXY": "http://p:1"}, "http_proxy", "http://p:1"),
    ({"http_proxy": "http://p:2"}, "http_proxy", "http://p:2"),
    ({"HTTPS_PROXY": "http://p:3"}, "https_proxy", "http://p:3"),
    ({"no_proxy": "localhost"}, "no_proxy", "localhost"),
    ({"SSL_CERT_FILE": "/ca.pem"}, "ca_file", "/ca.pem"),
]


@pytest.mark.parametrize(("env", "field", "value"), VARIABLES)
def test_variables(desk: Desk, env: dict[str, str], field: str, value: Any) -> None:
    assert getattr(desk.config(**env), field) == value


def test_relative_files_count_from_the_current_folder(desk: Desk) -> None:
    config = desk.config("--prompt-file", "task.txt", MARVIN_SUBAGENT_LOG="log.jsonl")
    assert config.prompt_file == desk.cwd / "task.txt"
    assert config.subagent_log == desk.cwd / "log.jsonl"


EVERYTHING = """
provider: mine
model: m1
models: {high: big}
thinking: low
tier_thinking: {low: medium}
cache: 1h
providers:
  mine:
    wire: chat-completions
    base_url: https://models.example/v1
    auth_url: https://login.example
    free: true
    key: MINE_KEY
    models: [m1, m2]
    context_window: 1000
    windows: {m2: 64000}
    max_tools: 64
    headers: {X-Team: blue, X-Number: 7}
fallback: [groq, mine/m2]
tools: coding
ui: plain
theme: light
screen_reader: on
packs:
  off: [loud]
  prefer: [one, two]
  garden: {litres: 7, pump: {hours: [6, 18]}, when: 2026-01-02}
permission_mode: edit
permissions:
  allow: ["read_file"]
  ask: ["run_command(git push *)"]
  deny: ["run_command(rm *)", "write_file(secrets/**)"]
labels: {web: [run], secret: [], unattended: true}
hooks: {before_tool: [./check, {command: lint, tools: [write_*], sandbox: true}], turn.end: [ring]}
mcp_servers:
  issues: {command: npx, args: [-y, 7], env: {A: 1}, cwd: sub, read_only: [get_*], sandbox: off, off: true}
  docs: {url: https://mcp.example/mcp, headers: {X-Team: blue}, sampling: ask}
  login: {url: https://mcp.example/in, client_id: marvin, client_secret: "${SECRET}", login_port: 8123}
child_env: [AWS_PROFILE, 5]
sandbox: required
tool_search: on
transport: stock
ca_file: /etc/ca.pem
prices:
  m1: {input: 1, output: 2.5, cache_read: 0.1, cache_write: 3}
seed: off
telemetry: {enabled: on, endpoint: "http://collector.example:4318"}
instructions: |
  Be brief.
allow_addresses: [intranet.example, 10.1.0.0/16]
network: {hosts: [example.org, "*.example.com:443"]}
timeouts:
  tool: 5
  retry_backoff: [0.5, 1]
limits: {answer: 1000, download: 5, parallel_calls: 3}
"""


def test_every_key_of_config_yaml_has_its_effect(desk: Desk) -> None:
    desk.yaml(EVERYTHING)
    config = desk.config()
    assert [hook.event for hook in config.shell_hooks] == ["before_tool", "before_tool", "turn_end"]
    assert (config.labels.web, config.labels.secret, config.labels.unattended) == (("run",), (), True)
    assert config.shell_hooks[1].tools == ("write_*",)
    garden = {"litres": 7, "pump": {"hours": [6, 18]}, "when": "2026-01-02"}
    assert config.pack_sections == {"garden": garden}, "deep, and as JSON knows it"
    assert (config.provider, config.provider_origin) == ("mine", "config.yaml")
    assert (config.model, config.model_origin) == ("m1", "config.yaml")
    assert config.tiers == TIER_MODELS | {"opus": "big", "plan": "big"}
    assert (config.thinking, config.tier_thinking, config.cache) == ("low", {"codex": "medium"}, "1h")
    assert config.fallback == ("groq", "mine/m2")
    assert config.endpoints["mine"].as_dict() == {
        "wire": "chat-completions",
        "base_url": "https://models.example/v1",
        "key": "MINE_KEY",
        "models": ("m1", "m2"),
        "context_window": 1000,
        "windows": {"m2": 64000},
        "auth_url": "https://login.example",
        "free": True,
        "max_tools": 64,
        "headers": {"X-Team": "blue", "X-Number": "7"},
    }
    assert (config.tools, config.ui, config.transport, config.ca_file) == ("coding", "plain", "stock", "/etc/ca.pem")
    assert config.permissions.as_dict() == {
        "allow": ("read_file",),
        "ask": ("run_command(git push *)",),
        "deny": ("run_command(rm *)", "write_file(secrets/**)"),
    }
    assert config.child_env == {"AWS_PROFILE", "5"}
    assert config.sandbox == "required"
    assert config.prices["m1"].as_dict() == {"input": 1.0, "output": 2.5, "cache_read": 0.1, "cache_write": 3.0}
    assert config.instructions == "Be brief.\n"
    assert not config.seed
    assert config.telemetry == Telemetry(enabled=True, endpoint="http://collector.example:4318")
    assert config.timeouts == Timeouts(tool=5.0, retry_backoff=(0.5, 1.0))
    assert config.limits == Limits(answer=1000, download=5, parallel_calls=3)
    assert config.allow_addresses == ("intranet.example", "10.1.0.0/16")
    assert config.network == NetworkPolicy(kind="hosts", hosts=("example.org", "*.example.com:443"))
    assert (config.packs_off, config.packs_prefer) == (frozenset({"loud"}), ("one", "two"))


def test_the_permission_mode_comes_from_a_flag_a_variable_or_the_file(desk: Desk) -> None:
    desk.yaml("permission_mode: edit\n")
    assert desk.config().permission_mode == "edit"
    assert desk.config(MARVIN_PERMISSION_MODE="auto").permission_mode == "auto"
    assert desk.config("--permission-mode", "ask", MARVIN_PERMISSION_MODE="auto").permission_mode == "ask"


def test_a_mode_that_there_is_not_ends_the_start(desk: Desk) -> None:
    with pytest.raises(ConfigError, match=r"MARVIN_PERMISSION_MODE is 'redonly'. Did you mean 'readonly'"):
        desk.config(MARVIN_PERMISSION_MODE="redonly")
    desk.yaml("permission_mode: none\n")
    with pytest.raises(ConfigError, match=r'line 1: permission_mode: must be one of "ask", .*; found "none"'):
        desk.config()


def test_the_example_above_names_every_key() -> None:
    top = {line.partition(":")[0] for line in EVERYTHING.splitlines() if line[:1].strip()}
    assert top == set(FileSettings._defaults)


# Which one counts.


def test_a_flag_beats_the_environment_and_that_beats_the_file(desk: Desk) -> None:
    desk.yaml("provider: from-file\nmodel: from-file\nmodels: {high: f, low: f}\ntools: from-file\n")
    variables = {"LLM_PROVIDER": "from-env", "MARVIN_MODEL": "from-env"}

    def chosen(config: Config) -> set[str]:
        assert config.provider == config.model
        return {config.provider}

    assert chosen(desk.config("--provider", "from-flag", "--model", "from-flag", **variables)) == {"from-flag"}
    assert chosen(desk.config(**variables)) == {"from-env"}
    assert chosen(desk.config()) == {"from-file"}
    assert chosen(desk.config(LLM_PROVIDER="", MARVIN_MODEL="")) == {"from-file"}
    assert desk.config("--tools", "from-flag").tools == "from-flag"
    variables = {"MARVIN_CODE_MODEL_HIGH": "v", "MARVIN_CODE_MODEL_TEST_WRITER": "v"}
    tiers = desk.config("--model", "low=flag", **variables).tiers
    assert tiers == TIER_MODELS | {"opus": "f", "plan": "f", "codex": "flag", "test_writer": "v"}


def test_the_file_beats_the_variable_for_certificates_only(desk: Desk) -> None:
    desk.yaml("ca_file: /file.pem\n")
    assert desk.config(SSL_CERT_FILE="/variable.pem").ca_file == "/file.pem"


# Folders.


def folders(config: Config) -> tuple[Path, Path, Path]:
    return config.config_folder, config.data_folder, config.cache_folder


def test_folders_by_default(desk: Desk) -> None:
    home = desk.home
    assert folders(desk.config()) == (
        home / ".config/marvin",
        home / ".local/share/marvin",
        home / ".cache/marvin",
    )


def test_folders_by_xdg(desk: Desk, tmp_path: Path) -> None:
    env = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CONFIG", "DATA", "CACHE")}
    assert folders(desk.config(**env)) == tuple(tmp_path / kind / "marvin" for kind in ("CONFIG", "DATA", "CACHE"))


def test_a_relative_xdg_folder_is_ignored(desk: Desk) -> None:
    env = {f"XDG_{kind}_HOME": "here" for kind in ("CONFIG", "DATA", "CACHE")}
    assert folders(desk.config(**env)) == folders(desk.config())


def test_marvin_home_holds_everything(desk: Desk, tmp_path: Path) -> None:
    given = {"MARVIN_HOME": str(tmp_path / "m"), "XDG_DATA_HOME": str(tmp_path / "x")}
    assert folders(desk.config(**given)) == (tmp_path / "m", tmp_path / "m/data", tmp_path / "m/cache")
    assert desk.config(MARVIN_HOME="rel").config_folder == desk.cwd / "rel"


def test_the_older_folder_is_used_in_place(desk: Desk) -> None:
    older = desk.home / ".config" / "local-finder"
    older.mkdir(parents=True)
    (older / "config.yaml").write_text("provider: groq\n")
    desk.yaml("provider: gemini\n")
    config = desk.config()
    assert (config.config_folder, config.provider) == (older, "groq")
    assert desk.config(MARVIN_HOME=str(desk.home / "m")).provider == ""


def test_loading_makes_no_folder_but_the_cache(desk: Desk) -> None:
    desk.config()
    assert list(desk.home.iterdir()) == []


# The working directory.


def test_the_working_directory_is_the_current_folder_by_default(desk: Desk) -> None:
    config = desk.config()
    assert (config.working_dir, config.rooted, config.in_home) == (desk.cwd.resolve(), False, False)


@pytest.mark.parametrize("given", ["sub", "./sub/../sub", "{cwd}/sub", "~/../project/sub", "link"])
def test_a_working_directory_is_made_absolute(desk: Desk, given: str) -> None:
    (desk.cwd / "sub").mkdir()
    (desk.cwd / "link").symlink_to("sub")
    config = desk.config("--working-dir", given.format(cwd=desk.cwd))
    assert (config.working_dir, config.rooted) == ((desk.cwd / "sub").resolve(), True)


def test_the_home_folder_is_told_apart_until_it_is_set_as_root(desk: Desk) -> None:
    env = {"HOME": str(desk.home)}
    assert load([], env, cwd=desk.home)[0].in_home
    assert not load(["--working-dir", "."], env, cwd=desk.home)[0].in_home
    assert desk.config("--working-dir", "~").working_dir == desk.home.resolve()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("missing", "there is no such folder. Create it, or name another one."),
        ("file", "is a file. Give the folder that contains it."),
        ("file/below", "Not a directory"),
        ("~nobody-of-that-name/x", "there is no such folder"),
        ("dangling", "there is no such folder"),
        ("circle", "symbolic links"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_wrong_working_directory_is_named_with_what_to_do(desk: Desk, given: str, said: str) -> None:
    (desk.cwd / "file").touch()
    (desk.cwd / "dangling").symlink_to("nowhere")
    (desk.cwd / "circle").symlink_to("circle")
    with pytest.raises(UsageError) as caught:
        desk.config("--working-dir", given)
    assert str(caught.value).startswith(f"--working-dir {given}")
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("given", ["closed", "closed/below"])
def test_an_unreadable_working_directory_is_refused(given: str) -> None:
    with unprivileged() as folder:
        (folder / "closed").mkdir(mode=0o000)
        with pytest.raises(UsageError, match=r"cannot be read|Permission denied"):
            Desk(folder).config("--working-dir", f"../{given}")


def test_a_current_folder_that_is_gone_is_an_error_with_advice(desk: Desk) -> None:
    """In a child, as a process has one current folder."""
    script = (
        "import os\nfrom marvin_core.config.load import load\nfrom marvin_core.api.errors import ConfigError\n"
        "os.rmdir(os.getcwd())\n"
        "try: load([], {'HOME': '/'})\nexcept ConfigError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=desk.cwd, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.stdout.startswith("The current folder cannot be used: No such file or directory."), done.stderr


# Mistakes.


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--modle", "x"], "There is no flag '--modle'. Did you mean '--model'?"),
        (["--prompt"], "--prompt: expected one argument"),
        (["--output-format", "xml"], "invalid choice: 'xml'"),
        (["--on-ask", "maybe"], "'maybe' is not a valid answer. Available: allow, deny, allow-all"),
        (["--on-ask", "run_command=denny"], "Did you mean 'deny'"),
        (["--on-ask", "=deny"], "'deny' is not a valid answer"),
        (["--permission-mode", "edti"], "Did you mean 'edit'"),
        (["--mod", "x"], "There is no flag '--mod'"),
        (["--model", "high="], "write MODEL, or TIER=MODEL"),
        (["--model", "=big"], "write MODEL, or TIER=MODEL"),
        (["--prompt", "a", "b"], "The prompt was given twice, with"),
        (["--prompt-file", "a", "b"], "The prompt was given twice, with --prompt-file and as an argument"),
        (["--working-dir", "", "a"], "--working-dir is empty"),
    ],
)
def test_wrong_flags(desk: Desk, argv: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        desk.config(*argv)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


def test_depth_is_bounded(desk: Desk) -> None:
    """I7: an agent that would be number 6 does not start."""
    for deep in ("6", "999"):
        with pytest.raises(ConfigError, match=f"levels deep; this one would be at level {deep}. Do the work in"):
            desk.config(MARVIN_DEPTH=deep)
    for wrong in ("five", "1.5", "0x2"):
        with pytest.raises(ConfigError, match="it must be a whole number"):
            desk.config(MARVIN_DEPTH=wrong)


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        (
            "providers: {p: {key: sk-0123456789abcdef}}",
            "line 1: providers.p.key: this must be the name of the variable that holds",
        ),
        ("providers: {p: {key: gsk_0123456789abcdef}}", "does not look like a variable name"),
        ("timeouts: {tool: -1}", "line 1: timeouts.tool: must be a number of at least 0; found -1."),
        ("timeouts: {tool: .inf}", "timeouts.tool: must be a number"),
        ("limits: {answer: 0}", "limits.answer: must be an integer of at least 1; found 0."),
        ("allow_addresses: ['127.0.0.1:8080']", "line 1: allow_addresses[0]: '127.0.0.1:8080' is not a host"),
        ("allow_addresses: ['http://intranet.example']", "without scheme, port and path"),
        ("allow_addresses: [10.1.0.0/99]", "allow_addresses[0]: '10.1.0.0/99' is not a host"),
        ("network: some", 'line 1: network: must be none, loopback or all; found "some"'),
        ("network: example.org", "To allow single hosts, write `hosts: [example.org]` below it."),
        ("network: {hosts: ['https://example.org']}", "'https://example.org'"),
        ("network: {hosts: example.org}", "network.hosts: must be a list"),
        ("network: {host: [example.org]}", "unknown key 'network.host'"),
        ("network: [example.org]", "network: must be text or a mapping"),
        ("limits: {parallel_calls: 0}", "limits.parallel_calls: must be an integer of at least 1; found 0."),
        ("timeouts: {tool: .nan}", "timeouts.tool: must be a number of at least 0; found .nan."),
        (
            "timeouts: {retry_backoff: [1, soon]}",
            'line 1: timeouts.retry_backoff[1]: must be a number of at least 0; found "soon".',
        ),
    ],
)
def test_wrong_values_in_config_yaml(desk: Desk, yaml: str, said: str) -> None:
    desk.yaml(f"{yaml}\n")
    with pytest.raises(ConfigError) as caught:
        desk.config()
    assert said in str(caught.value)
    assert "0123456789abcdef" not in str(caught.value)


# Secrets, and what children get.


def test_config_holds_no_secret(desk: Desk) -> None:
    """I24: the value that packs see has no place for one."""
    names = [*key_variables(), "MINE_KEY"]
    desk.yaml("providers: {mine: {base_url: 'https://x.example', key: MINE_KEY}}\n")
    config, secrets = desk.both(**{name: f"{KEY}-{name}" for name in names})
    assert KEY not in repr(config)
    secrets.declare(["MINE_KEY"])
    assert {secrets.get(name).reveal() for name in names} == {f"{KEY}-{name}" for name in names}


def test_a_secret_does_not_show_itself(desk: Desk) -> None:
    secret = desk.secrets(GROQ_API_KEY=KEY).get("GROQ_API_KEY")
    assert KEY not in f"{secret} {secret!r} {[secret]}"
    assert bool(secret)
    assert not desk.secrets().get("GROQ_API_KEY")


def test_a_key_file_stands_in_for_the_variable(desk: Desk) -> None:
    file = desk.home / ".ssh" / "GROQ_API_KEY"
    file.parent.mkdir()
    file.write_text(f"  {KEY}\n")
    secrets = desk.secrets()
    assert secrets.get("GROQ_API_KEY").reveal() == ""
    assert secrets.get("GROQ_API_KEY", ".ssh/GROQ_API_KEY").reveal() == KEY
    assert secrets.known() == (KEY,), "it is redacted from then on"
    assert KEY not in secrets.child_environment().values()
    other = desk.secrets(GROQ_API_KEY="from the variable")
    assert other.get("GROQ_API_KEY", ".ssh/GROQ_API_KEY").reveal() == "from the variable"


@pytest.mark.parametrize("spoil", [lambda f: f.write_bytes(b"\xff\xfe"), lambda f: f.mkdir(), lambda f: f.touch()])
def test_a_key_file_that_cannot_be_read_counts_as_none(desk: Desk, spoil: Callable[[Path], object]) -> None:
    spoil(desk.home / "key")
    assert not desk.secrets().get("GROQ_API_KEY", "key")


def test_what_is_redacted(desk: Desk) -> None:
    """Longest first, so that a secret within another leaves no rest; short values would garble everything."""
    secrets = desk.secrets(GROQ_API_KEY="long-enough", OPENAI_API_KEY=" long-enough-and-more ", GH_TOKEN="seven77")
    assert secrets.known() == ("long-enough-and-more", "long-enough")
    assert "declared-later" not in secrets.known()
    other = desk.secrets(ACME_KEY="declared-later")
    assert other.known() == ()
    other.declare(["ACME_KEY"])
    assert other.known() == ("declared-later",)
    other.learn(Secret("a-token-of-a-login"))
    assert other.known() == ("a-token-of-a-login", "declared-later")


@pytest.mark.parametrize(
    "value", ['ab/cd+ef"gh=12', "a word or two", "schlüssel-1", "C:\\keys\\one", "odd-\udcff-byte"]
)
def test_secrets_are_redacted_as_addresses_and_json_write_them(desk: Desk, value: str) -> None:
    redactor = Redactor(desk.secrets(GROQ_API_KEY=value).known)
    sent = value.encode("utf-8", "surrogateescape")
    written = [
        value,
        json.dumps({"key": value}),
        json.dumps([value], ensure_ascii=False),
        quote(sent),
        quote_plus(sent),
    ]
    for text in [*written, f"https://example.org/?{urlencode({'key': sent})}"]:
        assert "[redacted]" in redactor.text(text), text
    assert redactor.value({value: [value]}) == {"[redacted]": ["[redacted]"]}


def test_children_get_no_secret_under_any_name(desk: Desk) -> None:
    """I24: the variable itself is dropped, and every other one with the same value."""
    env = {"GROQ_API_KEY": KEY, "MY_COPY": KEY, "ACME_KEY": "acme-0123456789", "PATH": "/bin", "SHORT": "x"}
    secrets = desk.secrets(**env, GH_TOKEN="x")
    secrets.declare(["ACME_KEY"])
    assert secrets.child_environment() == {"HOME": str(desk.home), "PATH": "/bin", "SHORT": "x"}


def test_child_env_passes_secrets_by_name(desk: Desk) -> None:
    desk.yaml("child_env: [GH_TOKEN]\n")
    given = desk.secrets(GH_TOKEN=KEY, GROQ_API_KEY=f"{KEY}2").child_environment()
    assert given["GH_TOKEN"] == KEY
    assert "GROQ_API_KEY" not in given


def test_children_get_nothing_that_ties_git_to_another_repository(desk: Desk) -> None:
    """I8: GIT_DIR and its kin never reach a child, not even by child_env."""
    desk.yaml("child_env: [GIT_DIR]\n")
    given = desk.secrets(**dict.fromkeys(GIT_LOCAL_VARIABLES, "/elsewhere"), GIT_AUTHOR_NAME="Ada").child_environment()
    assert given == {"HOME": str(desk.home), "GIT_AUTHOR_NAME": "Ada"}


def test_the_variables_of_git_are_those_that_git_itself_names() -> None:
    """I8: a newer git that names another one turns this red."""
    named = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    # Gone from git 2.42 on, still meant by older ones.
    assert set(named.stdout.split()) | {"GIT_INTERNAL_SUPER_PREFIX"} == GIT_LOCAL_VARIABLES


def test_a_real_child_of_git_sees_its_own_repository(desk: Desk) -> None:
    """I8: with GIT_DIR set by a hook of another repository, git in a child still finds the folder's own."""
    subprocess.run(["git", "init", "-q", str(desk.cwd)], check=True)
    env = desk.secrets(GIT_DIR=str(desk.home), PATH=os.environ["PATH"]).child_environment()
    done = subprocess.run(
        ["git", "rev-parse", "--show-toplevel"], cwd=desk.cwd, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(desk.cwd.resolve())


# The table of variables.


def test_the_table_of_variables_lists_those_that_are_read() -> None:
    """I21: the reference page is made from it."""
    read = {
        node.value
        for module in (config_module, folders_module, tiers_module)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.startswith(("MARVIN_", "XDG_")) and node.value.replace("_", "").isupper()
    }
    assert read == {name for name in ENVIRONMENT if name.startswith(("MARVIN_", "XDG_"))}
    assert all(text.endswith(".") for text in ENVIRONMENT.values())


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan", "-1"])
@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write"])
def test_a_price_that_is_no_amount_is_refused(desk: Desk, name: str, value: str) -> None:
    desk.yaml(f"prices: {{m: {{{name}: {value}}}}}\n")
    with pytest.raises(ConfigError, match=rf"line 1: prices\.m\.{name}: must be a number of at least 0; found"):
        desk.config()


@pytest.mark.parametrize(
    "flags",
    [
        ["--from", "2a"],
        ["--until", "3"],
        ["--upstream", "up"],
        ["--max-time", "5"],
        ["--yes"],
        ["--from", ""],
        ["--strict"],
        ["--github"],
    ],
)
def test_what_is_for_the_pipeline_needs_it(tmp_path: Path, flags: list[str]) -> None:
    with pytest.raises(UsageError, match="Add --design-first"):
        load(flags, {"HOME": str(tmp_path)}, cwd=tmp_path)


@pytest.mark.parametrize(("given", "seconds"), [("90", 90.0), ("1.5m", 90.0), ("8h", 28_800.0), ("20s", 20.0)])
def test_the_time_of_the_pipeline(tmp_path: Path, given: str, seconds: float) -> None:
    config, _ = load(["--design-first", "--max-time", given], {"HOME": str(tmp_path)}, cwd=tmp_path)
    assert config.max_time == seconds


@pytest.mark.parametrize("given", ["", "h", "0", "-5", "nan", "inf", "1e400", "5d", "five"])
def test_what_is_no_time_is_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        load(["--design-first", f"--max-time={given}"], {"HOME": str(tmp_path)}, cwd=tmp_path)


@pytest.mark.parametrize("given", ["", "a b", "a/b", "ä", "x" * 65])
def test_what_can_be_no_topic_is_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(UsageError, match="is not a valid topic"):
        load([f"--ntfy={given}"], {"HOME": str(tmp_path)}, cwd=tmp_path)
