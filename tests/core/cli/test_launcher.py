"""The launcher's last word: an unreadable standard stream is passed over, a failure of a pack is not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.installing import MARVIN, Ended, Place

PACK = """
import errno, os, sys
from marvin_core import hookimpl

@hookimpl
def marvin_extend_cli(app):
    @app.command()
    def fail(name: str):
        number = getattr(errno, name)
        raise OSError(number, os.strerror(number))

    @app.command()
    def talk():
        for number in range(100_000):
            print(number)
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.install("acme", PACK)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ENOSPC", "EIO", "EPIPE"])
def test_what_a_pack_fails_with_is_told_also_where_a_stream_may_fail_so(place: Place, name: str) -> None:
    ended = place.marvin("fail", name)
    assert ended.code == 1
    assert "raise OSError(number, os.strerror(number))" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("words", [["talk"], ["tools", "list"]])
def test_a_reader_that_leaves_is_not_an_error(place: Place, words: list[str]) -> None:
    ended = place.run(["sh", "-c", '"$@" | true', "sh", *MARVIN, *words])
    assert (ended.out, ended.err) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_a_stream_that_is_closed_is_not_an_error(place: Place, closed: str) -> None:
    ended = place.run(["sh", "-c", f'"$@" {closed}', "sh", *MARVIN, "tools", "list"])
    assert ended.err == ""


@pytest.mark.slow
def test_a_full_disk_behind_standard_output_is_told_in_a_line(place: Place) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb") as full:
        argv, environment = [*MARVIN, "tools", "list"], place.environment()
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, env=environment, cwd=place.home, check=False)
    ended = Ended(done.returncode, "", done.stderr.decode())
    assert ended == (1, "", "marvin: standard output cannot be written to: No space left on device.\n")
