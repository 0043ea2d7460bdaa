"""What servers bring is kept for the next start, all of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from marvin_core.api.config import McpServer
from marvin_core.mcp.cached import FILE, CachedServers
from marvin_core.mcp.listed import ListedPrompt, ListedTool, Listing, Listings, offered

SERVERS = [
    McpServer(name="files", command="true", args=("-v",)),
    McpServer(name="late", command="false"),
    McpServer(name="mail", url="http://127.0.0.1:1/mcp", read_only=("see_*",)),
]


def tool(name: str, said: str) -> ListedTool:
    """A tool of a server."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": said}}}
    return ListedTool(
        name=f"trial__{name}",
        called=name,
        description=f"{said}\nand more",
        parameters={"type": "object", "properties": {"a": {"type": "string"}}},
        schema=schema,
        reads_only=True,
    )


FILES = Listing(tools=(tool("write", "Writes."),), left_out=("large: too large",), instructions="Be nice.")
MAIL = Listing(
    tools=(tool("see_all", "Sees."), tool("send", "Sends."), tool("see_one", "Sees one.")),
    prompts=(ListedPrompt(name="greet", arguments=("who",), required=1),),
    resources=True,
    named={"mail:1": "the first one"},
)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A cache folder with two listings, and a server that was late."""
    listings = Listings(tmp_path)
    for server, listing in zip(SERVERS, (FILES, None, MAIL), strict=True):
        if listing is None:
            listings.keep_late(server)
        else:
            listings.keep(server, listing)
    return tmp_path


def test_what_is_kept_is_what_was_listed(kept: Path) -> None:
    listings = Listings(kept)
    assert [listings.of(server) for server in SERVERS] == [FILES, None, MAIL]
    assert [listings.was_late(server) for server in SERVERS] == [False, True, False]
    listings.forget("files")
    again = Listings(kept)
    assert [again.of(server) for server in SERVERS] == [None, None, MAIL]


def test_a_start_offers_the_tools_that_the_listing_has(kept: Path) -> None:
    cached = CachedServers(kept)
    for server, listing in ((SERVERS[0], FILES), (SERVERS[2], MAIL)):
        assert cached.tools(server) == [spec for spec, _ in offered(server, listing)]
    assert cached.tools(SERVERS[1]) is None


def test_what_the_user_declares_read_only_applies_without_asking_the_server_again(kept: Path) -> None:
    tools = CachedServers(kept).tools(SERVERS[2].replace(read_only=("send",)))
    assert tools is not None
    assert [spec.name for spec in tools if spec.reads_only] == ["trial__send", "mail__read_resource"]


def test_a_server_with_another_setup_is_asked_again(kept: Path) -> None:
    assert CachedServers(kept).tools(SERVERS[0].replace(args=("-q",))) is None
    assert Listings(kept).of(SERVERS[0].replace(args=("-q",))) is None


@pytest.mark.parametrize("damage", ["cut", "line", "entry", "tool", "rest", "nothing"])
def test_a_damaged_file_is_as_none_and_is_written_again(kept: Path, damage: str) -> None:
    lines = (kept / FILE).read_bytes().split(b"\n")
    whole = {
        "cut": b"\n".join(lines)[:-20],
        "line": b"\n".join([*lines[:2], *lines[3:]]),
        "entry": b"\n".join([lines[0].replace(b'"called"', b'"caller"'), *lines[1:]]),
        "tool": b"\n".join([lines[0], lines[1][:-1] + b"#", *lines[2:]]),
        "rest": b"\n".join([*lines[:-2], b"[]", lines[-1]]),
        "nothing": b"",
    }
    (kept / FILE).write_bytes(whole[damage])
    assert [CachedServers(kept).tools(server) for server in SERVERS] == [None] * 3
    listings = Listings(kept)
    assert [listings.of(server) for server in SERVERS] == [None] * 3
    listings.keep(SERVERS[0], FILES)
    assert Listings(kept).of(SERVERS[0]) == FILES


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
