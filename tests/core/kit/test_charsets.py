"""The bytes of pages as text, whatever they say about themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.kit.charsets import decoded


@pytest.mark.parametrize(
    ("content", "content_type", "text"),
    [
        ("ä€".encode(), "", "ä€"),
        ("ä€".encode(), "text/html; charset=UTF-8", "ä€"),
        ("ä".encode("latin-1"), "text/html; charset=iso-8859-1", "ä"),
        ("€".encode("cp1252"), "text/html; charset=iso-8859-1", "€"),  # as browsers have it
        ("ä “x”".encode("cp1252"), "", "ä “x”"),
        ("жук".encode("koi8-r"), 'text/html; charset="koi8-r"', "жук"),
        ("жук".encode("cp1251"), "text/html;charset=windows-1251;x=y", "жук"),
        ("日本".encode("shift_jis"), "text/html; charset=x-sjis", "日本"),
        ("日本".encode("euc_jp"), "", None),
        (b'<meta charset="euc-jp">' + "日本".encode("euc_jp"), "text/html", '<meta charset="euc-jp">日本'),
        (b"<?xml encoding='koi8-r'?>" + "ж".encode("koi8-r"), "", "<?xml encoding='koi8-r'?>ж"),
        ("ä".encode("utf-16"), "", "ä"),
        ("ä".encode("utf-16-be"), "text/html; charset=utf-16be", "ä"),
        (b"\xef\xbb\xbf\xc3\xa4", "text/html; charset=iso-8859-1", "ä"),  # the mark wins
        (b'<meta charset="utf-16">\xc3\xa4', "", '<meta charset="utf-16">ä'),
        ("한국".encode("euc_kr"), "text/html; charset=euc-kr", "한국"),
        ("中文".encode("gb18030"), "text/html; charset=gb2312", "中文"),
        ("ä".encode(), "text/html; charset=no-such-thing", "ä"),
        ("ä".encode(), "text/html; charset=", "ä"),
        (b"\\u00e4", "text/html; charset=unicode_escape", "\\u00e4"),
        (b"abc-", "text/html; charset=punycode", "abc-"),
        (b"\xc3\xa4" * 50 + b"\xff", "", "ä" * 50 + "\ufffd"),  # damaged in one place
    ],
)  # fmt: skip
def test_pages_are_read_in_their_encoding(content: bytes, content_type: str, text: str | None) -> None:
    assert text is None or decoded(content, content_type) == text


@given(st.binary(max_size=300), st.text(max_size=60), st.sampled_from(["", "text/html; charset=", "charset=\"'"]))
def test_any_bytes_become_text(content: bytes, name: str, begin: str) -> None:
    text = decoded(content, begin + name)
    assert len(text) <= len(content)


@pytest.mark.parametrize(
    "name", ["idna", "punycode", "rot13", "zlib", "utf-7", "base64", "undefined", "mbcs", "\0", "x" * 5_000]
)
def test_no_other_codec_of_python_is_used(name: str) -> None:
    assert decoded(b"a" * 200_000 + b"-", f"text/html; charset={name}") == "a" * 200_000 + "-"
