"""Routes by the real OSRM, through a town that is made for it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import ToolRunner
from tests.real.components import REAL, free_port, required, serving

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("osrm")]

OSRM = REAL / "osrm" / "osrm"
STREETS = {
    1: ("West Street", (1, 2, 3)),
    2: ("Church Road", (3, 4, 5)),
    3: ("Park Lane", (5, 6)),
    4: ("Mill Way", (3, 7)),
    5: ("Hill", (5, 8)),
}
"""Three sides of a square, north, then east, then south, and a side street at each corner."""
NODES = {
    1: (48.0, 11.0),
    2: (48.005, 11.0),
    3: (48.01, 11.0),
    4: (48.01, 11.01),
    5: (48.01, 11.02),
    6: (48.0, 11.02),
    7: (48.015, 11.0),
    8: (48.01, 11.03),
}
TOWN = (
    '<?xml version="1.0"?><osm version="0.6" generator="test">'
    + "".join(f'<node id="{number}" lat="{at[0]}" lon="{at[1]}" version="1"/>' for number, at in NODES.items())
    + "".join(
        f'<way id="{number}" version="1">{"".join(f"""<nd ref="{node}"/>""" for node in nodes)}'
        f'<tag k="highway" v="residential"/><tag k="name" v="{name}"/></way>'
        for number, (name, nodes) in STREETS.items()
    )
    + "</osm>"
)


@pytest.fixture(scope="module")
def osrm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an OSRM that knows the town."""
    required(OSRM / "bin" / "osrm-routed")
    folder = tmp_path_factory.mktemp("osrm")
    (folder / "town.osm").write_text(TOWN)
    profile = OSRM / "share" / "profiles" / "car.lua"
    town = folder / "town.osrm"
    for program, *arguments in (
        ("osrm-extract", "-p", str(profile), str(folder / "town.osm")),
        ("osrm-partition", str(town)),
        ("osrm-customize", str(town)),
    ):
        subprocess.run([OSRM / "bin" / program, *arguments], check=True, capture_output=True, cwd=folder)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    routed = (OSRM / "bin" / "osrm-routed", "--ip", "127.0.0.1", "--port", str(port), "--algorithm", "mld")
    with serving((*routed, town), folder / "log", f"{url}/nearest/v1/driving/11.0,48.0"):
        yield url


@pytest.fixture
def tools(marvin_home: Path, marvin_workdir: Path, osrm: str) -> Iterator[ToolRunner]:
    with ToolRunner(marvin_home, marvin_workdir, env={"MARVIN_URL_OSRM": osrm}) as runner:
        yield runner


def test_directions(tools: ToolRunner) -> None:
    outcome = tools.call("get_directions", origin="48.0005,11.0", destination="48.0005,11.02")
    assert not outcome.is_error, outcome.text
    first, *steps, _ = outcome.text.splitlines()
    assert first.startswith("From 48.00050,11.00000 to 48.00050,11.02000 by car: 3.6 km, ")
    assert [step.partition(",")[0] for step in steps] == [
        "1. Start on West Street",
        "2. Turn right onto Church Road",
        "3. Turn right onto Park Lane",
        "4. Arrive",
    ]


def test_a_way_over_a_point(tools: ToolRunner) -> None:
    outcome = tools.call("get_directions", origin="48.0,11.0", destination="48.0,11.0", waypoints="48.01,11.01")
    assert "Arrive at waypoint 1" in outcome.text


def test_times(tools: ToolRunner) -> None:
    outcome = tools.call("estimate_travel_time", origin="48.0,11.0", destination="48.01,11.02", mode="cycling")
    assert "Distance: 2.6 km" in outcome.text


def test_a_point_far_from_all_roads_and_a_wrong_one(tools: ToolRunner) -> None:
    far = tools.call("estimate_travel_time", origin="48.0,11.0", destination="-48.0,-11.0")
    assert far.is_error
    assert "knows no road near -48.00000,-11.00000" in far.text
    assert tools.call("estimate_travel_time", origin="48.0,11.0", destination="91,0").is_error
