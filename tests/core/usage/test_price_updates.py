"""A newer table of prices: fetched, kept, used; and what is none leaves everything as it was."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from marvin_core import Usage
from marvin_core.api.errors import MarvinError
from marvin_core.api.timeouts import Timeouts
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.testing import Answer, document, error, html, raw
from marvin_core.testing.model_server import LoopbackServer, RecordedRequest
from marvin_core.usage import prices
from marvin_core.usage.price_updates import fetch_table
from marvin_core.usage.prices import Prices, bundled_stamp, table_stamp, updated_table

TABLE = [
    {
        "id": "acme",
        "name": "Acme",
        "api_pattern": "https://acme\\.example",
        "models": [
            {
                "id": "new-1",
                "match": {"equals": "new-1"},
                "context_window": 123_456,
                "prices": {"input_mtok": 2, "output_mtok": 8},
            }
        ],
    }
]
ASKED = "import sys, pathlib; from marvin_core import Usage; from marvin_core.usage.prices import Prices; "
ASKED += "print(Prices({}, pathlib.Path(sys.argv[1])).cost('acme', 'new-1', Usage(input_tokens=1_000_000)))"


class Host(LoopbackServer):
    """Answers each request in one way."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        super().__init__()

    def answer_to(self, request: RecordedRequest) -> Answer:
        return self._answer


@pytest.fixture(autouse=True)
def bundled_again() -> Iterator[None]:
    """What a test makes count must not count in others."""
    from genai_prices.data_snapshot import set_custom_snapshot

    yield
    set_custom_snapshot(None)
    prices._used.clear()


def fetch(answer: Answer, folder: Path) -> int:
    settings = HttpSettings(
        http_proxy="", https_proxy="", no_proxy="", ca_file="", transport="direct", timeouts=Timeouts()
    )

    async def run(url: str) -> int:
        client = make_client(settings, timeout_read=30.0, tls=None)
        try:
            return await fetch_table(client, url, folder)
        finally:
            await client.aclose()

    with Host(answer) as host:
        return asyncio.run(run(f"http://127.0.0.1:{host.port}/data.json"))


def test_a_new_table_counts_at_once_and_in_later_runs(tmp_path: Path) -> None:
    prices = Prices({}, tmp_path / "prices.json")
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    assert prices.cost("acme", "new-1", usage) is None
    before = table_stamp(tmp_path)
    assert fetch(document(TABLE), tmp_path) == 1
    assert table_stamp(tmp_path) > before, "so that prices that were looked up before are looked up again"
    assert Prices({}, tmp_path / "prices.json").cost("acme", "new-1", usage) == 10.0
    later = subprocess.run([sys.executable, "-c", ASKED, str(tmp_path / "prices.json")], capture_output=True, text=True)
    assert later.stdout == "2.0\n", later.stderr


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (error(404), "it answered 404"),
        (html(), "the answer is not a price table"),
        (raw(b""), "the answer is not a price table"),
        (document([]), "the answer is not a price table"),
        (document({"data": []}), "the answer is not a price table"),
        (document([{"id": 5}]), "the answer is not a price table"),
        (document([[[[]]]]), "the answer is not a price table"),
    ],
    ids=["404", "page", "nothing", "empty", "object", "wrong", "nested"],
)
def test_what_is_no_table_changes_nothing(answer: Answer, said: str, tmp_path: Path) -> None:
    with pytest.raises(MarvinError, match=said):
        fetch(answer, tmp_path)
    assert not updated_table(tmp_path).exists()
    assert Prices({}, tmp_path / "prices.json").cost("openai", "gpt-5.1", Usage(input_tokens=1_000_000)) == 1.25


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_text("{"), lambda path: path.write_text("[5]"), lambda path: os.utime(path, (1, 1))],
    ids=["cut off", "wrong", "older than the bundled one"],
)
def test_a_table_that_is_damaged_or_old_does_not_count(damage: Callable[[Path], object], tmp_path: Path) -> None:
    path = updated_table(tmp_path)
    path.write_text(json.dumps(TABLE))
    path.chmod(0o600)
    damage(path)
    assert bundled_stamp() > 0
    assert Prices({}, tmp_path / "prices.json").cost("openai", "gpt-5.1", Usage(input_tokens=1_000_000)) == 1.25
