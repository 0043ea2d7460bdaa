"""Detects legacy encodings of files without a mark, with a library that examines the decoded text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

_SAMPLE = 200_000
"""The maximum number of bytes that are examined: those that are not ASCII, and their context."""
_CERTAIN = 0.1
"""The minimum share of a text in usual letters of a language, as the library measures it."""
_MARGIN = 0.1
"""By how much the share has to exceed that of another reading, for encodings that few files are in."""
_WESTERN = ("cp1252", "latin_1")
_EASTERN = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
"""Encodings with several bytes a character. The library knows their languages only in Unicode."""
_USUAL = (
    *_WESTERN,
    *("iso8859_2", "iso8859_15", "cp1250", "cp1251", "koi8_r", "koi8_u", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("cp1257", *_EASTERN),
)
_OLDER = ("cp866", "iso8859_5", "iso8859_7", "cp437", "cp850", "cp852", "mac_roman")
"""Encodings of DOS, of the old Macintosh and of Unix. Others that the library knows fit many texts, and no files."""
_LONE = re.compile(rb"(?<![\x80-\xff])[\x80-\xff]{1,2}(?![\x80-\xff])")
_WORD = re.compile(rb"[A-Za-z][\xc0-\xff]{1,2}|[\xc0-\xff]{1,2}[A-Za-z]")
_UTF8 = re.compile(rb"[\xc2-\xf4][\x80-\xbf]")
_SIGN = re.compile(rb"[\x80\x85\x91-\x97\xa0\xa7\xab\xb0\xbb]")
"""Quotes, dashes, the euro and other characters of Windows encodings."""
_CONTROL = re.compile("[\x80-\x84\x86-\x9f]")
_INSIDE = re.compile(r"(?<=[a-z])[^\x00-\x7f](?=[a-z])")
_NARROW = re.compile("[A-Za-z][\uff61-\uff9f]|[\uff61-\uff9f][A-Za-z]")
"""Narrow katakana beside Latin letters, which a Western text becomes in Shift JIS."""
_JOINS = "\u00b4\u2018\u00d7\u2022\u00a7\u2019\u00b7\u2013\u2014\u2026\u00a0\u00ad"
"""The signs that occur between two small letters."""
_RARE = 20
"""Of this many characters inside words, one may be another sign."""


def detected(data: bytes) -> str:
    """The encoding of the bytes if it is certain; otherwise empty."""
    sample = _telling(data)
    return _by_language(sample, _USUAL) or _western(sample) or _by_language(sample, _OLDER, _MARGIN)


def _by_language(sample: bytes, codecs: Sequence[str], margin: float = 0.0) -> str:
    """The one of these encodings in which the sample is most like a language.

    Args:
        margin: by how much it has to be more like one than in any encoding that gives another text.
    """
    from charset_normalizer import from_bytes

    read = from_bytes(sample, cp_isolation=list(codecs), preemptive_behaviour=False)
    found = [(_coherence(one), one) for one in read if _is_plausible(str(one), is_eastern=one.encoding in _EASTERN)]
    found.sort(key=lambda one: (-one[0], one[1].chaos))
    if not found or found[0][0] < _CERTAIN or (margin and len(found) > 1 and found[1][0] > found[0][0] - margin):
        return ""
    # Of codecs that fit a text equally well, the one that most files are in.
    alike = {name for coherence, one in found if coherence >= found[0][0] for name in one.could_be_from_charset}
    return next((name for name in _WESTERN if name in alike), found[0][1].encoding)


def _coherence(read: CharsetMatch) -> float:
    """The share of a text in usual letters of a language."""
    if read.encoding not in _EASTERN:
        return read.coherence
    from charset_normalizer import from_bytes

    best = from_bytes(str(read).encode(), cp_isolation=["utf_8"], preemptive_behaviour=False).best()
    return max(read.coherence, 0.0 if best is None else best.coherence)


def _is_plausible(text: str, *, is_eastern: bool) -> bool:
    """Whether words have no signs or capitals inside, as `Gr\u201d\u00e1e` for `Gr\u00f6\u00dfe` has."""
    if is_eastern:
        return not _NARROW.search(text)
    inside = _INSIDE.findall(text)
    wrong = sum(not one.islower() and one not in _JOINS for one in inside)
    return not _CONTROL.search(text) and wrong * _RARE <= len(inside)


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
            text = sample.decode(name)
        except UnicodeDecodeError:
            continue
        return name if _is_plausible(text, is_eastern=False) else ""
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
