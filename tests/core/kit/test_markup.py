"""The text of web pages, whatever they look like, in a time that grows with their size alone."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import plain_text

PAGE = """<!DOCTYPE html><html><head><title>T</title><style>p { x: "</p>" }</style><script>if (a < b) {"</p>"}</script>
</head><body><nav>Home</nav><h1>A  &amp; B</h1><p>One <b>bo</b>ld<br>two &euro; 5&nbsp;< 6 &lt;b&gt;</p>
<!-- no > --><ul><li>first<li>second <a href="x>y" title='"'>link</a></li></ul>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre>def f():
    return 1

    # end</pre><noscript>No</noscript><p></p><p>Last</p></body></html>"""


def test_a_page_is_shown_as_a_reader_sees_it() -> None:
    assert plain_text(PAGE) == (
        "Home\n\nA & B\n\nOne bold\ntwo € 5 < 6 <b>\n\n- first\n- second link\n\na | b\n1 | 2\n\n"
        "def f():\n    return 1\n\n    # end\n\nLast"
    )


def test_it_may_be_one_line() -> None:
    text = plain_text(PAGE, lines=False)
    assert text.startswith("Home A & B One bold two € 5 < 6 <b> - first - second link a | b 1 | 2 def f(): return 1")


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a <", "a <"),
        ("a <b", "a"),
        ("<p>a<p>b", "a\n\nb"),
        ("a<script>b", "a"),
        ("a<script>b</script >c", "ac"),
        ("a<SCRIPT>b</sCript\n>c", "ac"),
        ("a<script>b</scripty>c</script>d", "ad"),
        ("a<svg>b", "ab"),
        ("a<svg/>b</svg>c", "abc"),
        ("a<!-- b", "a"),
        ("a<!-- > -->c", "ac"),
        ("<![CDATA[a & c]]>d", "a & cd"),
        ("<?xml version='1.0'?>a", "a"),
        ("<li>a<li><li>b", "- a\n- b"),
        ("&#x41;&#65;&bogus;&#xd800;", "AA&bogus;\ufffd"),
        ("<td>a</td><td></td><td>b</td>", "a | | b"),
    ],
)
def test_odd_markup(markup: str, text: str) -> None:
    assert plain_text(markup) == text


PIECES = (
    "<a |<!--|<|&|&#|<script>|</script|<a href=\"|<a href='|<![CDATA[|<!|<?|a<b|<a><|]]>|<svg>|<svg><title>|<li>"
    '|<td>x|</|<p>|"|<b a=\'">|<pre>\n|\n'
).split("|")


@given(st.lists(st.sampled_from([*PIECES, "</script>", "-->", ">", "x", " ", "&amp;", "é", "</pre>"])).map("".join))
def test_any_markup_has_a_text(markup: str) -> None:
    text = plain_text(markup)
    assert len(text) <= 3 * len(markup) + 3
    assert "\n\n\n" not in text
    assert plain_text(markup, lines=False).split() == text.split()


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_hostile_markup_takes_no_longer_than_any(piece: str) -> None:
    markup = (piece * 500_000)[:500_000]
    began = time.process_time()
    plain_text(markup)
    assert time.process_time() - began < 30, "a quadratic one would take an hour"
