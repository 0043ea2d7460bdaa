"""What servers bring is kept for the next start, all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from marvin_core.api.config import McpServer
from marvin_core.mcp.listed import Listing, Listings


def test_of_servers_that_answer_at_once_none_is_lost(tmp_path: Path) -> None:
    servers = [McpServer(name=f"server{number}", command="true") for number in range(8)]
    for turn in range(10):
        listings, together = Listings(tmp_path / str(turn)), Barrier(len(servers))

        def keep(server: McpServer, listings: Listings = listings, together: Barrier = together) -> None:
            together.wait(30)
            listings.keep(server, Listing(instructions=server.name))

        with ThreadPoolExecutor(len(servers)) as threads:
            list(threads.map(keep, servers))
        later = Listings(tmp_path / str(turn))
        found = [later.of(server) for server in servers]
        assert [one and one.instructions for one in found] == [server.name for server in servers]
