"""Events reach every listener, where listeners can do something with them."""

from __future__ import annotations

import asyncio
import threading

from marvin_core.api.events import Event
from marvin_core.util.bus import Bus
from marvin_core.util.threads import in_thread


def test_an_event_of_a_thread_is_passed_on_in_the_event_loop() -> None:
    """A listener that draws needs the loop: it would fail in another thread, and get no further events."""
    bus, heard = Bus(), list[tuple[str, str]]()

    def listen(event: Event) -> None:
        asyncio.get_running_loop()
        heard.append((getattr(event, "text", ""), threading.current_thread().name))

    async def work() -> None:
        bus.subscribe(listen)
        bus.tell("first")
        await in_thread(lambda: bus.warn("second"))
        bus.tell("third")

    asyncio.run(work())
    here = threading.current_thread().name
    assert heard == [("first", here), ("second", here), ("third", here)]


def test_without_a_loop_an_event_is_passed_on_at_once() -> None:
    bus, heard = Bus(), list[Event]()
    bus.subscribe(heard.append)
    asyncio.run(_told(bus))
    bus.tell("after it")
    assert [getattr(event, "text", "") for event in heard] == ["in it", "after it"]


async def _told(bus: Bus) -> None:
    bus.tell("in it")
