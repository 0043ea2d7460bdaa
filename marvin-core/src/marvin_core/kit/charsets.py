"""Character encodings of web pages.

In the order of the HTML standard: a byte order mark, the server's header, the declaration in the first kilobyte of
the page; otherwise UTF-8 if the bytes are valid in it, and windows-1252 if not.
https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding
"""

from __future__ import annotations

import codecs
import re

_LOOKED_AT = 1_024
"""The number of bytes in which a page declares its encoding."""
_SAMPLE = 64 * 1024
_FIRST_OF_SEVERAL = 0xC2
"""From this byte value on a byte begins a multi-byte character in UTF-8."""
_LONGEST = 40
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_MEANT = {
    # The encodings on the left are read as those on the right: https://encoding.spec.whatwg.org/#names-and-labels
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
"""Encodings of web pages. Python has more; some of those are very slow, or are not text encodings."""
_FAMILIES = re.compile(r"iso8859-\d{1,2}|cp125\d")
_NAMED = re.compile(
    rb"""<\?xml[^>]{0,100}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})"""
    rb"""|charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})"""
)


def decoded(content: bytes, content_type: str = "") -> str:
    """Decode a page or a document; invalid bytes become U+FFFD.

    Args:
        content_type: the Content-Type header.
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
    """UTF-8 if the bytes are cut or have few errors, otherwise the encoding of most old pages."""
    sample = content[:_SAMPLE]
    wrong = sample.decode("utf-8", "replace").count("\ufffd")
    right = sum(byte >= _FIRST_OF_SEVERAL for byte in sample)
    return "utf-8" if wrong * 10 <= right else "cp1252"


def _named(content: bytes) -> str:
    """The encoding declared at the beginning of a page; a declaration in ASCII cannot mean UTF-16."""
    found = _NAMED.search(content[:_LOOKED_AT].lower())
    encoding = _usable((found[1] or found[2]).decode("ascii", "replace")) if found else ""
    return "utf-8" if encoding.startswith("utf-16") else encoding


def _usable(label: str) -> str:
    """Python's name of an encoding of web pages; empty for any other."""
    label = label.strip().strip("\"'").strip()
    if not label or len(label) > _LONGEST or not label.isascii():
        return ""
    try:
        name = codecs.lookup(label.removeprefix("x-")).name
    except (LookupError, ValueError):
        return ""
    name = _MEANT.get(name, name)
    return name if name in _OTHERS or _FAMILIES.fullmatch(name) else ""
