"""Lists of models, in the words of the services that give them, and of nobody who means well."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.providers import ModelFacts, ServedModel
from marvin_core.providers.http.model_lists import MOST, google_name, has_meta, models_in

LISTS: dict[str, tuple[Any, ServedModel]] = {
    "openai": (
        {"object": "list", "data": [{"id": "gpt-4.1", "object": "model", "shutdown_date": "2027-01-14"}]},
        ServedModel(name="gpt-4.1", facts=ModelFacts(ends="2027-01-14")),
    ),
    "anthropic": (
        {
            "data": [
                {
                    "id": "claude-opus-5-5",
                    "type": "model",
                    "max_input_tokens": 1_000_000,
                    "max_tokens": 128_000,
                    "capabilities": {"thinking": {"supported": True}, "image_input": {"supported": True}},
                }
            ]
        },
        ServedModel(
            name="claude-opus-5-5", facts=ModelFacts(window=1_000_000, longest=128_000, thinks=True, images=True)
        ),
    ),
    "openrouter": (
        {
            "data": [
                {
                    "id": "qwen/qwen3-32b",
                    "name": "Qwen: Qwen3 32B",
                    "context_length": 40_960,
                    "top_provider": {"context_length": 40_960, "max_completion_tokens": 16_384},
                    "pricing": {
                        "prompt": "0.00000008",
                        "completion": "0.00000024",
                        "request": "0",
                        "input_cache_write": "1e-7",
                    },
                    "architecture": {"input_modalities": ["text"]},
                    "supported_parameters": ["tools", "reasoning"],
                    "expiration_date": None,
                }
            ]
        },
        ServedModel(
            name="qwen/qwen3-32b",
            facts=ModelFacts(
                window=40_960,
                longest=16_384,
                input=0.08,
                output=0.24,
                cache_write=0.1,
                request=0.0,
                thinks=True,
                images=False,
            ),
        ),
    ),
    "groq": (
        {
            "data": [
                {
                    "id": "openai/gpt-oss-120b",
                    "active": True,
                    "context_window": 131_072,
                    "max_completion_tokens": 65_536,
                }
            ]
        },
        ServedModel(name="openai/gpt-oss-120b", facts=ModelFacts(window=131_072, longest=65_536)),
    ),
    "gemini": (
        {"object": "list", "data": [{"id": "models/gemini-3.8-flash", "owned_by": "google"}]},
        ServedModel(name="gemini-3.8-flash"),
    ),
    "gemini's own": (
        {
            "models": [
                {"name": "models/gemini-4", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536, "thinking": True}
            ]
        },
        ServedModel(name="gemini-4", facts=ModelFacts(window=1_048_576, longest=65_536, thinks=True)),
    ),
    "vllm": (
        {"data": [{"id": "models/llama-3-8b", "max_model_len": 8_192}]},
        ServedModel(name="models/llama-3-8b", facts=ModelFacts(window=8_192)),
    ),
    "llama.cpp": (
        {"data": [{"id": "SmolLM2.gguf", "meta": {"n_ctx": 4_096, "n_ctx_train": 8_192}}]},
        ServedModel(name="SmolLM2.gguf", facts=ModelFacts(window=4_096)),
    ),
    "ollama": (
        {"models": [{"name": "qwen3-coder:30b", "model": "qwen3-coder:30b", "size": 1}]},
        ServedModel(name="qwen3-coder:30b"),
    ),
    "mistral": (
        {
            "data": [
                {
                    "id": "mistral-large",
                    "max_context_length": 262_144,
                    "capabilities": {"vision": True},
                    "deprecation": "2027-02-28T12:00:00Z",
                }
            ]
        },
        ServedModel(name="mistral-large", facts=ModelFacts(window=262_144, images=True, ends="2027-02-28")),
    ),
    "together": ([{"id": "a/b", "context_length": 32_768}], ServedModel(name="a/b", facts=ModelFacts(window=32_768))),
}


@pytest.mark.parametrize("service", LISTS)
def test_the_list_of_a_service(service: str) -> None:
    document, expected = LISTS[service]
    assert models_in(document) == [expected]


def test_what_is_switched_off_is_left_out_and_twins_count_once() -> None:
    entries = [{"id": "a"}, {"id": "b", "active": False}, {"id": "a", "context_length": 5}, {"id": "c"}]
    assert [model.name for model in models_in({"data": entries})] == ["a", "c"]


def test_only_google_puts_its_models_into_a_folder() -> None:
    assert [google_name(name) for name in ("models/gemini-4", "models/mine", "gemini-4")] == [
        "gemini-4",
        "models/mine",
        "gemini-4",
    ]


def test_a_list_of_llama_cpp_is_told_by_what_it_says_of_the_training() -> None:
    assert has_meta({"data": [{"id": "x", "meta": {"n_ctx_train": 5}}]})
    assert not has_meta({"data": [{"id": "x", "meta": None}, 5]})
    assert not has_meta(None)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["1e400", "-1", "nan", "2026-13-99", "2026-12-31", "0.5"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ["id", "name", "active", "context_length", "max_model_len", "max_tokens", "pricing", "prompt", "completion"]
FIELDS += ["capabilities", "thinking", "supported_parameters", "architecture", "input_modalities", "meta", "n_ctx"]
FIELDS += ["top_provider", "max_completion_tokens", "shutdown_date", "vision", "supported", "data", "models"]
ENTRIES = st.recursive(
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8),
    lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner | VALUES, max_size=8),
    max_leaves=6,
)


@given(st.one_of(VALUES, ENTRIES, st.lists(ENTRIES, max_size=4).map(lambda entries: {"data": entries})))
def test_no_list_breaks_anything(document: Any) -> None:
    found = models_in(document)
    assert len({model.name for model in found}) == len(found)
    for model in found:
        assert model.name.strip()
        assert model.name.isprintable()
        for size in (model.facts.window, model.facts.longest):
            assert size is None or 0 < size <= 10**9
        for price in (model.facts.input, model.facts.output):
            assert price is None or (math.isfinite(price) and price >= 0)
    json.dumps([model.facts.as_dict() for model in found], allow_nan=False)


def test_a_list_without_end_is_cut_and_monstrous_names_are_left_out() -> None:
    entries = [{"id": "x" * 10_000}, {"id": "\x1b[2J"}, *({"id": f"m{number}"} for number in range(MOST + 500))]
    found = models_in({"data": entries})
    assert len(found) == MOST
    assert found[0].name == "m0"
