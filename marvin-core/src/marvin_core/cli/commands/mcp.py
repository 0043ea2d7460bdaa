"""The sub-command `marvin mcp`: lists, adds, tests and removes MCP servers, and serves Marvin's tools."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...api.config import McpServer
from ...api.errors import ConfigError, ToolError, UsageError
from ...config.load import SERVED_BEHIND
from ...config.mcp_servers import filled_in, server_of
from ...config.program import command_name
from ...config.stored.settings import store_setting
from ...guard.trust import SERVERS, TrustStore
from ...mcp.listed import Listing, Listings
from ...mcp.login.kept import Logins, secrets_in
from ...mcp.session import SessionServers
from ...util.terminal_text import exact_line, json_for_terminals
from ...util.text import counted, unknown_name
from ..project import how_to_trust
from ..run import CommandContext, group
from ..watched import run_watched

if TYPE_CHECKING:
    from ...engine.session import Session

_KEY = "mcp_servers"


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    mcp = group("MCP servers: list, add, test and remove them, log in to them, and serve Marvin's tools.", list_servers)
    mcp.command("list")(list_servers)
    mcp.command("add", context_settings={"ignore_unknown_options": True})(add)
    mcp.command("test")(test)
    mcp.command("remove")(remove)
    mcp.command("login")(login)
    mcp.command("logout")(logout)
    mcp.command("serve")(serve)
    app.add_typer(mcp, name="mcp")


def list_servers(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the servers, and what each one provides as far as it is known. No server is started."""
    run: CommandContext = context.obj
    listings = Listings(run.config.cache_folder)
    servers = run.config.mcp_servers
    if as_json:
        found = [_entry(server, listings.of(server)) for server in servers.values()]
        run.write(json_for_terminals(json.dumps(found, ensure_ascii=False, indent=2)) + "\n")
        return
    for server in servers.values():
        run.write(f"{server.name:16}  {exact_line(_reached(server))}\n{'':16}  {_known(server, listings.of(server))}\n")
    if not servers:
        run.write(f"There are no servers. Add one with `{command_name()} mcp add NAME COMMAND...` or `--url URL`.\n")
    if os.path.lexists(run.config.working_dir / SERVERS):
        trust = TrustStore(run.config).look(run.config.working_dir)
        if not trust.trusted:
            run.write(f"\n{SERVERS} of this folder is not used: {trust.why}. {how_to_trust(trust)}\n")


def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the server in Marvin.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND", help="The program that is the server, and its arguments. Write -- before them."
        ),
    ] = None,
    url: Annotated[str, typer.Option(help="The address of a server that is already running.")] = "",
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="A variable for the program. ${NAME} stands for a variable of your environment."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A header of requests to --url. ${NAME} stands for a variable of your environment.",
        ),
    ] = None,
    read_only: Annotated[
        list[str] | None,
        typer.Option("--read-only", metavar="TOOL", help="A tool that changes nothing, or a pattern with * and ?."),
    ] = None,
    sandbox: Annotated[bool, typer.Option(help="Whether the program runs in the sandbox.")] = True,
    sampling: Annotated[
        str, typer.Option(help="Whether the server may send requests to your model: deny, ask or allow.")
    ] = "",
    client_id: Annotated[
        str,
        typer.Option(metavar="ID", help="The id with which Marvin is registered at the login service of the server."),
    ] = "",
    client_secret: Annotated[
        str,
        typer.Option(
            metavar="SECRET", help="The secret of this id. ${NAME} stands for a variable of your environment."
        ),
    ] = "",
    try_it: Annotated[
        bool, typer.Option("--test/--no-test", help="Whether to start the server once, to test it.")
    ] = True,
) -> None:
    """Add a server to config.yaml, and test it."""
    run: CommandContext = context.obj
    words = list(command or ())
    entry: dict[str, Any] = {
        "command": words[0] if words else None,
        "args": words[1:] or None,
        "url": url or None,
        "env": _pairs("--env", env) or None,
        "headers": _pairs("--header", header) or None,
        "read_only": read_only or None,
        "sandbox": None if sandbox else False,
        "sampling": sampling or None,
        "client_id": client_id or None,
        "client_secret": client_secret or None,
    }
    kept = {key: value for key, value in entry.items() if value is not None}
    try:
        server = server_of(name, kept, "this command")
    except ConfigError as error:
        raise UsageError(str(error)) from error
    if name in run.config.mcp_servers:
        raise UsageError(f"There is a server {name} already. Remove it first: `{command_name()} mcp remove {name}`.")
    path = store_setting(run.config, [_KEY, name], kept)
    run.write(f"{path}: the server {name} was added.\n")
    if try_it:
        run.config = run.config.replace(mcp_servers={**run.config.mcp_servers, name: server})
        test(context, name)


def test(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.")],
) -> None:
    """Start a server, and list its tools, prompts and resources. Every session then knows them."""
    run: CommandContext = context.obj
    session = run.session()
    source = _source(session)
    if source is None or name not in source.servers.configured:
        raise UsageError(unknown_name("server", name, run.config.mcp_servers))
    begun = time.monotonic()

    async def asked() -> tuple[Listing, Sequence[str]]:
        servers = source.servers
        listing = await servers.ask(name)
        connection = servers.connection(name)
        if not listing.resources:
            return listing, []
        try:
            found = await connection.use(lambda client: client.list_resources())
        except ToolError:  # the server has resources, but cannot list them
            return listing, []
        return listing, [resource.uri for resource in found.resources]

    listing, resources = run_watched(run, asked(), close=session.close, rescue=session.rescue)
    run.write(f"{name} answered after {time.monotonic() - begun:.1f} s, including its start.\n")
    for tool in listing.tools:
        run.write(f"  {tool.name}  {exact_line(tool.description.partition(chr(10))[0][:100])}\n")
    for prompt in listing.prompts:
        run.write(f"  /{name}:{exact_line(prompt.name)}  {exact_line(prompt.description[:100])}\n")
    for uri in resources[:20]:
        run.write(f"  @{name}:{exact_line(uri)}\n")
    for left_out in listing.left_out:
        run.write(f"  not offered: {exact_line(left_out)}\n")


def login(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a server with an address.")],
) -> None:
    """Log in to a server at an address, in the browser. The login is stored until `logout`."""
    run: CommandContext = context.obj
    server = _with_address(run, name)
    try:
        from ...mcp.login.by_hand import LoggingIn
    except ImportError as error:
        raise _needs_sdk(error) from error
    run.secrets.watch(_logins(run).path, secrets_in)
    filled = filled_in(server, run.secrets)
    read_line = sys.stdin.readline if run.streams.stdin_is_terminal() else None
    logging_in = LoggingIn(filled, run.config, lambda text: run.write(f"{text}\n"), read_line, run.secrets.setting)
    run.write(f"{run_watched(run, logging_in.run())}\n")
    if not server.off:
        test(context, name)


def logout(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of a server with an address.")],
) -> None:
    """Remove the stored login of a server."""
    run: CommandContext = context.obj
    logins = _logins(run)
    if logins.forget(name):
        run.write(f"{logins.path}: the login of {name} was removed.\n")
    else:
        _with_address(run, name)
        run.write(f"No login of {name} is stored.\n")


def serve(
    context: typer.Context,
    tools: Annotated[str, typer.Option(help="Sets, groups and names of tools, as in --tools.")] = "",
    http: Annotated[
        int | None,
        typer.Option(metavar="PORT", min=0, max=65535, help="Serve on 127.0.0.1 at this port; 0 for a free one."),
    ] = None,
) -> None:
    """Serve Marvin's tools to another program, on standard input and output.

    The permissions of config.yaml apply. If a call needs approval, the user of the other program is asked.
    """
    run: CommandContext = context.obj
    try:
        from ...mcp.serving import AsksClient, serve_http, serve_stdio
    except ImportError as error:
        raise _needs_sdk(error) from error
    run.config = run.config.replace(tools=tools or run.config.tools)
    given = run.secrets.value(SERVED_BEHIND, default="")
    client = AsksClient()
    session = run.app().session(asker=client.ask, interactive=False, ui=client)
    if http is None:
        run_watched(run, serve_stdio(session), close=session.close, rescue=session.rescue)
        return
    token = given or secrets.token_urlsafe(32)

    def ready(port: int) -> None:
        run.warn(f"Serving on http://127.0.0.1:{port}/mcp with the header `Authorization: Bearer ...`.")
        run.warn(f"The token is that of {SERVED_BEHIND}." if given else f"The token of this run: {token}")

    run_watched(
        run, serve_http(session, (http, run.timeouts.close), token, ready), close=session.close, rescue=session.rescue
    )


def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.")],
) -> None:
    """Remove a server from config.yaml."""
    run: CommandContext = context.obj
    own = [server.name for server in run.config.mcp_servers.values() if server.origin != SERVERS]
    if name not in own:
        raise UsageError(unknown_name("server", name, own))
    path = store_setting(run.config, [_KEY, name], None)
    Listings(run.config.cache_folder).forget(name)
    _logins(run).forget(name)
    run.write(f"{path}: the server {name} was removed.\n")


def _logins(run: CommandContext) -> Logins:
    return Logins(run.config.config_folder, run.timeouts)


def _with_address(run: CommandContext, name: str) -> McpServer:
    server = run.config.mcp_servers.get(name)
    if server is not None and not server.url:
        raise UsageError(f"{name} is started as a program, so it has no login. Only servers with an address have one.")
    if server is None:
        raise UsageError(unknown_name("server", name, [one.name for one in run.config.mcp_servers.values() if one.url]))
    return server


def _needs_sdk(error: ImportError) -> ConfigError:
    return ConfigError(f"This needs the Python package mcp ({error}): pip install 'marvin-core[mcp]'")


def _source(session: Session) -> SessionServers | None:
    source = session.parts.setup.tool_source
    return source if isinstance(source, SessionServers) else None


def _reached(server: McpServer) -> str:
    return server.url or " ".join([server.command, *server.args])


def _known(server: McpServer, listing: Listing | None) -> str:
    if server.off:
        return f"off ({server.origin})"
    if listing is None:
        return f"not asked yet ({server.origin})"
    return f"{counted(len(listing.tools), 'tool')}, {counted(len(listing.prompts), 'prompt')} ({server.origin})"


def _entry(server: McpServer, listing: Listing | None) -> dict[str, Any]:
    return {
        "name": server.name,
        "command": [server.command, *server.args] if server.command else None,
        "url": server.url or None,
        "origin": server.origin,
        "off": server.off,
        "sandbox": server.sandbox,
        "tools": None if listing is None else [tool.name for tool in listing.tools],
    }


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} takes NAME=VALUE, not {one!r}.")
        pairs[name] = value
    return pairs
