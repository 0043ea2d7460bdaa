"""Which characters the bytes of a web page stand for.

The order is that of the HTML standard: a byte order mark, what the server says, what the page says in its first
kilobyte, and else UTF-8 where the bytes are valid in it and windows-1252 where not.
https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding
"""

from __future__ import annotations

import codecs
import re

_LOOKED_AT = 1_024
"""Bytes in which a page names its encoding."""
_SAMPLE = 64 * 1024
_FIRST_OF_SEVERAL = 0xC2
"""From here on a byte begins a character of several bytes in UTF-8."""
_LONGEST = 40
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_MEANT = {
    # Pages that name the first mean the second: https://encoding.spec.whatwg.org/#names-and-labels
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
_OTHERS = frozenset(
    "utf-8 utf-16-le utf-16-be koi8-r koi8-u mac-roman mac-cyrillic cp866 cp874 cp932 cp949 gb18030 big5hkscs euc_jp"
    " iso2022_jp".split()
)
"""What pages are written in. Python has more, of which some take very long, or are no encodings of text."""
_FAMILIES = re.compile(r"iso8859-\d{1,2}|cp125\d")
_NAMED = re.compile(
    rb"""<\?xml[^>]{0,100}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})"""
    rb"""|charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})"""
)


def decoded(content: bytes, content_type: str = "") -> str:
    """The text of a page or a document; what is wrong in its encoding becomes U+FFFD.

    Args:
        content_type: the header of that name.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    named = _usable(content_type.lower().partition("charset=")[2].partition(";")[0]) or _named(content)
    if named:
        return content.decode(named, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode(_fallback(content), "replace")


def _fallback(content: bytes) -> str:
    """UTF-8 for what is cut or damaged in a few places only, else what most old pages are written in."""
    sample = content[:_SAMPLE]
    wrong = sample.decode("utf-8", "replace").count("\ufffd")
    right = sum(byte >= _FIRST_OF_SEVERAL for byte in sample)
    return "utf-8" if wrong * 10 <= right else "cp1252"


def _named(content: bytes) -> str:
    """What the beginning of a page says; one that says it in ASCII is not written in UTF-16."""
    found = _NAMED.search(content[:_LOOKED_AT].lower())
    encoding = _usable((found[1] or found[2]).decode("ascii", "replace")) if found else ""
    return "utf-8" if encoding.startswith("utf-16") else encoding


def _usable(label: str) -> str:
    """Python's name of an encoding that pages are written in; empty for any other."""
    label = label.strip().strip("\"'").strip()
    if not label or len(label) > _LONGEST or not label.isascii():
        return ""
    try:
        name = codecs.lookup(label.removeprefix("x-")).name
    except (LookupError, ValueError):
        return ""
    name = _MEANT.get(name, name)
    return name if name in _OTHERS or _FAMILIES.fullmatch(name) else ""
