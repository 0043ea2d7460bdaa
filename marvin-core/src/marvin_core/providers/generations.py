"""Derives facts from the name of a model: its family, its generation, and the features of that generation.

These are rules, not a list, so a new model has its full context window and thinks from its first day on: a newer
generation is treated like the newest one here. The sources are the services' own pages of models:
developers.openai.com/api/docs/models, platform.claude.com/docs/en/about-claude/models/overview,
ai.google.dev/gemini-api/docs/models and docs.x.ai/docs/models. Those of models with open weights are platform.kimi.ai,
docs.z.ai, api-docs.deepseek.com, help.aliyun.com/model-studio and platform.minimax.io.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from ..api.providers import ModelFacts

# Patterns as texts: each is compiled when a name of its family first occurs, not at the start.
_GPT = r"gpt-(\d{1,2})(?:\.(\d{1,2}))?(o?)(?![\d.])"
_O = r"o(\d)(?!\d)"
_CLAUDE = r"claude-(?:([a-z]+)-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)"
_GEMINI = r"gemini-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)"
_GROK = r"grok-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)"
_FIRST_CLAUDE_WITH_FAMILIES = (3, 0)
_HOSTED = r"(?:[a-z][a-z-]*\.)+(?=[a-z])|databricks-"
"""Prefixes of Bedrock and Databricks: `us.anthropic.claude-opus-4-6-v1:0`, `databricks-gpt-5`."""
_TUNED = "ft:"
"""The prefix before the base model of a fine-tuned model: `ft:gpt-4.1:me::id`."""
_NEWEST = (99, 0)
"""The version of a name without a number, such as `gemini-flash-latest`."""
_LONGEST_NAME = 200


def base_name(model: str) -> str:
    """The name without additions of gateways, lists and hosts: `models/gemini-4` and `google/gemini-4:free`."""
    name = model[:_LONGEST_NAME].rpartition("/")[2].lower()
    found = re.match(_HOSTED, name)
    return (name if found is None else name[found.end() :]).partition(":")[0]


def plain_name(name: str) -> str:
    """The name in the form for comparisons: some write claude-opus-4.6, others -4-6."""
    return name.lower().replace(".", "-")


def is_spelled_otherwise(asked: str, listed: str) -> bool:
    """Whether a name in a service's list means the requested model, despite a different spelling: `Qwen/Qwen3-32B`."""
    plain, other = plain_name(asked), plain_name(listed)
    return asked != listed and plain in (other, other.rpartition("/")[2])


@lru_cache(maxsize=512)
def facts_by_name(model: str) -> ModelFacts:
    """The facts in the name of a model; nothing for families whose models differ."""
    name = base_name(model.removeprefix(_TUNED))
    for start, facts in _FAMILIES:
        if name.startswith(start):
            return facts(name)
    return ModelFacts()


def defers_tools(model: str) -> bool:
    """Whether a model accepts references to tools in the middle of a conversation.

    Claude from 4.5 on: platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool. GPT from 5.4 on:
    developers.openai.com/api/docs/guides/tools-tool-search.
    """
    name = base_name(model)
    if (gpt := gpt_version(name)) is not None:
        return gpt >= (5, 4)
    claude = claude_version(name)
    return claude is not None and claude[1] >= (4, 5)


def hosted_window(model: str) -> int | None:
    """The context window of a model with open weights at a service, by its generation; None for other families.

    A server of one's own may give less, so this is for services that say nothing and that no table knows.
    """
    name = base_name(model)
    for family, windows in _OPEN.items():
        found = re.match(rf"{family}(\d{{1,2}})(?:[.p](\d{{1,2}}))?(?![\d.b])", name)
        if found is not None:
            version = _version(found)
            return next(window for least, window in windows if version >= least)
    return None


def thinks(model: str) -> bool:
    """Whether the name of a model shows that it thinks."""
    return bool(facts_by_name(model).thinks)


def gpt_version(name: str) -> tuple[int, int] | None:
    """The version of a GPT, such as (5, 1) of `gpt-5.1-codex`; None for all other models."""
    found = re.match(_GPT, name)
    return None if found is None else _version(found)


def claude_version(model: str) -> tuple[str, tuple[int, int]] | None:
    """The family and the version of a Claude model, anywhere in the name; None without a number."""
    found = re.search(_CLAUDE, model)
    if found is None:
        return None
    family, version = found[1] or "", (int(found[2]), int(found[3] or 0))
    if family not in ("", "instant") and version < _FIRST_CLAUDE_WITH_FAMILIES:
        return family, _NEWEST  # a new family that counts from one
    return family, version


def _version(found: re.Match[str] | None) -> tuple[int, int]:
    return _NEWEST if found is None else (int(found[1]), int(found[2] or 0))


def _gpt(name: str) -> ModelFacts:
    found = re.match(_GPT, name)
    if found is None:
        return ModelFacts()  # gpt-image-2, gpt-realtime
    version = _version(found)
    if "-chat" in name:
        return ModelFacts(window=128_000, longest=16_384, thinks=False, images=True)
    if version < (5, 0):
        return _old_gpt(version, omni=bool(found[3]))
    small = "-mini" in name or "-nano" in name
    large = version >= (6, 0) or (version >= (5, 4) and not small)
    return ModelFacts(window=1_050_000 if large else 400_000, longest=128_000, thinks=True, images=True)


def _old_gpt(version: tuple[int, int], *, omni: bool) -> ModelFacts:
    if version == (4, 1):
        return ModelFacts(window=1_047_576, longest=32_768, thinks=False, images=True)
    if omni:
        return ModelFacts(window=128_000, longest=16_384, thinks=False, images=True)
    return ModelFacts(thinks=False)


def _open_gpt(name: str) -> ModelFacts:
    return ModelFacts(thinks=True, images=False)  # its server reports its window


def _o(name: str) -> ModelFacts:
    if re.match(_O, name) is None:
        return ModelFacts()  # an olmo, an orca
    return ModelFacts(window=200_000, longest=100_000, thinks=True, images="-mini" not in name or name.startswith("o4"))


def _codex(name: str) -> ModelFacts:
    return ModelFacts(window=200_000, longest=100_000, thinks=True, images=True)


def _claude(name: str) -> ModelFacts:
    _, version = claude_version(name) or ("", _NEWEST)
    if version < (4, 6):
        return ModelFacts(window=200_000, longest=_old_claude(name, version), thinks=version >= (3, 7), images=True)
    return ModelFacts(window=1_000_000, longest=128_000, thinks=True, images=True)


def _old_claude(name: str, version: tuple[int, int]) -> int:
    if version >= (3, 7):
        return 32_000 if "opus" in name and version < (4, 5) else 64_000
    return 8_192 if version == (3, 5) else 4_096


def _gemini(name: str) -> ModelFacts:
    version = _version(re.match(_GEMINI, name))
    if version < (2, 5):
        return ModelFacts(window=1_000_000, longest=8_192, thinks=False, images=True)
    return ModelFacts(window=1_048_576, longest=65_536, thinks=True, images=True)


def _grok(name: str) -> ModelFacts:
    found = re.match(_GROK, name)
    major, minor = _version(found)
    if found is not None and minor > 9:
        minor //= 10  # 4.20 came between 4.1 and 4.3
    version = (major, minor)
    thinking = version >= (4, 0) and "non-reasoning" not in name
    if version < (4, 0):
        return ModelFacts(window=131_072, thinks="-mini" in name, images=False)
    if version < (4, 2):
        return ModelFacts(window=2_000_000 if "-fast" in name else 256_000, thinks=thinking, images=True)
    return ModelFacts(window=1_000_000 if version < (4, 5) else 500_000, thinks=thinking, images=True)


_OPEN: Mapping[str, tuple[tuple[tuple[int, int], int], ...]] = {
    r"kimi-k": (((3, 0), 1_000_000), ((0, 0), 131_072)),
    r"glm-": (((5, 2), 1_000_000), ((4, 6), 200_000), ((0, 0), 65_536)),
    r"deepseek-[vr]": (((4, 0), 1_000_000), ((0, 0), 64_000)),
    r"qwen-?": (((3, 8), 1_000_000), ((3, 5), 262_144), ((3, 0), 131_072), ((0, 0), 32_768)),
    r"minimax-m": (((3, 0), 524_288), ((0, 0), 204_800)),
}
"""How the names of models with open weights begin, and the least window that services give from each version on."""
_FAMILIES: tuple[tuple[str, Callable[[str], ModelFacts]], ...] = (
    ("gpt-oss", _open_gpt),
    ("gpt-", _gpt),
    ("codex", _codex),
    ("claude", _claude),
    ("gemini", _gemini),
    ("grok", _grok),
    ("o", _o),
)
