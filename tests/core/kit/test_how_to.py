"""The page about the kit: its examples run, and it names all of it."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import marvin_core
from marvin_core import Timeouts, Tool
from marvin_core.testing import HttpReplay, ToolRunner

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "use-the-kit.md").read_text(encoding="utf-8")


@pytest.fixture
def examples(page: ModuleType) -> dict[str, Tool]:
    """The tools of the page."""
    return {name: value for name, value in vars(page).items() if isinstance(value, Tool)}


@pytest.fixture
def page() -> Iterator[ModuleType]:
    """All examples of the page, as one module."""
    module = ModuleType("kit_examples")
    sys.modules[module.__name__] = module
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, module.__dict__)
    yield module
    del sys.modules[module.__name__]


def test_a_service_is_asked(examples: dict[str, Tool], marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    url = "https://acme.example/api/search"
    pages = [{"title": "Bolts", "text": "<p>M4 &amp; M5"}]
    marvin_http.on("GET", f"{url}?q=bolts", json={"pages": pages, "total": 3})
    marvin_http.on("GET", f"{url}?q=nuts", status=404)
    answer = "1. Bolts\n   M4 & M5\n\n[1 of 3 are shown. Ask for something narrower.]"
    assert marvin_tools.call(examples["acme_search"], query="bolts").text == answer
    assert marvin_tools.call(examples["acme_search"], query="nuts").text == "The manual says nothing about nuts."


def test_data_are_kept(examples: dict[str, Tool], marvin_tools: ToolRunner) -> None:
    marvin_tools.call(examples["set_bell"], name="tea", minutes=3)
    assert marvin_tools.call(examples["remove_bell"], name="tea").text == "tea does not ring any more."
    assert marvin_tools.call(examples["remove_bell"], name="tea").text == "There is no bell tea."


def test_a_notice_is_sent(examples: dict[str, Tool], marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", "https://ntfy.sh/", json={"id": "1", "topic": "t"})
    assert marvin_tools.call(examples["acme_alert"], topic="t", text="Hi").text == "Sent to t."
    assert marvin_http.requests[0].json["priority"] == 4


def test_a_run_tells_of_itself(page: ModuleType, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", "https://ntfy.sh/", json={"id": "1", "topic": "t"})

    async def build() -> str:
        async with marvin_http.client() as http:
            told: str = await page.build(http, "t", Timeouts(notice_end=30.0))
            return told

    assert asyncio.run(build()) == ""
    assert [request.json["message"] for request in marvin_http.requests] == [
        "The build has begun.",
        "The build is done.",
    ]


def test_the_page_names_every_function_of_the_kit() -> None:
    functions = {name for name, home in marvin_core._HOME_OF.items() if home.startswith("kit.") and name.islower()}
    assert len(functions) > 20
    assert {name for name in functions if not re.search(rf"\b{name}\(", PAGE)} == set()
