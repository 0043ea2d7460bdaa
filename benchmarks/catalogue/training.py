"""Learns what tells a request from talk, from the requests and talk for tuning, and writes the weights.

`PYTHONPATH=. .venv/bin/python -P -m benchmarks.catalogue.training` takes about four minutes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import exp, sqrt
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.catalogue.requests import NOTHING, for_tuning, requests, third_party_tools
from marvin_core.api.tools import ToolSpec
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.routing import intent
from marvin_core.tools.routing.router import Router

_RATE, _ROUNDS = 0.3, 40
_PENALTY = 2.0
"""The weight of the squares of all weights beside the loss."""
_LEAST = 3
"""The minimum number of examples with a feature."""
_SEEN = 0.5
"""The weight of a request that the phrases were written for: it matches better than others will."""
_CARELESS = 0.5
"""The relative weight of a text without capitals and without the punctuation at its end."""
_HALVES, _SHARE = 2, 0.5
"""The number of catalogues with a share of the phrases only."""
_SMALL = 0.05
"""Weights below this are left out."""


class Example(NamedTuple):
    """The features of a text; whether it is a request; and what it counts."""

    features: Mapping[str, float]
    is_request: bool
    counts: float


def examples() -> list[Example]:
    """Every text for tuning, with our tools, with 500, with those of the core and the coding pack alone, and with a
    half of the phrases: others' requests are less like a phrase than those that the phrases were written beside."""
    ours = [spec for spec in installed_tools() if spec.source.startswith("marvin-")]
    few = [spec for spec in ours if spec.source in ("marvin-core", "marvin-tools-coding")]
    half = [[*_with_half_of_the_phrases(ours, Random(seed))] for seed in range(_HALVES)]
    catalogues = (ours, [*ours, *third_party_tools()][:500], few, *half)
    return [*chain.from_iterable(map(_examples_of, catalogues))]


def _with_half_of_the_phrases(specs: Sequence[ToolSpec], order: Random) -> Iterator[ToolSpec]:
    for spec in specs:
        yield spec.replace(phrases=tuple(phrase for phrase in spec.phrases if order.random() < _SHARE))


def _examples_of(specs: Sequence[ToolSpec]) -> Iterator[Example]:
    router, names = Router(specs), {NOTHING, *(spec.name for spec in specs)}
    seen = {text for text, _ in requests()[0]}
    for text, name in for_tuning():
        if name in names:
            counts = _SEEN if text in seen else 1.0
            yield Example(router.features(text), name != NOTHING, counts)
            careless = text.casefold().rstrip(".!?")
            if careless != text:
                yield Example(router.features(careless), name != NOTHING, counts * _CARELESS)


def trained(given: Sequence[Example]) -> dict[str, float]:
    """The weights of a logistic regression, by stochastic gradients with AdaGrad in a fixed order."""
    holders = Counter(name for one in given for name in one.features)
    kept = {name for name, count in holders.items() if count >= _LEAST * len(given) / len(for_tuning())}
    rows = [([(name, value) for name, value in one.features.items() if name in kept], one) for one in given]
    weights = dict.fromkeys(sorted(kept), 0.0)
    squares = dict.fromkeys(weights, 1e-8)
    order = Random(0)
    for _ in range(_ROUNDS):
        order.shuffle(rows)
        for features, one in rows:
            total = sum(weights[name] * value for name, value in features)
            error = (1 / (1 + exp(-max(-50.0, min(50.0, total)))) - one.is_request) * one.counts
            for name, value in features:
                slope = error * value + _PENALTY * weights[name] / holders[name]
                squares[name] += slope * slope
                weights[name] -= _RATE * slope / sqrt(squares[name])
    return {name: round(weight, 2) for name, weight in weights.items() if abs(weight) >= _SMALL}


def main() -> None:
    """Write the weights to where the program reads them."""
    weights = trained(examples())
    lines = ",\n".join(f"{json.dumps(name, ensure_ascii=False)}: {weight}" for name, weight in weights.items())
    Path(intent.__file__).with_name("intent.json").write_text(f"{{\n{lines}\n}}\n", "utf-8")
    print(f"{len(weights)} weights")


if __name__ == "__main__":
    main()
