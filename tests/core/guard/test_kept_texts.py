"""What may be written to disk: neither secrets nor what looks like a key of somebody."""

from __future__ import annotations

import time

import pytest

from marvin_core.api.messages import Message, Text, ToolCall
from marvin_core.guard.kept_texts import KeptTexts
from marvin_core.guard.redaction import REDACTED, Redactor

PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7bq9\n" * 5 + "-----END RSA PRIVATE KEY-----"
KEYS = [
    "sk-ant-api03-abcdefghij0123456789",
    "sk-proj-A1b2C3d4E5f6G7h8I9j0",
    "ghp_" + "a1B2" * 9,
    "github_pat_11ABCDEFG0abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "xoxb-123456789012-abcdefghij",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "glpat-abcdefghij0123456789",
    "gsk_" + "aB3d" * 13,
    "hf_" + "aBcD" * 9,
    "npm_" + "aB3d" * 9,
    PEM,
    PEM.replace("\n", "\\n"),
    PEM.replace("RSA ", "OPENSSH "),
]
HARMLESS = [
    "sk-folding-cube-and-other-classes",
    "sk-learn",
    "the risk-averse-programmer-of-2024-and-later",
    "AKIA is the prefix",
    "MAKIAIOSFODNN7EXAMPLES",
    'if "-----BEGIN PRIVATE KEY-----" in text: return',
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "hf_hub_download(repo_id)",
    "git commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_what_looks_like_a_key_is_not_kept(key: str) -> None:
    told: list[str] = []
    kept = KeptTexts(tell=told.append)
    assert kept.text(f"use {key}, please") == f"use {REDACTED}, please"
    assert kept.text(f"again '{key}'") == f"again '{REDACTED}'"
    assert len(told) == 1
    assert "looks like a" in told[0]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_does_not_is_kept(text: str) -> None:
    told: list[str] = []
    assert KeptTexts(tell=told.append).text(text) == text
    assert told == []


def test_a_known_secret_is_not_kept_either() -> None:
    assert KeptTexts(Redactor(lambda: ("hunter2-hunter2",))).text("hunter2-hunter2!") == f"{REDACTED}!"


def test_messages_are_looked_at_everywhere() -> None:
    call = ToolCall(id="1", name="t", arguments=f'{{"key": "{KEYS[2]}"}}')
    message = KeptTexts().message(Message(role="assistant", content=(Text(text=KEYS[0]), call)))
    assert KEYS[0] not in repr(message)
    assert KEYS[2] not in repr(message)


@pytest.mark.parametrize(
    "part", ["sk-", "-----BEGIN RSA PRIVATE KEY-----\nMII", "ghp_", "xoxb-1", "AKIA0", "-", "sk-a1 ", "pypi-AgE"]
)
def test_no_text_takes_long(part: str) -> None:
    """500 KB take a few milliseconds each; what grows with the square would take hours."""
    begun = time.monotonic()
    KeptTexts().text(part * (500_000 // len(part)))
    assert time.monotonic() - begun < 30
