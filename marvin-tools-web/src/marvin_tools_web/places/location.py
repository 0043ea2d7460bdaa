"""The tool get_my_location."""

from __future__ import annotations

import re
import sys
from typing import Any

from marvin_core import Link, RequestFailed, ToolContext, ToolError, ToolResult, tool

from ..services import values
from ..services.backends import Backend, first_answer
from ..services.catalog import IPAPI, IPWHO, Service
from ..services.client import ServiceClient
from .points import Point, point

_WHERE_AM_I = (
    "where-am-i",
    "/usr/libexec/geoclue-2.0/demos/where-am-i",
    "/usr/lib/geoclue-2.0/demos/where-am-i",
)
"""GeoClue's own program. Source: gitlab.freedesktop.org/geoclue/geoclue, demo/where-am-i.c"""
_PATIENCE = "8"
"""Seconds that the device gets to determine its position."""
_LINE = re.compile(r"^\s*(latitude|longitude|accuracy)\s*:\s*([+-]?\d+(?:[.,]\d+)?)", re.IGNORECASE | re.MULTILINE)
_SWIFT = """
import CoreLocation
import Foundation
class Finder: NSObject, CLLocationManagerDelegate {
    let manager = CLLocationManager()
    func start() { manager.delegate = self; manager.startUpdatingLocation() }
    func locationManager(_ manager: CLLocationManager, didUpdateLocations found: [CLLocation]) {
        guard let at = found.last else { return }
        print("Latitude: \\(at.coordinate.latitude)\\nLongitude: \\(at.coordinate.longitude)")
        print("Accuracy: \\(at.horizontalAccuracy)")
        exit(0)
    }
    func locationManager(_ manager: CLLocationManager, didFailWithError error: Error) { exit(1) }
}
let finder = Finder()
finder.start()
RunLoop.main.run(until: Date(timeIntervalSinceNow: 8))
exit(1)
"""
"""Source: developer.apple.com/documentation/corelocation/cllocationmanager"""


@tool(access=["net", "exec"], labels=["CoreLocation", "GeoClue", "ipwho.is", "ipapi.co"], probe={})
async def get_my_location(*, context: ToolContext) -> ToolResult:
    """Tell where this device is: by its own sensors, else roughly by its internet address."""
    by_device = await _by_device(context)
    if by_device is not None:
        at, source = by_device
    else:
        answered = await first_answer(
            context.origin,
            [
                Backend(IPWHO, lambda: _by_address(context, IPWHO)),
                Backend(IPAPI, lambda: _by_address(context, IPAPI)),
            ],
            "Ask the user where they are.",
        )
        at = answered.value
        failed = "".join(f" Failed: {failure}" for failure in answered.failures)
        source = f"{answered.service.title}, based on the IP address: the town may be wrong.{failed}"
    lines = [at.name, f"latitude {at.latitude:.5f}, longitude {at.longitude:.5f}", f"[Source: {source}]"]
    return ToolResult(content="\n".join(filter(None, lines)), show=[Link(url=at.map_link, text="On a map")])


async def _by_device(context: ToolContext) -> tuple[Point, str] | None:
    """The position according to the device; None if that fails."""
    processes = context.processes
    if sys.platform == "darwin":
        program, title = processes.which("swift", outside=True), "CoreLocation"
        argv, stdin = [program or "", "-"], _SWIFT.encode()
    else:
        found = (processes.which(name, outside=True) for name in _WHERE_AM_I)
        program, title = next(filter(None, found), None), "GeoClue"
        argv, stdin = [program or "", "-t", _PATIENCE], b""
    if program is None:
        return None
    try:
        # The location service is reachable only outside of the sandbox. The command is fixed.
        limit = context.timeouts.http
        result = await processes.run(argv, stdin=stdin, timeout=limit, output_limit=20_000, outside=True)
    except ToolError:
        return None
    values = {name.lower(): float(value.replace(",", ".")) for name, value in _LINE.findall(_text(result.output))}
    if "latitude" not in values or "longitude" not in values:
        return None
    try:
        at = point(values["latitude"], values["longitude"])
    except ToolError:
        return None
    accuracy = values.get("accuracy")
    return at, f"{title} of this device{f', to {accuracy:,.0f} m' if accuracy else ''}."


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


async def _by_address(context: ToolContext, service: Service) -> Point:
    path = "json/" if service is IPAPI else ""
    return await ServiceClient(context, service).get_json(path, read)


def read(answer: Any) -> Point:
    """The position in an answer.

    Raises:
        ValueError: it has none.
        RequestFailed: the service refuses.
    """
    refusal = values.text(answer, "message") or values.text(answer, "reason")
    if values.inner(answer, "success") is False or values.inner(answer, "error") is True:
        raise RequestFailed(f"it refuses: {refusal or 'no reason is given'}. Try another source.")
    latitude, longitude = values.number(answer, "latitude"), values.number(answer, "longitude")
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        raise ValueError("there are no coordinates")
    country = values.text(answer, "country_name") or values.text(answer, "country")
    names = (values.text(answer, "city"), values.text(answer, "region"), country)
    return Point(latitude=latitude, longitude=longitude, name=", ".join(filter(None, names)))
