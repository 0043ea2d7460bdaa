"""Whatever a server answers to a browser or to yt-dlp, the tool says in words what happened and what to do."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import Answer, LoopbackServer, RecordedRequest, ToolRunner, raw
from tests.tools_web.failures import FAILURES, problems
from tests.tools_web.test_browsing import STORY
from tests.tools_web.test_scraping import needs

WAYS = (
    *("400", "401", "403", "404", "429 with a time", "429 without one", "500", "503 full of it", "a page", "truncated"),
    *("slow drip", "wrong charset", "another schema", "nothing", "in a circle", "to a file", "cut off"),
)
"""Each starts a program, so that they are fewer than in `FAILURES`."""


def _clip() -> bytes:
    target = io.BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(bytes(40))
    return target.getvalue()


class Failing(LoopbackServer):
    """A server with one answer."""

    answer: Answer

    def answer_to(self, request: RecordedRequest) -> Answer:
        return self.answer


@pytest.fixture
def server(marvin_home: Path) -> Iterator[Failing]:
    """The server, allowed by its name."""
    config = marvin_home / ".config/marvin/config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("allow_addresses: [localhost]\n")
    with Failing() as server:
        yield server


def fails_well(tools: ToolRunner, server: Failing, tool: str, good: Answer, path: str) -> None:
    """Have a server answer in each way, and hold what the tool says to the rules."""
    wrong = {}
    for way in WAYS:
        failure = FAILURES[way]
        server.answer = failure.make(good)
        outcome = tools.call(tool, url=f"http://localhost:{server.port}/{path}")
        found = list(problems(outcome.text, outcome.is_error, None))
        if failure.says.isdecimal() and failure.says not in outcome.text:
            found.append("it does not say the status")
        if found:
            wrong[way] = (found, outcome.text[:1_000])
    assert not wrong, wrong


@pytest.mark.slow
def test_a_browser_fails_in_words(server: Failing, marvin_home: Path, marvin_workdir: Path) -> None:
    needs("chromium", "chromedriver")
    good = raw(STORY.encode(), {"content-type": "text/html; charset=utf-8"})
    with ToolRunner(marvin_home, marvin_workdir, timeouts={"browser": 3.0}) as tools:
        fails_well(tools, server, "scrape_page", good, "")


@pytest.mark.slow
def test_a_downloader_fails_in_words(server: Failing, marvin_home: Path, marvin_workdir: Path) -> None:
    good = raw(_clip(), {"content-type": "audio/x-wav"})
    with ToolRunner(marvin_home, marvin_workdir) as tools:
        fails_well(tools, server, "yt_dlp_download", good, "clip.wav")
    assert list(marvin_workdir.iterdir()) == []
