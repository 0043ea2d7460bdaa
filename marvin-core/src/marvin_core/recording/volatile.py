"""Removes differences between runs that have no meaning: dates, durations, IDs, ports, names of temporary files."""

from __future__ import annotations

import re

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = "(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_KINDS = (
    ("<date>", r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?)?"),
    ("<date>", rf"\b{_DAY}(?:\d{{1,2}}\.? {_MONTH}(?: \d{{4}})?|{_MONTH} \d{{1,2}}(?:,? \d{{4}})?)\b"),
    ("<date>", r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"),
    ("<date>", r"(?<!\d)20\d{6}[-T_]?\d{6}(?:[-.]?\d{3,6})?Z?(?!\d)"),
    ("<time>", r"(?<![\w:.])\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\b(?: (?:[A-Z]{3,5} )?20\d\d\b)?"),
    ("<duration>", r"(?<![\w.])\d+(?:\.\d+)? ?(?:ms|µs|us|s|secs?|seconds?|min|minutes?|h|hours?)\b"),
    ("<id>", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("<id>", r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b"),
    ("<address>", r"\b0x[0-9a-f]+\b"),
    ("<port>", r"(?<=127\.0\.0\.1:)\d+|(?<=localhost:)\d+"),
    ("<pid>", r"(?i:(?<=\bpid )|(?<=\bpid=)|(?<=\bpid: ))\d+"),
    ("<temporary>", r"\btmp[a-z0-9_]{6,}\b|\bpytest-\d+\b"),
)
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _KINDS)


def lasting(text: str) -> str:
    """The text without parts that vary between runs."""
    for name, pattern in _PATTERNS:
        text = pattern.sub(name, text)
    return text
