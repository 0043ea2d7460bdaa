"""Detects characters that look like ASCII ones: a name with one of them looks the same, but is different."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_LETTERS = (
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u04cf"
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u04ae"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u03bf\u03bd\u03c1\u03b9\u03ba\u03c5\u0261\u0251\u0131\u0578\u057d\u0585"
)
"""Letters of other scripts. They count in a word that also has ASCII letters, as no language mixes them."""
_SIGNS = "\u2044\u2215\u29f8\u2024\u2010\u2011\u2212\ua789\u2236\u01c3\u037e\u2223\u02d0"
"""Characters that look like / . - : ! ; or |, anywhere."""
_STYLED = "\uff01-\uff5e\U0001d400-\U0001d7ff"
"""Wide and mathematical characters."""
_MOST = 5
_LONGEST = 40


def look_alikes(texts: Sequence[str]) -> str:
    """A sentence that lists such characters in a command or path; empty if there are none."""
    text = "\n".join(text for text in texts if not text.isascii())
    if not text:
        return ""
    found: dict[str, str] = {}
    for word in re.findall(r"\S+", text):
        mixed = re.findall(f"[{_LETTERS}]", word) if _is_mixed(word) else []
        for character in (*mixed, *re.findall(f"[{_SIGNS}{_STYLED}]", word)):
            found.setdefault(character, word)
    named = [
        f"{character!r} in {word[:_LONGEST]!r} is {unicodedata.name(character, 'nameless')}"
        for character, word in list(found.items())[:_MOST]
    ]
    more = f", and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return f"Characters that are easily mistaken for others: {'; '.join(named)}{more}." if named else ""


def _is_mixed(word: str) -> bool:
    """Whether a part of a word between signs mixes ASCII letters with others."""
    return any(re.search("[A-Za-z]", part) is not None and not part.isascii() for part in re.split(r"[^\w]|_|\d", word))
