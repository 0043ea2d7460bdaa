"""Redacts texts of people and models before they are written to disk: known secrets, and texts that look like keys.

The model gets unknown keys that a person gives it, to work with them. A stored file does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .message_texts import with_texts
from .redaction import REDACTED, Redactor

if TYPE_CHECKING:
    import re

    from ..api.messages import Message

_BEGINS = r"(?<![A-Za-z0-9_-])"
_WORD = "[A-Za-z0-9_-]"
_PRIVATE = "(?:[A-Z]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    # Anthropic, OpenAI, DeepSeek and OpenRouter: the keys that their consoles give. The digit keeps out CSS classes.
    "an API key (sk-...)": (("sk-",), rf"{_BEGINS}sk-(?={_WORD}{{0,80}}\d){_WORD}{{20,}}"),
    # docs.github.com, "About authentication to GitHub", token formats.
    "a GitHub token": (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        rf"{_BEGINS}(?:gh[pousr]_[A-Za-z0-9]{{36,}}|github_pat_[A-Za-z0-9_]{{22,}})",
    ),
    # docs.aws.amazon.com, IAM user guide, "IAM identifiers": the prefixes of unique ids.
    "an AWS access key": (("AKIA", "ASIA"), rf"{_BEGINS}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    # cloud.google.com, "Manage API keys".
    "a Google API key": (("AIza",), rf"{_BEGINS}AIza{_WORD}{{35}}"),
    # docs.slack.dev, "Tokens".
    "a Slack token": (
        ("xox", "xapp-"),
        rf"{_BEGINS}(?:xox[abeoprs]|xapp)-(?=[A-Za-z0-9-]{{0,80}}\d)[A-Za-z0-9-]{{10,}}",
    ),
    # docs.stripe.com, "API keys".
    "a Stripe key": (("k_live_",), rf"{_BEGINS}[sr]k_live_[A-Za-z0-9]{{16,}}"),
    # docs.gitlab.com, "Token overview", token prefixes.
    "a GitLab token": (("glpat-",), rf"{_BEGINS}glpat-[A-Za-z0-9_.-]{{20,}}"),
    # The consoles of Groq, xAI and Hugging Face; npm and PyPI name theirs in their documentation of tokens.
    "an access token": (
        ("gsk_", "xai-", "hf_", "npm_", "pypi-AgE"),
        rf"{_BEGINS}(?:(?:gsk_|xai-)[A-Za-z0-9]{{40,}}|(?:hf_|npm_)[A-Za-z0-9]{{30,}}|pypi-AgE{_WORD}{{50,}})",
    ),
    # RFC 7468, and what OpenSSH and PGP make of it.
    "a private key": (
        ("PRIVATE KEY",),
        rf"-----BEGIN {_PRIVATE}[^-]*+(?:-(?!----)[^-]*+)*+-----END {_PRIVATE}",
    ),
}
"""Patterns of keys: strings of which each key contains one, and the expression for a whole key."""
_EXAMPLE = r"EXAMPLE$|([B-Zb-z0-9])\1{7}"
"""The end of each access key in the documentation of AWS, and the x's of placeholders: nothing that is random has one
character eight times in a row. In private keys, `A` and `/` may be repeated."""
_PARTS = tuple(part for parts, _ in _KINDS.values() for part in parts)
_WITH_SIGN = {sign: tuple(part for part in _PARTS if sign in part) for sign in "_-"}
_WITHOUT_SIGN = tuple(part for part in _PARTS if not any(sign in part for sign in _WITH_SIGN))


def _may_hold_a_key(text: str) -> bool:
    """Whether a text contains any of the parts. A single character rules out most texts quickly."""
    has = text.__contains__
    return any(map(has, _WITHOUT_SIGN)) or any(has(sign) and any(map(has, parts)) for sign, parts in _WITH_SIGN.items())


def key_in(text: str) -> str:
    """What kind of key a text has, such as "a GitHub token"; empty if there is none apart from examples."""
    if not _may_hold_a_key(text):
        return ""
    import re

    for kind, (parts, pattern) in _KINDS.items():
        if any(part in text for part in parts) and any(
            not re.search(_EXAMPLE, found[0]) for found in re.finditer(pattern, text)
        ):
            return kind
    return ""


class KeptTexts:
    """Redacts texts for storage. `tell` is called once if a text had an unknown key."""

    def __init__(self, redactor: Redactor | None = None, tell: Callable[[str], None] = lambda text: None) -> None:
        self._redactor = redactor or Redactor(tuple)
        self._tell = tell
        self._told = False
        self._patterns: dict[str, re.Pattern[str]] = {}

    def text(self, text: str) -> str:
        """The redacted text."""
        return self._without_keys(self._redactor.text(text))

    def message(self, message: Message) -> Message:
        """A message of a conversation, already without known secrets, redacted for storage."""
        return with_texts(message, lambda texts: [*map(self._without_keys, texts)])

    def _without_keys(self, text: str) -> str:
        if not _may_hold_a_key(text):
            return text
        for kind, (parts, pattern) in _KINDS.items():
            if any(part in text for part in parts):
                clean = self._pattern(kind, pattern).sub(REDACTED, text)
                if clean != text:
                    self._say(kind)
                text = clean
        return text

    def _pattern(self, kind: str, pattern: str) -> re.Pattern[str]:
        if kind not in self._patterns:
            import re

            self._patterns[kind] = re.compile(pattern)
        return self._patterns[kind]

    def _say(self, kind: str) -> None:
        if not self._told:
            self._told = True
            self._tell(
                f"What looks like {kind} is in this conversation. The model can read it. Marvin writes {REDACTED} to "
                "disk instead. If you did not mean to share it, revoke it at its service."
            )
