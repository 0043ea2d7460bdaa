"""What the name of a model means, and which models go on where one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from marvin_core.api.errors import ConfigError, UsageError
from marvin_core.app import App
from marvin_core.builtin import marvin_register_providers
from marvin_core.config.load import load
from marvin_core.providers.selection.catalog import Catalog
from marvin_core.providers.selection.model_names import find, named
from marvin_core.providers.selection.models import Models
from tests.support.prepared_index import give_index

KEY = "sk-0123456789abcdef"
ALL = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY"), KEY)


def catalog(home: Path, *argv: str, yaml: str = "", **env: str) -> Catalog:
    (home / "marvin").mkdir(parents=True, exist_ok=True)
    (home / "marvin/config.yaml").write_text(yaml)
    config, secrets = load(argv, {"HOME": str(home), "MARVIN_HOME": str(home / "marvin"), **env}, cwd=home)
    return Catalog(config, secrets, tuple(marvin_register_providers()))


@pytest.mark.parametrize(
    ("current", "name", "expected"),
    [
        ("groq", "openai/gpt-oss-120b", "groq/openai/gpt-oss-120b"),
        ("groq", "anthropic/claude-opus-4-6", "anthropic/claude-opus-4-6"),
        ("groq", "claude-opus-4.6", "anthropic/claude-opus-4-6"),
        ("groq", "CLAUDE-HAIKU-4.5", "anthropic/claude-haiku-4-5"),
        ("groq", "claude-next-9", "anthropic/claude-next-9"),
        ("anthropic", "gpt-5.1", "openai/gpt-5.1"),
        ("anthropic", "gemini", "gemini/gemini-3.8-flash"),
        ("anthropic", "gemini/", "gemini/gemini-3.8-flash"),
        ("gemini", "groq/anything-new", "groq/anything-new"),
        ("llama-server", "whatever-it-serves", "llama-server/whatever-it-serves"),
    ],
)
def test_a_name_finds_who_serves_it(tmp_path: Path, current: str, name: str, expected: str) -> None:
    known = catalog(tmp_path, **ALL)
    found = named(known, name, known.known[current])
    assert f"{found.spec.name}/{found.model}" == expected


def test_the_current_service_comes_first(tmp_path: Path) -> None:
    """OpenRouter serves models of others under their names; so does Groq."""
    known = catalog(tmp_path, OPENAI_COMPAT_API_KEY=KEY, GROQ_API_KEY=KEY)
    compat = known.known["openai-compat"]
    found = named(known, "anthropic/claude-opus-4.6", compat)
    assert (found.spec.name, found.model) == ("openai-compat", "anthropic/claude-opus-4.6")
    shared = find(known, "qwen/qwen3.8-27b", compat)
    assert shared is not None
    assert shared.spec.name == "openai-compat"
    other = find(known, "qwen/qwen3.8-27b", None)
    assert other is not None
    assert other.spec.name == "groq"
    gone = find(known, "qwen/qwen3-32b", None)
    assert gone is not None
    assert gone.spec.name == "openai-compat", "it has ended at Groq"


def test_a_name_that_nobody_serves_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    known = catalog(tmp_path, **ALL)
    with pytest.raises(UsageError) as caught:
        named(known, "opus-46", known.known["groq"])
    assert "anthropic/claude-opus-4-6" in str(caught.value)
    assert "PROVIDER/MODEL" in str(caught.value)


# --- the models of a run --------------------------------------------------------------------------------------------


def models(home: Path, *argv: str, yaml: str = "", **env: str) -> Models:
    (home / "marvin").mkdir(parents=True, exist_ok=True)
    (home / "marvin/config.yaml").write_text(yaml)
    given = {"HOME": str(home), "MARVIN_HOME": str(home / "marvin"), "MARVIN_PACKS": "core", **env}
    config, secrets = load(argv, given, cwd=home)
    return App(give_index(config), secrets, warn=pytest.fail).models


def fallbacks(of: Models) -> list[str]:
    first = of.first()
    assert first is not None
    failed = first.provider

    async def told() -> list[str]:
        return [f"{provider.name}/{provider.model}" async for provider in of.fallbacks(failed)]

    return asyncio.run(told())


@pytest.mark.parametrize(
    ("yaml", "env", "expected"),
    [
        ("", ALL, []),
        ("fallback: [groq]\n", ALL, ["groq/openai/gpt-oss-120b"]),
        (
            "fallback: [anthropic, gemini/gemini-3.5-flash-lite, groq]\n",
            ALL,
            ["gemini/gemini-3.5-flash-lite", "groq/openai/gpt-oss-120b"],
        ),
        ("fallback: [high, low]\n", ALL, ["openai/gpt-5.3-codex"]),
    ],
)
def test_what_goes_on_is_what_the_configuration_names(
    tmp_path: Path, yaml: str, env: Mapping[str, str], expected: list[str]
) -> None:
    """One that is not set up, and the failed one itself, are passed over."""
    assert fallbacks(models(tmp_path, yaml=yaml, **env)) == expected


@pytest.mark.slow
def test_what_cannot_be_used_is_passed_over_and_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "marvin").mkdir()
    (tmp_path / "marvin/config.yaml").write_text("fallback: [groq, openai]\n")
    given = {"HOME": str(tmp_path), "MARVIN_HOME": str(tmp_path / "marvin"), "MARVIN_PACKS": "core"}
    keys = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    of = App(*load([], {**given, **keys}, cwd=tmp_path), warn=told.append).models
    assert [fallbacks(of), fallbacks(of)] == [["openai/gpt-5.1"]] * 2
    (line,) = told
    assert line.startswith("groq in fallback: was skipped. ")
    assert "GROQ_API_KEY" in line


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gorq", "Did you mean 'groq'"),
        ("anthropic-claude", "anthropic/claude-"),
        ("nonsense", "Write PROVIDER or"),
        ("offline", "not a model"),
        ("offline/x", "not a model"),
    ],
)
def test_a_fallback_that_means_nothing_is_an_error(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=r"config\.yaml, line 1: fallback names") as caught:
        models(tmp_path, yaml=f"fallback: [groq, {name}]\n")
    assert name in str(caught.value)
    assert hint in str(caught.value)


@pytest.mark.parametrize("name", ["groq", "groq/anything", "high", "claude-opus-4.6", "gemini/", "qwen/qwen3-32b"])
def test_a_fallback_may_be_a_service_that_is_not_set_up(tmp_path: Path, name: str) -> None:
    models(tmp_path, yaml=f"fallback: [{name}]\n")


def test_a_local_model_goes_to_a_paid_one_only_if_the_configuration_says_so(tmp_path: Path) -> None:
    local = {"OPENAI_COMPAT_URL": "http://127.0.0.1:9/v1", "LLM_PROVIDER": "openai-compat", **ALL}
    assert fallbacks(models(tmp_path, **local)) == []
    assert fallbacks(models(tmp_path, yaml="fallback: [groq]\n", **local)) == ["groq/openai/gpt-oss-120b"]


def test_the_next_larger_model_of_the_same_service(tmp_path: Path) -> None:
    yaml = """
providers:
  mine:
    base_url: http://127.0.0.1:9/v1
    models: [small, large, medium]
    windows: {small: 8000, medium: 32000, large: 200000}
"""
    of = models(tmp_path, "--provider", "mine", yaml=yaml)
    first = of.first()
    assert first is not None
    assert (first.provider.model, first.provider.context_window) == ("small", 8_000)
    medium = of.larger(first.provider)
    assert medium is not None
    assert (medium.model, medium.context_window) == ("medium", 32_000)
    large = of.larger(medium)
    assert large is not None
    assert of.larger(large) is None


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (ALL, "anthropic/claude-opus-4-6"),
        ({**ALL, "MARVIN_CODE_MODEL_HIGH": "gpt-5.2"}, "openai/gpt-5.2"),
        ({"GROQ_API_KEY": KEY}, "groq/openai/gpt-oss-120b"),
    ],
)
def test_the_best_model(tmp_path: Path, env: Mapping[str, str], expected: str) -> None:
    of = models(tmp_path, "--model", "groq/openai/gpt-oss-120b", **env)
    first = of.first()
    assert first is not None
    best = of.pro(first.provider).provider
    assert f"{best.name}/{best.model}" == expected


@pytest.mark.parametrize(
    ("name", "env", "expected", "reason"),
    [
        ("high", ALL, "anthropic/claude-opus-4-6", "claude-opus-4.6"),
        ("low", ALL, "openai/gpt-5.3-codex", "gpt-5.3-codex"),
        ("high", {"GROQ_API_KEY": KEY}, "groq/openai/gpt-oss-120b", "no configured provider serves"),
        ("high", {"GROQ_API_KEY": KEY, "MARVIN_CODE_MODEL_HIGH": "qwen/qwen3-next"}, "groq/qwen/qwen3-next", "is set"),
    ],
)
def test_high_and_low_are_names_of_models(
    tmp_path: Path, name: str, env: Mapping[str, str], expected: str, reason: str
) -> None:
    of = models(tmp_path, "--model", "groq/openai/gpt-oss-120b", **env)
    first = of.first()
    assert first is not None
    serving = of.named(name, first.provider)
    assert f"{serving.provider.name}/{serving.provider.model}" == expected
    assert reason in serving.reason


@pytest.mark.parametrize(
    ("name", "env", "expected"),
    [
        ("", ALL, "groq/openai/gpt-oss-120b GROQ_API_KEY"),
        ("opus", ALL, "anthropic/claude-opus-4-6 ANTHROPIC_API_KEY"),
        ("high", ALL, "anthropic/claude-opus-4-6 ANTHROPIC_API_KEY"),
        ("codex", ALL, "openai/gpt-5.3-codex OPENAI_API_KEY"),
        ("codex", {"GROQ_API_KEY": KEY}, "groq/openai/gpt-oss-120b GROQ_API_KEY"),
        (
            "plan",
            {"GROQ_API_KEY": KEY, "MARVIN_CODE_MODEL_PLAN": "qwen/qwen3-next"},
            "groq/qwen/qwen3-next GROQ_API_KEY",
        ),
        ("openai/gpt-5.2", ALL, "openai/gpt-5.2 OPENAI_API_KEY"),
    ],
)
def test_the_model_of_an_agent_and_the_key_that_it_gets(
    tmp_path: Path, name: str, env: Mapping[str, str], expected: str
) -> None:
    """codex is the tier here, and not the service of this name."""
    of = models(tmp_path, "--model", "groq/openai/gpt-oss-120b", **env)
    first = of.first()
    assert first is not None
    found = of.for_agent(name, first.provider)
    assert f"{found.provider}/{found.model} {' '.join(found.variables)}" == expected


def test_the_model_of_an_agent_is_none_without_a_service_of_it(tmp_path: Path) -> None:
    of = models(tmp_path, "--model", "groq/openai/gpt-oss-120b", GROQ_API_KEY=KEY)
    first = of.first()
    assert first is not None
    for name in ("openai/gpt-5.2", "--help", "no/such"):
        with pytest.raises((UsageError, ConfigError)):
            of.for_agent(name, first.provider)
    offline = of.named("offline/offline", None).provider
    with pytest.raises(ConfigError):
        of.for_agent("", offline)


def test_a_tier_whose_model_the_user_named_is_an_error_where_nobody_serves_it(tmp_path: Path) -> None:
    of = models(tmp_path, "--model", "high=gpt-os-120b", GROQ_API_KEY=KEY)
    first = of.first()
    assert first is not None
    with pytest.raises(UsageError, match="openai/gpt-oss-120b"):
        of.named("high", first.provider)


def test_the_best_of_no_models_is_told_how_to_set_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="To set a provider"):
        models(tmp_path).pro(None)


def test_services_that_are_set_up_are_listed_first(tmp_path: Path) -> None:
    listed = models(tmp_path, GROQ_API_KEY=KEY).listed()
    assert (listed[0].provider, listed[0].reason) == ("groq", "GROQ_API_KEY is set")
    assert not any(entry.reason for entry in listed[1:])
    assert "offline" not in [entry.provider for entry in listed]
