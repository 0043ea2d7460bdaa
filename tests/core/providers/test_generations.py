"""What the name of a model tells: its window, its longest answer, whether it thinks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.providers.generations import base_name, facts_by_name, hosted_window, thinks

ROWS = [
    ("gpt-6.1-sol", 1_050_000, 128_000, True),
    ("gpt-6-luna", 1_050_000, 128_000, True),
    ("openai/gpt-6.1-terra", 1_050_000, 128_000, True),
    ("gpt-7", 1_050_000, 128_000, True),  # not there yet: as the newest that is
    ("gpt-12.5-mini", 1_050_000, 128_000, True),
    ("gpt-5.4", 1_050_000, 128_000, True),
    ("gpt-5.4-mini", 400_000, 128_000, True),
    ("gpt-5.1", 400_000, 128_000, True),
    ("gpt-5.3-codex", 400_000, 128_000, True),
    ("gpt-5-mini-2025-08-07", 400_000, 128_000, True),
    ("gpt-5.2-chat-latest", 128_000, 16_384, False),
    ("gpt-4.1", 1_047_576, 32_768, False),
    ("gpt-4o-mini", 128_000, 16_384, False),
    ("gpt-image-2", None, None, None),
    ("gpt-realtime", None, None, None),
    ("o3", 200_000, 100_000, True),
    ("o4-mini", 200_000, 100_000, True),
    ("olmo-3", None, None, None),
    ("claude-opus-4-6", 1_000_000, 128_000, True),
    ("anthropic/claude-opus-4.6", 1_000_000, 128_000, True),
    ("claude-haiku-4-5-20251001", 200_000, 64_000, True),
    ("claude-haiku-5-5", 1_000_000, 128_000, True),
    ("claude-fable-7", 1_000_000, 128_000, True),
    ("claude-next", 1_000_000, 128_000, True),
    ("claude-mirage-1", 1_000_000, 128_000, True),  # a new family that counts from one
    ("claude-mirage-2-1", 1_000_000, 128_000, True),
    ("claude-2.1", 200_000, 4_096, False),
    ("claude-instant-1.2", 200_000, 4_096, False),
    ("claude-opus-4-20250514", 200_000, 32_000, True),
    ("claude-3-5-sonnet-20241022", 200_000, 8_192, False),
    ("claude-3-opus", 200_000, 4_096, False),
    ("gemini-3.8-flash", 1_048_576, 65_536, True),
    ("models/gemini-3.8-flash", 1_048_576, 65_536, True),
    ("google/gemini-4-argon:free", 1_048_576, 65_536, True),
    ("gemini-flash-latest", 1_048_576, 65_536, True),
    ("gemini-2.0-flash", 1_000_000, 8_192, False),
    ("grok-4.7", 500_000, None, True),
    ("x-ai/grok-6", 500_000, None, True),
    ("grok-4.20", 1_000_000, None, True),
    ("grok-4-1-fast-non-reasoning", 2_000_000, None, False),
    ("grok-3", 131_072, None, False),
    ("us.anthropic.claude-opus-4-6-v1:0", 1_000_000, 128_000, True),
    ("bedrock/global.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000, 64_000, True),
    ("us-gov.anthropic.claude-opus-8-v1:0", 1_000_000, 128_000, True),
    ("openai.gpt-oss-120b-1:0", None, None, True),
    ("databricks-claude-opus-7", 1_000_000, 128_000, True),
    ("databricks-gpt-7-luna", 1_050_000, 128_000, True),
    ("ft:gpt-4.1-mini-2025-04-14:acme::B1xyz", 1_047_576, 32_768, False),
    ("vertex_ai/claude-opus-4-6@20260101", 1_000_000, 128_000, True),
    ("qwen/qwen3-32b", None, None, None),
    ("meta.llama4-maverick-17b-instruct-v1:0", None, None, None),
    ("Qwen3.5-27B-Claude-4.6-Opus-Distilled", None, None, None),
    ("", None, None, None),
]


@pytest.mark.parametrize(("model", "window", "longest", "thinking"), ROWS)
def test_a_name_tells_its_generation(
    model: str, window: int | None, longest: int | None, thinking: bool | None
) -> None:
    facts = facts_by_name(model)
    assert (facts.window, facts.longest, facts.thinks) == (window, longest, thinking)
    assert thinks(model) is bool(thinking)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("kimi-k3.1-pro", 1_000_000),
        ("moonshotai/Kimi-K9", 1_000_000),  # not there yet: as the newest that is
        ("kimi-k2-instruct", 131_072),
        ("z-ai/glm-5.3-flash:free", 1_000_000),
        ("zai-org/GLM-7", 1_000_000),
        ("accounts/fireworks/models/glm-5p3", 1_000_000),
        ("glm-4.7", 200_000),
        ("deepseek-ai/DeepSeek-V5", 1_000_000),
        ("deepseek-r1", 64_000),
        ("qwen/qwen3.9-max", 1_000_000),
        ("Qwen/Qwen5-Coder", 1_000_000),
        ("qwen3-32b", 131_072),
        ("qwen-2.5-72b-instruct", 32_768),
        ("MiniMax-M4", 524_288),
        ("glm-4-32b", 65_536),
        ("qwen-72b-chat", None),
        ("glm-10b", None),
        ("qwen-max", None),
        ("kimi-latest", None),
        ("llama-5", None),
        ("gpt-7", None),
        ("", None),
    ],
)
def test_open_models_at_a_service_have_the_window_of_their_generation(model: str, window: int | None) -> None:
    assert hosted_window(model) == window


def test_open_models_think_and_have_the_window_that_their_server_gives_them() -> None:
    facts = facts_by_name("openai/gpt-oss-120b")
    assert (facts.thinks, facts.images) == (True, False)
    assert facts.window is None


@given(
    st.sampled_from(["gpt-", "claude-", "claude-opus-", "gemini-", "grok-", "o", "models/", "a/b/", ""]),
    st.text(max_size=300),
)
def test_any_name_is_taken(start: str, rest: str) -> None:
    facts = facts_by_name(start + rest)
    assert facts.window is None or 1_000 < facts.window < 3_000_000
    assert len(base_name(start + rest)) <= 200


@given(st.integers(7, 99), st.integers(0, 99), st.sampled_from(["", "-sol", "-pro", "-codex"]))
def test_a_new_generation_has_no_less_than_the_newest(major: int, minor: int, variant: str) -> None:
    for family, newest in (("gpt", "gpt-6.1-sol"), ("claude-opus", "claude-opus-5-5"), ("gemini", "gemini-3.8-flash")):
        assert facts_by_name(f"{family}-{major}.{minor}{variant}") == facts_by_name(newest)
