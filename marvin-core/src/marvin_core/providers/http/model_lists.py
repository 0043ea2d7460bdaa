"""Reads the lists of models of services: names, and the facts about each model in the service's own format.

Nothing in such a list is trusted: anything but a list is an empty list, anything but a number is unknown, and
only the beginning of an endless list counts. The formats are those of OpenAI, Anthropic, Google, OpenRouter, Groq,
Mistral, Together, vLLM, llama.cpp and Ollama, according to their references of the list of models.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...api.providers import ModelFacts, ServedModel
from ...util.numbers import amount

MOST = 5_000
"""The maximum number of models of a list."""
LONGEST_NAME = 200
_LARGEST_WINDOW = 1_000_000_000
_DEAREST = 1_000_000.0
"""USD per million tokens; a higher price is an error."""
_PER = 1_000_000
_GOOGLE = re.compile(r"models/(?=gemini-|gemma-\d|learnlm-)")
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?!\d)")

_WINDOW = (
    *("context_length", "context_window", "max_model_len", "max_context_length", "max_input_tokens"),
    *("inputTokenLimit", "input_token_limit"),
)
_LONGEST = ("max_completion_tokens", "max_output_tokens", "max_tokens", "outputTokenLimit", "output_token_limit")
_ENDS = ("shutdown_date", "expiration_date", "deprecation")


def models_in(document: Any) -> list[ServedModel]:
    """The models of a list, each once, in its order."""
    found: dict[str, ServedModel] = {}
    for entry in _entries(document):
        name = _name(entry)
        if name and name not in found and entry.get("active") is not False:
            found[name] = ServedModel(name=name, facts=facts_in(entry))
            if len(found) >= MOST:
                break
    return list(found.values())


def facts_in(entry: Mapping[Any, Any]) -> ModelFacts:
    """The facts about a model in an entry of a list."""
    top = _mapping(entry.get("top_provider"))
    pricing = _mapping(entry.get("pricing"))
    meta = _mapping(entry.get("meta"))
    return ModelFacts(
        window=next(_sizes(entry, _WINDOW), None) or _size(meta.get("n_ctx")),
        longest=next(_sizes(top, _LONGEST), None) or next(_sizes(entry, _LONGEST), None),
        input=_price(pricing.get("prompt")),
        output=_price(pricing.get("completion")),
        cache_write=_price(pricing.get("input_cache_write")),
        request=_price(pricing.get("request"), 1),
        thinks=_thinks(entry),
        images=_sees(entry),
        ends=next((day for day in (_day(entry.get(name)) for name in _ENDS) if day), ""),
    )


def google_name(name: str) -> str:
    """The name of a model without the folder in Google's list."""
    return name[len("models/") :] if _GOOGLE.match(name) else name


def _entries(document: Any) -> Iterator[Mapping[Any, Any]]:
    lists: Iterable[Any] = (document,)
    if isinstance(document, dict):
        lists = (document.get("data"), document.get("models"))
    for entries in lists:
        if isinstance(entries, list):
            yield from (entry for entry in entries if isinstance(entry, dict))


def _name(entry: Mapping[Any, Any]) -> str:
    named = (entry.get(field) for field in ("id", "name", "model"))
    name = next((value for value in named if isinstance(value, str) and value), "")
    usable = 0 < len(name) <= LONGEST_NAME and name.isprintable() and not name.isspace()
    return google_name(name) if usable else ""


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _sizes(entry: Mapping[Any, Any], names: Iterable[str]) -> Iterator[int]:
    return (size for size in (_size(entry.get(name)) for name in names) if size is not None)


def _size(value: Any) -> int | None:
    size = amount(value)
    return int(size) if size is not None and 1 <= size <= _LARGEST_WINDOW else None


def _price(value: Any, per: int = _PER) -> float | None:
    """USD per million tokens, or per million other units, for a price of one unit."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        price = float(value) * per
    except (ValueError, OverflowError):
        return None
    return round(price, 6) if 0 <= price <= _DEAREST else None  # OpenRouter's own choice of a model costs -1


def _thinks(entry: Mapping[Any, Any]) -> bool | None:
    capabilities, parameters = entry.get("capabilities"), entry.get("supported_parameters")
    thinking = _supported(_mapping(capabilities).get("thinking"))
    if thinking is None and isinstance(entry.get("thinking"), bool):
        thinking = bool(entry["thinking"])
    if thinking is None and isinstance(parameters, list):
        thinking = "reasoning" in parameters
    return thinking


def _sees(entry: Mapping[Any, Any]) -> bool | None:
    capabilities = _mapping(entry.get("capabilities"))
    for name in ("image_input", "vision"):
        seen = _supported(capabilities.get(name))
        if seen is not None:
            return seen
    modalities = _mapping(entry.get("architecture")).get("input_modalities")
    return "image" in modalities if isinstance(modalities, list) else None


def _supported(value: Any) -> bool | None:
    if isinstance(value, dict):
        value = value.get("supported")
    return value if isinstance(value, bool) else None


def _day(value: Any) -> str:
    found = _DAY.match(value) if isinstance(value, str) else None
    return found[0] if found else ""


def has_meta(document: Any) -> bool:
    """Whether the list is one of llama.cpp, whose entries contain the window of the training."""
    return any(isinstance(entry.get("meta"), dict) for entry in _entries(document))
