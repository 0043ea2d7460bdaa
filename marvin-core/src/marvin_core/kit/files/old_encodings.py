"""Detects legacy encodings of files without a mark, with a library that examines the decoded text."""

from __future__ import annotations

import re

_SAMPLE = 200_000
"""The maximum number of bytes that are examined: those that are not ASCII, and their context."""
_CERTAIN = 0.1
"""The minimum share of a text in usual letters of a language, as the library measures it."""
_WESTERN = ("cp1252", "latin_1")
_LONE = re.compile(rb"(?<![\x80-\xff])[\x80-\xff]{1,2}(?![\x80-\xff])")
_WORD = re.compile(rb"[A-Za-z][\xc0-\xff]{1,2}|[\xc0-\xff]{1,2}[A-Za-z]")
_UTF8 = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
_SIGN = re.compile(rb"[\x80\x85\x91-\x97\xa0\xa7\xab\xb0\xbb]")
"""Quotes, dashes, the euro and other characters of Windows encodings."""


def detected(data: bytes) -> str:
    """The encoding of the bytes if it is certain; otherwise empty."""
    from charset_normalizer import from_bytes

    sample = _telling(data)
    found = from_bytes(sample, preemptive_behaviour=False)
    best = found.best()
    if best is None or best.coherence < _CERTAIN:
        return _western(sample)
    # Of codecs that fit a text equally well, the one that most files are in.
    alike = {name for one in found if one.coherence >= best.coherence for name in one.could_be_from_charset}
    return next((name for name in _WESTERN if name in alike), best.encoding)


def _western(sample: bytes) -> str:
    """Windows-1252 or Latin-1 for Latin text with few other letters: only these have single letters like é in words."""
    if _UTF8.search(sample):
        return ""  # most of it is UTF-8, with some bytes that are not
    lone = _LONE.findall(sample)
    high = sum(byte >= 0x80 for byte in sample)  # what is not ASCII
    words, signs = len(_WORD.findall(sample)), len(_SIGN.findall(sample))
    if sum(map(len, lone)) != high or not words or (words + signs) * 2 < len(lone):
        return ""
    for name in _WESTERN:
        try:
            sample.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return ""


def _telling(data: bytes) -> bytes:
    """The lines that are not pure ASCII, up to a size."""
    if len(data) <= _SAMPLE:
        return data
    lines: list[bytes] = []
    size = 0
    for line in data.split(b"\n"):
        if not line.isascii():
            lines.append(line[:_SAMPLE])
            size += len(line) + 1
            if size >= _SAMPLE:
                break
    return b"\n".join(lines)
