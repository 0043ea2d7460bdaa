"""Where this device is: by its own sensors, else by its address."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import HttpReplay, ToolRunner
from tests.tools_web.contracts import Operation, check

IPWHO = "https://ipwho.is"
IPAPI = "https://ipapi.co/json/"
# Source: ipwhois.io/documentation and ipapi.co/api
OPERATIONS = (Operation(url=r"https://ipwho\.is/?"), Operation(url=r"https://ipapi\.co/json/"))
IPWHO_REPLY: dict[str, Any] = {
    "ip": "203.0.113.7",
    "success": True,
    "type": "IPv4",
    "country": "Germany",
    "region": "Bavaria",
    "city": "Munich",
    "latitude": 48.1351253,
    "longitude": 11.5819806,
    "timezone": {"id": "Europe/Berlin"},
}
IPAPI_REPLY: dict[str, Any] = {
    "ip": "203.0.113.7",
    "city": "Munich",
    "region": "Bavaria",
    "country_name": "Germany",
    "country": "DE",
    "latitude": 48.13743,
    "longitude": 11.57549,
}
WHERE_AM_I = """#!/bin/sh
echo "Client object: /org/freedesktop/GeoClue2/Client/1"
echo "New location:"
echo "Latitude:    48,123456°"
echo "Longitude:   -11.500000°"
echo "Accuracy:    25.000000 meters"
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def install(folder: Path, name: str, script: str) -> Mapping[str, str]:
    """A program in the PATH of a session."""
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


needs_geoclue = pytest.mark.skipif(sys.platform == "darwin", reason="GeoClue is of Linux")


def test_by_the_address(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", IPWHO, json=IPWHO_REPLY)
    outcome = marvin_tools.call("get_my_location")
    assert outcome.text.splitlines() == [
        "Munich, Bavaria, Germany",
        "latitude 48.13513, longitude 11.58198",
        "[Source: ipwho.is, based on the IP address: the town may be wrong.]",
    ]
    check(marvin_http, *OPERATIONS)


def test_another_service_where_the_first_refuses(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """It answers 200 then, with a reason."""
    marvin_http.on("GET", IPWHO, json={"success": False, "message": "You've hit the monthly limit"})
    marvin_http.on("GET", IPAPI, json=IPAPI_REPLY)
    text = marvin_tools.call("get_my_location").text
    assert "latitude 48.13743, longitude 11.57549" in text
    assert "Failed: ipwho.is: it refuses: You've hit the monthly limit" in text
    check(marvin_http, *OPERATIONS)


@needs_geoclue
def test_by_the_device(marvin_tools: ToolRunner, programs: Path) -> None:
    env = install(programs, "where-am-i", WHERE_AM_I)
    outcome = marvin_tools.session(env=env).call("get_my_location")
    assert outcome.text == "latitude 48.12346, longitude -11.50000\n[Source: GeoClue of this device, to 25 m.]"


@needs_geoclue
@pytest.mark.parametrize(
    "script", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho Latitude: 999\necho Longitude: 1\n", "none"]
)
def test_a_device_that_does_not_know(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, programs: Path, script: str
) -> None:
    marvin_http.on("GET", IPWHO, json=IPWHO_REPLY)
    env = install(programs, "where-am-i", script)
    assert "ipwho.is" in marvin_tools.session(env=env).call("get_my_location").text
