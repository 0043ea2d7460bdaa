"""What is known of models: from config.yaml, from lists, from our tables, from names; and what lists change."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import ConfigError
from marvin_core.api.providers import ModelFacts, ServedModel
from marvin_core.app import App
from marvin_core.builtin import marvin_register_providers
from marvin_core.config.load import load
from marvin_core.providers.selection.catalog import Catalog
from marvin_core.providers.selection.choose import Choice, choose
from marvin_core.providers.selection.lifetimes import ENDS, end_of, ends_soon, has_ended, heir_of
from marvin_core.providers.selection.list_store import ListStore
from marvin_core.providers.selection.model_names import find
from marvin_core.providers.selection.models import Models
from marvin_core.providers.selection.service_lists import chat_models, is_listed, same_place
from marvin_core.testing.model_server import LoopbackServer
from marvin_core.util.threads import in_thread
from tests.support.examples import examples
from tests.support.listing_servers import StrictServer
from tests.support.prepared_index import give_index

KEY = "sk-0123456789abcdef"
PATIENT = "timeouts: {probe: 50, model_list: 50}\n"
OPENROUTER = "https://openrouter.ai/api/v1"
SPECS = tuple(marvin_register_providers())


def given_env(home: Path, env: Mapping[str, str], yaml: str = "") -> dict[str, str]:
    (home / "marvin").mkdir(parents=True, exist_ok=True)
    (home / "marvin/config.yaml").write_text(PATIENT + yaml)
    return {"HOME": str(home), "MARVIN_HOME": str(home / "marvin"), "MARVIN_PACKS": "core", **env}


def catalog(home: Path, *argv: str, yaml: str = "", **env: str) -> Catalog:
    return Catalog(*load(argv, given_env(home, env, yaml), cwd=home), SPECS)


def choice(home: Path, *argv: str, yaml: str = "", **env: str) -> Choice:
    config, secrets = load(argv, given_env(home, env, yaml), cwd=home)
    return choose(config, Catalog(config, secrets, SPECS))


def chosen(home: Path, *argv: str, yaml: str = "", **env: str) -> str:
    endpoint = choice(home, *argv, yaml=yaml, **env).endpoint
    assert endpoint is not None
    return f"{endpoint.provider}/{endpoint.model}"


def models(home: Path, *argv: str, yaml: str = "", **env: str) -> Models:
    config, secrets = load(argv, given_env(home, env, yaml), cwd=home)
    return App(give_index(config), secrets, warn=pytest.fail).models


def keep(known: Catalog, provider: str, *served: ServedModel) -> None:
    known.lists.keep(known.known[provider], served)


# --- a server with models of its own --------------------------------------------------------------------------------


def test_where_nobody_named_a_model_the_first_that_answers_is_taken(tmp_path: Path) -> None:
    with StrictServer(models=["nomic-embed-text", "fake-1", "fake-2"]) as server:
        assert chosen(tmp_path, OPENAI_COMPAT_URL=server.url) == "openai-compat/fake-1"
        assert chosen(tmp_path, OPENAI_COMPAT_URL=f"{server.url}/chat/completions/") == "openai-compat/fake-1"
        assert chosen(tmp_path, "--provider", "llama-server", LLAMA_SERVER_URL=server.url) == "llama-server/fake-1"
        yaml = f"provider: box\nproviders: {{box: {{base_url: '{server.url}'}}}}\n"
        assert chosen(tmp_path, yaml=yaml) == "box/fake-1"


def test_the_default_is_kept_where_the_server_lists_it(tmp_path: Path) -> None:
    with StrictServer(models=["fake-1", "qwen/qwen3-32b"]) as server:
        assert chosen(tmp_path, OPENAI_COMPAT_URL=server.url) == "openai-compat/qwen/qwen3-32b"


@pytest.mark.parametrize(
    ("argv", "env", "expected"),
    [
        ((), {"OPENAI_COMPAT_MODEL": "fake-2"}, "openai-compat/fake-2"),
        ((), {"MARVIN_MODEL": "openai-compat/new"}, "openai-compat/new"),
        (("--provider", "openai-compat", "--model", "fake-2"), {}, "openai-compat/fake-2"),
        (("--model", "openai-compat/fake-2"), {}, "openai-compat/fake-2"),
    ],
)
def test_a_model_that_was_named_is_not_asked_about(
    tmp_path: Path, argv: tuple[str, ...], env: Mapping[str, str], expected: str
) -> None:
    """So that no request waits for a list that changes nothing."""
    with StrictServer(models=["fake-1", "fake-2"]) as server:
        assert chosen(tmp_path, *argv, OPENAI_COMPAT_URL=server.url, **env) == expected
        assert server.requests == []


def test_a_service_with_a_known_default_is_not_asked(tmp_path: Path) -> None:
    with StrictServer(models=["other"]) as server:
        found = chosen(tmp_path, GROQ_API_KEY=KEY, GROQ_BASE_URL=server.url)
        assert (found, server.requests) == ("groq/openai/gpt-oss-120b", [])


def test_the_key_is_sent_along(tmp_path: Path) -> None:
    with StrictServer(models=["fake-1"], key=KEY) as server:
        given = {"OPENAI_COMPAT_URL": server.url}
        assert chosen(tmp_path, OPENAI_COMPAT_API_KEY=KEY, **given) == "openai-compat/fake-1"
        assert chosen(tmp_path, OPENAI_COMPAT_API_KEY="sk-other-key", **given) == "openai-compat/qwen/qwen3-32b"


def test_a_name_with_the_name_of_a_provider_in_it_is_told_by_the_list(tmp_path: Path) -> None:
    with StrictServer(models=["openai/gpt-oss-20b"]) as server:
        given = {"OPENAI_COMPAT_URL": server.url}
        assert chosen(tmp_path, "--model", "openai/gpt-oss-20b", **given) == "openai-compat/openai/gpt-oss-20b"
        missing = choice(tmp_path, "--model", "openai/gpt-5.1", **given)
        assert missing.endpoint is None
        assert "The provider openai" in missing.how_to
        assert "OPENAI_API_KEY" in missing.how_to
        of = models(tmp_path, **given)
        first = of.first()
        assert first is not None
        with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
            of.named("openai/gpt-5.1", first.provider)


def test_what_is_served_is_what_can_be_chosen(tmp_path: Path) -> None:
    with StrictServer(models=["fake-1", "fake-2"]) as server:
        of = models(tmp_path, OPENAI_COMPAT_URL=server.url)
        assert of.listed()[0].models == ("fake-1", "fake-2")
        first = of.first()
        assert first is not None
        assert of.named("fake-2", first.provider).provider.model == "fake-2"
        assert of.named("fake-2:latest".removesuffix(":latest"), None).provider.name == "openai-compat"


def test_the_list_of_a_server_on_this_machine_is_not_kept(tmp_path: Path) -> None:
    """The next start may find another model there."""
    with StrictServer(models=["fake-1"]) as server:
        assert chosen(tmp_path, OPENAI_COMPAT_URL=server.url) == "openai-compat/fake-1"
        server.models[:] = ["fake-9"]
        assert chosen(tmp_path, OPENAI_COMPAT_URL=server.url) == "openai-compat/fake-9"


def test_a_server_elsewhere_is_asked_once_and_then_known(tmp_path: Path) -> None:
    """127.1 is this machine by another name, which counts as any other host."""
    with StrictServer(models=["fake-1"]) as server:
        elsewhere = server.url.replace("127.0.0.1", "127.1")
        for _ in range(2):
            assert chosen(tmp_path, OPENAI_COMPAT_URL=elsewhere) == "openai-compat/fake-1"
        assert [request.path for request in server.requests] == ["/v1/models"]


# --- gateways -------------------------------------------------------------------------------------------------------


def test_a_bare_name_is_the_model_of_a_gateway_whose_last_part_it_is(tmp_path: Path) -> None:
    known = catalog(tmp_path, OPENROUTER_API_KEY=KEY)
    keep(known, "openai-compat", ServedModel(name="openai/gpt-6-luna"), ServedModel(name="anthropic/claude-opus-4.6"))
    assert chosen(tmp_path, "--model", "claude-opus-4-6", OPENROUTER_API_KEY=KEY) == (
        "openai-compat/anthropic/claude-opus-4.6"
    )
    given = ("--provider", "openai-compat", "--model", "GPT-6-Luna")
    assert chosen(tmp_path, *given, OPENROUTER_API_KEY=KEY) == "openai-compat/openai/gpt-6-luna"
    both = {"OPENROUTER_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
    assert chosen(tmp_path, "--model", "claude-opus-4-6", **both) == "anthropic/claude-opus-4-6"


def test_the_default_of_a_tier_is_looked_for_in_gateways_before_the_default_model_answers(tmp_path: Path) -> None:
    with StrictServer(models=["mistral/small", "anthropic/claude-opus-4.6"]) as server:
        yaml = f"provider: hub\nproviders: {{hub: {{base_url: '{server.url}'}}}}\n"
        found = choice(tmp_path, "--model", "high", yaml=yaml)
        assert found.endpoint is not None
        assert (found.endpoint.model, found.notice) == ("anthropic/claude-opus-4.6", "")
        low = choice(tmp_path, "--model", "low", yaml=yaml)
        assert low.endpoint is not None
        assert (low.endpoint.model, "gpt-5.3-codex" in low.notice) == ("mistral/small", True)


def test_the_key_of_openrouter_sets_it_up_and_goes_nowhere_else(tmp_path: Path) -> None:
    found = choice(tmp_path, OPENROUTER_API_KEY=KEY, OPENAI_COMPAT_MODEL="qwen/qwen3-32b")
    assert found.endpoint is not None
    assert (found.endpoint.base_url, found.endpoint.key.reveal()) == (OPENROUTER, KEY)
    assert (found.endpoint.key_hint, found.reason) == ("OPENROUTER_API_KEY", "OPENROUTER_API_KEY is set")
    for address in (
        "https://other.example/v1",
        "http://openrouter.ai/api/v1",
        "https://openrouter.ai@other.example/v1",
    ):
        given = {"OPENROUTER_API_KEY": KEY, "OPENAI_COMPAT_URL": address, "OPENAI_COMPAT_MODEL": "m"}
        elsewhere = choice(tmp_path, **given).endpoint
        assert elsewhere is not None
        assert not elsewhere.key, address
    yaml = "providers: {openai-compat: {base_url: 'https://mirror.example/v1', models: [m]}}\nprovider: openai-compat\n"
    assert choice(tmp_path, yaml=yaml, OPENROUTER_API_KEY=KEY).endpoint is None, "that one's own key is missing"
    own = choice(tmp_path, OPENROUTER_API_KEY=KEY, OPENAI_COMPAT_API_KEY="sk-own-0123456", OPENAI_COMPAT_MODEL="m")
    assert own.endpoint is not None
    assert own.endpoint.key.reveal() == "sk-own-0123456"


def test_the_key_of_openrouter_is_a_secret(tmp_path: Path) -> None:
    """I24"""
    config, secrets = load((), given_env(tmp_path, {"OPENROUTER_API_KEY": KEY}), cwd=tmp_path)
    Catalog(config, secrets, SPECS)
    assert KEY in secrets.known()
    assert KEY not in secrets.child_environment().values()


def test_no_service_elsewhere_is_asked_from_an_event_loop(tmp_path: Path) -> None:
    """It may take seconds in which the chat would stand still; a thread asks, or nobody does."""
    with StrictServer(models=["fake-1"]) as server:
        known = catalog(tmp_path, OPENAI_COMPAT_URL=server.url.replace("127.0.0.1", "127.1"))
        compat = known.known["openai-compat"]

        async def asked() -> list[str]:
            return [known.default_model(compat), await in_thread(lambda: known.default_model(compat))]

        assert asyncio.run(asked()) == ["qwen/qwen3-32b", "fake-1"]


@pytest.mark.parametrize(
    ("model", "names", "listed"),
    [
        ("a", ["b", "a"], True),
        ("llama3.2", ["llama3.2:latest"], True),
        ("claude-haiku-4-5", ["claude-haiku-4-5-20251001"], True),
        ("claude-haiku-4", ["claude-haiku-4-5-20251001"], False),
        ("a", [], False),
    ],
)
def test_a_list_has_a_model_by_one_of_its_names(model: str, names: list[str], listed: bool) -> None:
    assert is_listed(model, names) is listed


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (OPENROUTER, "https://openrouter.ai/v2/", True),
        (OPENROUTER, " HTTPS://OpenRouter.ai/api/v1", True),
        (OPENROUTER, "https://openrouter.ai:8443/api/v1", False),
        (OPENROUTER, "https://openrouter.ai.example/api/v1", False),
        (OPENROUTER, "https://[openrouter.ai/", False),
        ("", "", False),
    ],
)
def test_one_place(one: str, other: str, same: bool) -> None:
    assert same_place(one, other) is same


# --- facts ----------------------------------------------------------------------------------------------------------


def test_who_says_it_first(tmp_path: Path) -> None:
    """config.yaml, the service's list, our table, the name."""
    known = catalog(tmp_path, yaml="providers: {anthropic: {windows: {claude-opus: 7}}}\n", ANTHROPIC_API_KEY=KEY)
    anthropic, groq = known.known["anthropic"], known.known["groq"]
    listed = ModelFacts(window=300_000, longest=9_000)
    keep(
        known,
        "anthropic",
        ServedModel(name="claude-opus-4-6", facts=listed),
        ServedModel(name="claude-x", facts=listed),
    )
    keep(known, "groq", ServedModel(name="openai/gpt-oss-120b", facts=ModelFacts(window=9)))
    assert known.lists.facts(anthropic, "claude-opus-4-6").window == 7
    assert known.lists.facts(anthropic, "claude-opus-4-6").longest == 9_000
    assert known.lists.facts(anthropic, "claude-x").window == 300_000
    assert known.lists.facts(anthropic, "claude-sonnet-9").window == 1_000_000
    assert known.lists.facts(groq, "openai/gpt-oss-120b").window == 9
    assert known.lists.facts(groq, "openai/gpt-oss-20b").window == 131_072
    assert known.lists.facts(known.known["codex"], "gpt-6-sol").window == 272_000, "the service gives less"


@pytest.mark.parametrize(
    ("provider", "model", "window"),
    [
        ("openai", "gpt-6.1-sol", 1_050_000),
        ("openai", "gpt-8-sol", 1_050_000),
        ("anthropic", "claude-opus-5-5", 1_000_000),
        ("gemini", "models/gemini-3.8-flash", 1_048_576),
        ("openai-compat", "anthropic/claude-opus-5.5", 1_000_000),
        ("openai-compat", "x-ai/grok-4.7", 500_000),
        ("openai-compat", "nobody/knows", None),
        ("local", "gpt-5.gguf", None),
    ],
)
def test_the_window_of_an_endpoint(tmp_path: Path, provider: str, model: str, window: int | None) -> None:
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_COMPAT_API_KEY"), KEY)
    known = catalog(tmp_path, **keys)
    endpoint = known.endpoint(known.known[provider], model, "")
    assert endpoint.context_window == window
    assert not endpoint.model.startswith("models/")


def test_a_window_that_only_the_price_table_knows_is_looked_up_once(tmp_path: Path) -> None:
    given = {"OPENAI_COMPAT_API_KEY": KEY}
    known = catalog(tmp_path, **given)
    compat = known.known["openai-compat"]
    endpoint = known.endpoint(compat, "deepseek/deepseek-chat-v3-0324", "")
    assert endpoint.context_window is None
    assert endpoint.look_up_window is not None
    found = endpoint.look_up_window()
    assert found is not None
    assert found > 32_768
    again = catalog(tmp_path, **given)
    assert again.endpoint(again.known["openai-compat"], "deepseek/deepseek-chat-v3-0324", "").context_window == found


@pytest.mark.parametrize(
    ("address", "window"), [("https://models.example/v1", 1_000_000), ("http://127.0.0.1:9/v1", None)]
)
def test_a_window_that_nobody_knows_is_that_of_the_generation(tmp_path: Path, address: str, window: int | None) -> None:
    """Unless the server is on this machine: it gives what its memory allows."""
    known = catalog(tmp_path, OPENAI_COMPAT_URL=address)
    endpoint = known.endpoint(known.known["openai-compat"], "moonshotai/kimi-k9", "")
    assert endpoint.context_window is None
    assert endpoint.look_up_window is not None
    assert endpoint.look_up_window() == window


def test_the_larger_model_thinks_where_the_smaller_one_did(tmp_path: Path) -> None:
    of = models(tmp_path, OPENAI_API_KEY=KEY)
    first = of.first()
    assert first is not None
    larger = of.larger(first.provider)
    assert larger is not None
    assert (first.provider.model, larger.model, larger.context_window) == ("gpt-5.1", "gpt-6-luna", 1_050_000)


# --- gone models ----------------------------------------------------------------------------------------------------


def gone(home: Path, served: list[str], model: str = "", **env: str) -> list[str]:
    """The models that take the place of one another, one after the other."""
    of = models(home, **env)
    first = of.first()
    assert first is not None
    provider = first.provider
    taken: list[str] = []
    for _ in range(20):
        following = of.successor(provider, served)
        if following is None:
            return taken
        provider = following
        taken.append(following.model)
    raise AssertionError(f"it does not end: {taken}")


def test_a_model_never_takes_its_own_place(tmp_path: Path) -> None:
    """The service lists it, and refuses it all the same."""
    assert gone(tmp_path, ["qwen/qwen3-32b"], OPENROUTER_API_KEY=KEY) == []
    assert gone(tmp_path, ["gpt-5.1", "gpt-5.2"], OPENAI_API_KEY=KEY) == ["gpt-5.2"]
    both = gone(tmp_path / "b", ["openai/gpt-oss-120b", "openai/gpt-oss-20b"], GROQ_API_KEY=KEY)
    assert both == ["openai/gpt-oss-20b"]


@examples(15)
@given(st.lists(st.sampled_from(["gpt-5.1", "gpt-5.2", "gpt-5.3", "gpt-6-luna", "o3", "x"]), max_size=8))
def test_any_list_of_what_is_served_comes_to_an_end(
    tmp_path_factory: pytest.TempPathFactory, served: list[str]
) -> None:
    taken = gone(tmp_path_factory.mktemp("gone"), served, OPENAI_API_KEY=KEY)
    assert len(set(taken)) == len(taken)
    assert "gpt-5.1" not in taken
    assert "o3" not in taken or not has_ended(end_of("openai", "o3"))


def test_a_list_that_is_refused_as_a_whole_is_not_asked_to_its_end(tmp_path: Path) -> None:
    served = ["gpt-5.1", *(f"gpt-5.1-{number}" for number in range(50))]
    assert len(gone(tmp_path, served, OPENAI_API_KEY=KEY)) == 8


def test_what_takes_a_place_is_remembered_until_the_model_is_served_again(tmp_path: Path) -> None:
    given = {"GEMINI_API_KEY": KEY}
    assert gone(tmp_path, ["gemini-4-flash"], **given) == ["gemini-4-flash"]
    assert chosen(tmp_path, **given) == "gemini/gemini-4-flash"
    known = catalog(tmp_path, **given)
    keep(known, "gemini", ServedModel(name="gemini-4-flash"))
    assert chosen(tmp_path, **given) == "gemini/gemini-4-flash"
    keep(known, "gemini", ServedModel(name="gemini-3.8-flash"))
    assert chosen(tmp_path, **given) == "gemini/gemini-3.8-flash"


@pytest.mark.slow
def test_the_heir_that_a_service_names_comes_first(tmp_path: Path) -> None:
    yaml = "providers: {gemini: {models: [gemini-2.5-flash]}}\n"
    said: list[str] = []
    config, secrets = load((), given_env(tmp_path, {"GEMINI_API_KEY": KEY}, yaml), cwd=tmp_path)
    of = App(config, secrets, warn=said.append).models
    assert "the service recommends gemini-3.5-flash-lite instead" in said[0]
    first = of.first()
    assert first is not None
    following = of.successor(first.provider, ["gemini-2.5-flash-lite", "gemini-3.5-flash-lite"])
    assert following is not None
    assert following.model == "gemini-3.5-flash-lite"


# --- ends -----------------------------------------------------------------------------------------------------------


def day(ahead: int) -> str:
    return (datetime.now(UTC) + timedelta(days=ahead)).strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    ("ahead", "soon", "over"), [(-400, True, True), (-2, True, True), (30, True, False), (90, False, False)]
)
def test_when_an_end_is_near(ahead: int, soon: bool, over: bool) -> None:
    assert (ends_soon(day(ahead)), has_ended(day(ahead))) == (soon, over)
    assert not ends_soon("")


def test_every_end_is_a_day_and_every_heir_another_model() -> None:
    for provider, ends in ENDS.items():
        for model, (end, heir) in ends.items():
            assert datetime.strptime(end, "%Y-%m-%d").replace(tzinfo=UTC).strftime("%Y-%m-%d") == end
            assert heir != model
            assert not has_ended(end_of(provider, heir)), f"{heir} has ended as well"
    assert end_of("openai", "gpt-5-mini-2025-08-07") == end_of("openai", "gpt-5-mini") == "2026-12-11"
    assert (end_of("groq", "gpt-5-mini"), heir_of("nobody", "x")) == ("", "")


@pytest.mark.slow
def test_a_model_that_ends_soon_is_told_once(tmp_path: Path) -> None:
    known = catalog(tmp_path, OPENAI_API_KEY=KEY)
    soon = ServedModel(name="gpt-5.1", facts=ModelFacts(ends=day(20)))
    keep(known, "openai", soon, ServedModel(name="gpt-5.2", facts=ModelFacts(ends=day(90))))
    said: list[str] = []
    for _ in range(2):
        App(*load((), given_env(tmp_path, {"OPENAI_API_KEY": KEY}), cwd=tmp_path), warn=said.append)
    assert len(said) == 1
    assert f"gpt-5.1 of openai will be retired on {day(20)}" in said[0]
    assert "marvin models" in said[0]
    assert known.ending("openai", "gpt-5.2") == ""
    assert known.ending("openai", "gpt-4.1") != "", "our own table tells it"
    assert known.ending("openai", "gpt-4.1") == ""
    assert known.ending("nobody", "gpt-4.1") == ""


def test_no_default_ends_soon() -> None:
    """On the day on which the table was last looked through."""
    looked_through = "2026-11-22"
    for spec in SPECS:
        for model in (spec.default_model, *spec.models):
            end = end_of(spec.name, model)
            assert not end or end > looked_through, f"{model} of {spec.name}"


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_a_list_is_kept_with_its_facts(tmp_path: Path) -> None:
    facts = ModelFacts(window=5, longest=4, input=1.5, output=2.0, thinks=True, images=False, ends="2030-01-01")
    ListStore(tmp_path).keep("https://a.example", [ServedModel(name="a", facts=facts), ServedModel(name="b")])
    kept = ListStore(tmp_path).read("https://a.example")
    assert kept is not None
    assert kept.models == (ServedModel(name="a", facts=facts), ServedModel(name="b"))
    assert kept.is_fresh
    assert ListStore(tmp_path).read("https://b.example") is None
    ListStore(tmp_path).keep("https://a.example", [])
    assert ListStore(tmp_path).read("https://a.example") is not None, "an empty list is none"


DAMAGED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)


@examples(40)
@given(DAMAGED, DAMAGED)
def test_damaged_files_are_as_none(tmp_path_factory: pytest.TempPathFactory, models_of: Any, note: Any) -> None:
    folder = tmp_path_factory.mktemp("kept")
    store = ListStore(folder)
    store.keep("a", [ServedModel(name="m")])
    (path,) = folder.glob("*.json")
    path.write_text(json.dumps({"address": "a", "since": time.time(), "models": models_of}))
    for kind in ("successors", "windows", "told"):
        (folder / f"{kind}.json").write_text(json.dumps({"m a": note}))
        os.chmod(folder / f"{kind}.json", 0o600)
    again = ListStore(folder)
    kept = again.read("a")
    assert kept is None or all(isinstance(model.name, str) for model in kept.models)
    assert isinstance(again.successor("a", "m"), str)
    assert again.window_in_table("m a") is None or isinstance(again.window_in_table("m a"), int)
    again.forget_gone("a", "m")
    assert again.tell_once("something new")


def test_models_that_cannot_answer_are_passed_over() -> None:
    names = ["text-embedding-3", "whisper-1", "bge-m3", "chat", "gpt-tts-x", "qwen"]
    assert chat_models(ServedModel(name=name) for name in names) == ["chat", "qwen"]
    assert chat_models([ServedModel(name="embed")]) == ["embed"]


def test_an_old_list_is_asked_for_again_in_the_background(tmp_path: Path) -> None:
    with StrictServer(models=["fake-2"]) as server:
        elsewhere = server.url.replace("127.0.0.1", "127.1")
        given = {"OPENAI_COMPAT_URL": elsewhere}
        known = catalog(tmp_path, **given)
        compat = known.known["openai-compat"]
        keep(known, "openai-compat", ServedModel(name="fake-1"))
        known.lists.refresh(compat)
        assert server.requests == [], "it is fresh"
        (path,) = (tmp_path / "marvin/cache/models").glob("*.json")
        path.write_text(json.dumps({**json.loads(path.read_text()), "since": 1.0}))
        old = catalog(tmp_path, **given)
        assert old.default_model(compat) == "fake-1", "nothing waits"
        for _ in range(2):
            old.lists.refresh(compat)
        server.wait_for(1)
        deadline = time.monotonic() + 60
        while "fake-2" not in path.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(server.requests) == 1
    assert find(catalog(tmp_path, **given), "fake-2", None) is not None


def test_a_server_that_is_not_there_is_no_reason_to_wait(tmp_path: Path) -> None:
    with LoopbackServer() as closed:
        url = f"http://127.0.0.1:{closed.port}/v1"
    assert chosen(tmp_path, OPENAI_COMPAT_URL=url) == "openai-compat/qwen/qwen3-32b"
