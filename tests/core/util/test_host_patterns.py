"""Lists of hosts: what an entry stands for, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.util.patterns.hosts import HostList, folded, host_pattern

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
HOST = st.lists(LABEL, min_size=2, max_size=4).map(".".join).filter(lambda name: not name.replace(".", "").isdigit())


@pytest.mark.parametrize(
    ("entry", "host", "port", "allowed"),
    [
        ("example.com", "example.com", 443, True),
        ("EXAMPLE.com.", "example.com", 8080, True),
        ("example.com", "www.example.com", 443, False),
        ("example.com", "badexample.com", 443, False),
        ("example.com", "example.com.evil.org", 443, False),
        ("*.example.com", "a.example.com", 443, True),
        ("*.example.com", "a.b.example.com", 22, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "badexample.com", 443, False),
        ("*.example.com:8443", "a.example.com", 8443, True),
        ("*.example.com:8443", "a.example.com", 443, False),
        ("git.example.com:22", "git.example.com", 22, True),
        ("git.example.com:22", "git.example.com", 443, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
        ("1.1.1.1", "1.1.1.1", 53, True),
        ("1.1.1.1:80", "1.1.1.1", 81, False),
        ("[2606:4700::1111]:443", "2606:4700::1111", 443, True),
        ("2606:4700:0::1111", "2606:4700::1111", 80, True),
        ("localhost:8000", "localhost", 8000, True),
    ],
)
def test_what_an_entry_stands_for(entry: str, host: str, port: int, allowed: bool) -> None:
    assert HostList([entry]).allows(folded(host), port) == allowed


@pytest.mark.parametrize(
    "entry",
    [
        *("", "*", "*.", "https://example.com", "example.com/path", "exa mple.com", "a..b", "example.com:"),
        *("example.com:0", "example.com:70000", "example.com:http", "exam*ple.com", "*.1.1.1.1", "a.com\nb.com"),
        *("a\0.com", "-a.com", "a" * 300, "user@example.com", "[::1", "a" * 64 + ".com", "example.com:٣"),
    ],
)
def test_what_is_no_host(entry: str) -> None:
    with pytest.raises(ValueError, match="Write a host"):
        HostList([entry])


@given(HOST, HOST, st.integers(1, 65_535))
def test_an_entry_stands_for_its_own_name_and_no_other(named: str, other: str, port: int) -> None:
    plain, below = HostList([named]), HostList([f"*.{named}"])
    assert plain.allows(named, port)
    assert not below.allows(named, port)
    assert below.allows(f"x.{named}", port)
    assert plain.allows(other, port) == (named == other)
    assert below.allows(other, port) == other.endswith(f".{named}")


@given(st.text(max_size=40))
def test_any_text_is_a_host_or_an_error(text: str) -> None:
    try:
        pattern = host_pattern(text)
    except ValueError:
        return
    assert folded(pattern.name) == pattern.name
