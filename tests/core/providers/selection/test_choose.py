"""Which model service answers, which model, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from marvin_core.api.errors import ConfigError, MarvinError, UsageError
from marvin_core.api.providers import Endpoint, ProviderSpec
from marvin_core.builtin import marvin_register_providers
from marvin_core.config.load import load
from marvin_core.providers.selection.catalog import Catalog
from marvin_core.providers.selection.choose import Choice, choose

KEY = "sk-0123456789abcdef"
SPECS = tuple(marvin_register_providers())


class Desk:
    """A home folder with a config.yaml, in which a choice is made."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / ".config/marvin").mkdir(parents=True)

    def choice(self, *argv: str, yaml: str = "", **env: str) -> Choice:
        (self.home / ".config/marvin/config.yaml").write_text(yaml)
        config, secrets = load(argv, {"HOME": str(self.home), **env}, cwd=self.home)
        return choose(config, Catalog(config, secrets, SPECS))

    def endpoint(self, *argv: str, yaml: str = "", **env: str) -> Endpoint:
        chosen = self.choice(*argv, yaml=yaml, **env)
        assert chosen.endpoint is not None, chosen.how_to
        return chosen.endpoint


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


MINE = """
providers:
  mine:
    base_url: https://models.example/v1
    key: MINE_KEY
    models: [m1, m2]
    context_window: 50000
    max_tools: 12
    headers: {X-Team: blue}
"""
LOCAL = "providers: {box: {base_url: 'http://127.0.0.1:9000/v1'}}\n"
ROWS: list[tuple[tuple[str, ...], str, Mapping[str, str], str, str]] = [
    (("--provider", "groq"), "provider: gemini", {"LLM_PROVIDER": "openai-compat"}, "groq", "--provider names it"),
    ((), "provider: gemini", {"LLM_PROVIDER": "groq"}, "groq", "LLM_PROVIDER names it"),
    ((), "provider: groq", {}, "groq", "config.yaml names it"),
    (("--model", "groq/llama"), "", {}, "groq", "--model groq/llama names it"),
    ((), "", {"MARVIN_MODEL": "groq/llama"}, "groq", "MARVIN_MODEL groq/llama names it"),
    (("--model", "no-provider/llama"), "", {}, "gemini", "GEMINI_API_KEY is set"),
    (("--model", "qwen/qwen3.8-27b"), "", {}, "groq", "it serves qwen/qwen3.8-27b"),
    (("--model", "qwen/qwen3-32b"), "", {}, "openai-compat", "it serves qwen/qwen3-32b"),
    ((), "", {}, "gemini", "GEMINI_API_KEY is set"),
]


@pytest.mark.parametrize(("argv", "yaml", "env", "name", "reason"), ROWS)
def test_which_provider_and_why(
    desk: Desk, argv: tuple[str, ...], yaml: str, env: Mapping[str, str], name: str, reason: str
) -> None:
    """All keys are set, so only what was asked for tells them apart."""
    keys = dict.fromkeys(("OPENAI_COMPAT_API_KEY", "GROQ_API_KEY", "GEMINI_API_KEY"), KEY)
    chosen = desk.choice(*argv, yaml=yaml, **keys, **env)
    assert chosen.endpoint is not None
    assert (chosen.endpoint.provider, chosen.reason) == (name, reason)


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({"GROQ_API_KEY": KEY}, "groq"),
        ({"GEMINI_API_KEY": KEY}, "gemini"),
        ({"GROQ_API_KEY": KEY, "GEMINI_API_KEY": KEY}, "gemini"),
        ({"GROQ_API_KEY": KEY, "GEMINI_API_KEY": "  "}, "groq"),
        ({"OPENAI_COMPAT_URL": "http://127.0.0.1:8080/v1"}, "openai-compat"),
        ({"OPENAI_COMPAT_URL": "https://host.example/v1", "GROQ_API_KEY": KEY}, "groq"),
        ({"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "GEMINI_API_KEY": KEY}, "anthropic"),
        ({"OPENAI_API_KEY": KEY, "GEMINI_API_KEY": KEY}, "openai"),
        ({"OLLAMA_URL": "http://box:11434"}, "ollama"),
    ],
)
def test_the_first_of_the_table_that_is_set_up(desk: Desk, env: Mapping[str, str], name: str) -> None:
    assert desk.endpoint(**env).provider == name


def test_a_key_file_counts_as_a_key(desk: Desk) -> None:
    (desk.home / ".ssh").mkdir()
    (desk.home / ".ssh" / "GROQ_API_KEY").write_text(f"{KEY}\n")
    endpoint = desk.endpoint()
    assert (endpoint.provider, endpoint.key.reveal()) == ("groq", KEY)


def test_none_is_configured(desk: Desk) -> None:
    chosen = desk.choice()
    assert chosen.endpoint is None
    for hint in ("OPENAI_COMPAT_API_KEY", "GEMINI_API_KEY", "~/.ssh/GROQ_API_KEY", "llama-server", "config.yaml"):
        assert hint in chosen.how_to


def test_a_provider_without_its_key_says_how_to_set_it(desk: Desk) -> None:
    chosen = desk.choice("--provider", "groq", GEMINI_API_KEY=KEY)
    assert chosen.endpoint is None
    assert chosen.how_to.startswith("The provider groq (--provider) needs a key. Groq: run `")
    named = desk.choice("--provider", "mine", yaml=MINE)
    assert named.how_to == "The provider mine (--provider) needs a key. Set MINE_KEY."


def test_the_key_goes_into_the_endpoint_and_is_not_shown(desk: Desk) -> None:
    """I24: what is passed on to a provider does not show it."""
    chosen = desk.choice(GROQ_API_KEY=KEY)
    assert chosen.endpoint is not None
    assert (chosen.endpoint.key.reveal(), chosen.endpoint.key_hint) == (KEY, "GROQ_API_KEY")
    assert KEY not in repr(chosen)


def test_an_endpoint_of_config_yaml(desk: Desk) -> None:
    endpoint = desk.endpoint("--provider", "mine", yaml=MINE, MINE_KEY=KEY)
    unshown = ("key", "timeouts", "limits", "environment", "learn", "look_up_window")
    shown = {name: value for name, value in endpoint.as_dict().items() if name not in unshown}
    assert shown == {
        "provider": "mine",
        "base_url": "https://models.example/v1",
        "model": "m1",
        "key_hint": "MINE_KEY",
        "context_window": 50000,
        "max_tools": 12,
        "max_output": None,
        "profile_folder": None,
        "headers": {"X-Team": "blue"},
        "pack": None,
        "cache": "",
    }
    assert desk.endpoint(yaml=MINE, MINE_KEY=KEY).provider == "mine", "its key is set"
    assert desk.endpoint("--model", "mine/m9", yaml=MINE, MINE_KEY=KEY).model == "m9"


def test_config_yaml_changes_a_built_in_provider(desk: Desk) -> None:
    yaml = "providers: {groq: {base_url: 'https://mirror.example/v1', models: [big]}}\nprovider: groq\n"
    endpoint = desk.endpoint(yaml=yaml, GROQ_API_KEY=KEY)
    assert (endpoint.base_url, endpoint.model, endpoint.max_tools) == ("https://mirror.example/v1", "big", 128)
    yaml = "providers: {openai-compat: {base_url: 'https://mirror.example/v1'}}\n"
    given = {"OPENAI_COMPAT_API_KEY": KEY, "OPENAI_COMPAT_URL": "https://variable.example/v1"}
    assert desk.endpoint(yaml=yaml, **given).base_url == "https://mirror.example/v1"
    assert desk.endpoint(**given).base_url == "https://variable.example/v1"


MODELS: list[tuple[tuple[str, ...], str, Mapping[str, str], str]] = [
    ((), "", {}, "openai/gpt-oss-120b"),
    ((), "model: from-config", {}, "from-config"),
    ((), "model: from-config", {"GROQ_MODEL": "from-variable"}, "from-variable"),
    ((), "model: from-config", {"GROQ_MODEL": "v", "MARVIN_MODEL": "from-marvin"}, "from-marvin"),
    (("--model", "from-flag"), "model: c", {"GROQ_MODEL": "v", "MARVIN_MODEL": "m"}, "from-flag"),
    (("--model", "groq/from-flag"), "", {}, "from-flag"),
    (("--model", "qwen/qwen3-32b"), "", {}, "qwen/qwen3-32b"),
    (("--model", "groq/qwen/qwen3-32b"), "", {}, "qwen/qwen3-32b"),
]


@pytest.mark.parametrize(("argv", "yaml", "env", "model"), MODELS)
def test_which_model(desk: Desk, argv: tuple[str, ...], yaml: str, env: Mapping[str, str], model: str) -> None:
    assert desk.endpoint("--provider", "groq", *argv, yaml=yaml, GROQ_API_KEY=KEY, **env).model == model


@pytest.mark.parametrize(
    ("argv", "env", "expected", "notice"),
    [
        (("--model", "high"), {"ANTHROPIC_API_KEY": KEY}, "anthropic/claude-opus-4-6", ""),
        (("--model", "low"), {"OPENAI_API_KEY": KEY}, "openai/gpt-5.3-codex", ""),
        (("--model", "low"), {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}, "openai/gpt-5.3-codex", ""),
        (("--model", "high", "--model", "high=claude-next"), {"ANTHROPIC_API_KEY": KEY}, "anthropic/claude-next", ""),
        (("--model", "high", "--model", "high=new"), {"GROQ_API_KEY": KEY}, "groq/new", ""),
        (("--model", "high"), {"GROQ_API_KEY": KEY}, "groq/openai/gpt-oss-120b", "claude-opus-4.6"),
        (
            ("--model", "high", "--provider", "groq"),
            {"GROQ_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY},
            "groq/openai/gpt-oss-120b",
            "groq does not serve claude-opus-4.6",
        ),
        ((), {"MARVIN_MODEL": "high", "ANTHROPIC_API_KEY": KEY}, "anthropic/claude-opus-4-6", ""),
    ],
)
def test_high_and_low_stand_for_the_models_of_tiers(
    desk: Desk, argv: tuple[str, ...], env: Mapping[str, str], expected: str, notice: str
) -> None:
    """Where nobody serves the default of a tier the provider's own default answers, and that is told."""
    chosen = desk.choice(*argv, **env)
    assert chosen.endpoint is not None
    assert f"{chosen.endpoint.provider}/{chosen.endpoint.model}" == expected
    assert notice in chosen.notice
    assert bool(notice) == bool(chosen.notice)


@pytest.mark.parametrize(
    ("argv", "yaml", "env", "kind", "said"),
    [
        (("--provider", "grok"), "", {}, UsageError, "'grok' (from --provider). Did you mean 'groq'?"),
        ((), "", {"LLM_PROVIDER": "gemeni"}, ConfigError, "(from LLM_PROVIDER). Did you mean 'gemini'?"),
        ((), "provider: zzz", {}, ConfigError, "(from config.yaml). Available: copilot, anthropic, "),
        ((), "providers: {x: {models: [a]}}", {}, ConfigError, "providers.x needs a base_url"),
        (
            (),
            "providers: {x: {base_url: 'http://h', wire: soap}}",
            {},
            ConfigError,
            "providers.x.wire is 'soap'. Available: chat-completions",
        ),
        ((), "", {"OPENAI_COMPAT_URL": "localhost:80"}, ConfigError, "it must begin with http:// or https://"),
    ],
)
def test_what_does_not_exist(
    desk: Desk, argv: tuple[str, ...], yaml: str, env: Mapping[str, str], kind: type[MarvinError], said: str
) -> None:
    with pytest.raises(kind) as caught:
        desk.choice(*argv, yaml=yaml, **env)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost/v1", True),
        ("http://LOCALHOST:1234", True),
        ("http://[::1]:8080/v1", True),
        ("http://127.0.0.2:80/v1", True),
        ("https://localhost:8443/v1", True),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://localhost.example.com/v1", False),
        ("http://127.0.0.1@example.com/v1", False),
        ("http://localhost:80@example.com/v1", False),
        ("http://192.168.0.5:8080/v1", False),
        ("https://host.example/localhost", False),
    ],
)
def test_only_this_machine_is_local(desk: Desk, url: str, local: bool) -> None:
    """What is local costs nothing and needs no key, so nothing else may pass for it."""
    assert desk.choice(OPENAI_COMPAT_URL=url).local is local


def test_a_local_server_needs_no_key(desk: Desk) -> None:
    for argv, yaml in ((("--provider", "llama-server"), ""), (("--provider", "box"), LOCAL)):
        chosen = desk.choice(*argv, yaml=yaml)
        assert chosen.endpoint is not None
        assert chosen.local
        assert not chosen.endpoint.key


def test_the_window_of_a_model_is_that_of_the_longest_beginning() -> None:
    spec = ProviderSpec(
        name="x", factory="a:b", base_url="http://h", default_model="m", windows={"": 1, "qwen": 2, "qwen/qwen3": 3}
    )
    assert [spec.window(model) for model in ("qwen/qwen3-32b", "qwen2", "llama")] == [3, 2, 1]
    assert spec.replace(windows={"qwen": 2}).window("llama") is None
    assert spec.replace(windows=None).window("llama") is None


def found_here(environment: Mapping[str, str]) -> str:
    """What a provider with a program of its own says where that is there."""
    return "its program is logged in"


def test_only_a_chat_without_a_key_looks_for_a_program_that_is_logged_in(desk: Desk) -> None:
    acme = ProviderSpec(
        name="acme",
        factory="a:b",
        base_url="",
        default_model="m",
        ready="tests.core.providers.selection.test_choose:found_here",
    )

    def chosen(*, chat: bool, **env: str) -> str:
        config, secrets = load((), {"HOME": str(desk.home), **env}, cwd=desk.home)
        choice = choose(config, Catalog(config, secrets, (acme, *SPECS)), (lambda: ()) if chat else None)
        return choice.endpoint.provider if choice.endpoint is not None else ""

    assert chosen(chat=True) == "acme"
    assert chosen(chat=False) == "", "a run without anybody there uses no login that nobody spoke of"
    assert chosen(chat=True, GROQ_API_KEY=KEY) == "groq"
