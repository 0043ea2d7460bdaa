"""The standard streams as bytes: UTF-8 whatever the locale, each write at once, a closed one is noticed."""

from __future__ import annotations

import fcntl
import os
import select
import sys
import threading
import time
from pathlib import Path

import pytest

from marvin_core.util.streams import PackLines, StandardStreams, diverted
from marvin_core.util.watchdog import attributed_call, owner_of
from tests.support.installing import Place


def test_text_is_written_at_once_and_as_utf_8() -> None:
    read, write = os.pipe()
    StandardStreams(stdout=write).out("grüße 🔧\n")
    assert os.read(read, 100).decode() == "grüße 🔧\n"
    os.close(read)
    os.close(write)


def test_half_a_surrogate_pair_is_replaced_not_raised() -> None:
    read, write = os.pipe()
    StandardStreams(stdout=write).out("a\ud800b")
    assert os.read(read, 100) == b"a?b"
    os.close(read)
    os.close(write)


def test_errors_end_with_one_newline() -> None:
    read, write = os.pipe()
    streams = StandardStreams(stderr=write)
    streams.err("one")
    streams.err("two\n")
    assert os.read(read, 100) == b"one\ntwo\n"
    os.close(read)
    os.close(write)


def test_a_reader_that_went_away_is_an_error_on_output_and_none_on_errors() -> None:
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        StandardStreams(stdout=write).out("x")
    StandardStreams(stderr=write).err("x")
    os.close(write)
    with pytest.raises(OSError, match="Bad file descriptor"):
        StandardStreams(stdout=write).out("x")
    StandardStreams(stderr=write).err("x")


def test_a_full_disk_is_an_error() -> None:
    full = os.open("/dev/full", os.O_WRONLY) if Path("/dev/full").exists() else pytest.skip("/dev/full is missing")
    with pytest.raises(OSError, match="No space left"):
        StandardStreams(stdout=full).out("x")
    os.close(full)


def test_a_pipe_that_was_left_non_blocking_gets_everything() -> None:
    """As some programs leave a terminal or a pipe: the writer waits until the reader takes more."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETFL, fcntl.fcntl(write, fcntl.F_GETFL) | os.O_NONBLOCK)
    text = "0123456789" * 100_000
    got = bytearray()

    def take() -> None:
        while select.select([], [write], [], 0)[1]:  # until the writer has to wait
            time.sleep(0.005)
        while chunk := os.read(read, 65_536):
            got.extend(chunk)

    reader = threading.Thread(target=take)
    reader.start()
    StandardStreams(stdout=write).out(text)
    os.close(write)
    reader.join()
    os.close(read)
    assert got.decode() == text


def test_what_a_terminal_is() -> None:
    parent, child = os.openpty()
    assert StandardStreams(stdin=child).stdin_is_terminal()
    os.close(parent)
    os.close(child)
    assert not StandardStreams(stdin=child).stdin_is_terminal(), "a closed one is none"


@pytest.mark.slow
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}, {"LANG": "xx"}])
def test_a_locale_that_is_not_utf_8_changes_nothing(tmp_path: Path, locale: dict[str, str]) -> None:
    place = Place(tmp_path)
    (place.home / "ü.txt").write_text("grüße", encoding="utf-8")
    ended = place.marvin("tools", "call", "read_file", "path=ü.txt", **locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (ended.code, "grüße" in ended.out) == (0, True), ended.err


def printing() -> None:
    """Prints a line, and the beginning of another."""
    print("one\ntw", end="")


def test_what_packs_print_goes_where_it_is_told_with_whose_it_is() -> None:
    told: list[tuple[str, str]] = []
    lines = PackLines(owner_of, lambda owner, line: told.append((owner, line)))
    with diverted(lines):
        attributed_call("the tool wave of acme", printing)
        print("on my own")
        assert told == [("the tool wave of acme", "one"), ("tests", "on my own")]
    assert told[2:] == [("the tool wave of acme", "tw")]
    assert sys.stdout is not lines
