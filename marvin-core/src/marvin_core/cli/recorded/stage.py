"""Replays a cassette: a session for each of its conversations, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...api.config import Config, OnAsk
from ...api.errors import UsageError
from ...api.record import Record
from ...app import App
from ...config.load import load
from ...config.secrets import Secrets
from ...engine.session import Session
from ...recording.cassette import Cassette, Recorded
from ...recording.playing import How, Player
from ...recording.report import Report

if TYPE_CHECKING:
    from ...api.events import Event


class Stage(Record):
    """The environment of a replay.

    `config` and `secrets` are the user's. `folder` is an empty folder for the home and the working directory of a
    replay with recorded tools. If `work` is set, real tools work in that folder, with this `environment` and without
    the user's settings: this is for Marvin's own cassettes. `listen` is called with each event of the session, but
    not with events of sub-agents.
    """

    config: Config
    secrets: Secrets
    folder: Path
    on_ask: OnAsk = "deny"
    work: Path | None = None
    environment: Mapping[str, str] = MappingProxyType({})
    listen: Callable[[Event], None] | None = None


async def replayed(cassette: Cassette, stage: Stage, how: How) -> Report:
    """Replay all conversations of a cassette.

    Raises:
        CassetteError: the cassette is empty.
    """
    report = Report()
    main = cassette.main
    for note in cassette.notes:
        report.note(note)
    for number, of in enumerate(cassette.conversations.values()):
        is_main = of is main
        # Tools of sub-agents are never real, since the recorded changes of agents are not there in a replay.
        its_how = how if is_main else how.replace(real=False)
        player = Player(of, its_how, report, "" if is_main else f"sub-agent {number}, ")
        session = _session(of, its_how, stage, player, report, number)
        if is_main and stage.listen is not None:
            session.subscribe(stage.listen)
        try:
            await player.play(session)
        finally:
            await session.close()
    return report


def _session(of: Recorded, how: How, stage: Stage, player: Player, report: Report, number: int) -> Session:
    """Open a session for a conversation. If its tools cannot be selected here, report it and offer all tools."""
    of_user = how.real and stage.work is None
    config, secrets = (_of_user(of, stage), stage.secrets) if of_user else _of_nobody(of, stage, number)
    try:
        return _opened(config, secrets, player, report)
    except UsageError as error:
        report.note(f"the tools were others: {error}")
        return _opened(config.replace(tools=""), secrets, player, report)


def _opened(config: Config, secrets: Secrets, player: Player, report: Report) -> Session:
    app = App(config, secrets, report.note)
    app.watch = player
    return app.session(asker=None, interactive=False)


def _of_user(of: Recorded, stage: Stage) -> Config:
    """The user's own configuration with its permissions. A cassette can only restrict them."""
    return _as_recorded(of, stage.config).replace(
        tools=stage.config.tools or _tools(of),
        read_only=stage.config.read_only or of.head.get("read_only") is True,
        on_ask=stage.on_ask,
        on_ask_tools={},
        seed=False,
    )


def _of_nobody(of: Recorded, stage: Stage, number: int) -> tuple[Config, Secrets]:
    """A default configuration in separate folders, so that the user's own files are neither read nor written."""
    home, work = stage.folder / f"home-{number}", stage.work or stage.folder / f"work-{number}"
    for folder in (home, work):
        folder.mkdir(mode=0o700, exist_ok=True)
    config, secrets = load(["--non-interactive"], {**stage.environment, "HOME": str(home)}, cwd=work)
    config = _as_recorded(of, config).replace(
        tools=_tools(of),
        non_interactive=stage.work is not None or of.head.get("attended") is not True,
        read_only=of.head.get("read_only") is True,
        on_ask="allow-all",
        cache_folder=stage.config.cache_folder,
        packs=stage.config.packs,
        packs_off=stage.config.packs_off,
        packs_prefer=stage.config.packs_prefer,
    )
    return config, secrets


def _as_recorded(of: Recorded, config: Config) -> Config:
    search, schema = of.head.get("tool_search"), of.head.get("output_schema")
    return config.replace(
        prompt=None,
        prompt_file=None,
        non_interactive=True,
        record=None,
        resume="",
        continue_session=False,
        max_cost=None,
        ledger="",
        tool_search=search if search in ("on", "off", "auto") else config.tool_search,
        output_schema=schema if isinstance(schema, dict) else None,
    )


def _tools(of: Recorded) -> str:
    tools = of.head.get("tools")
    return tools if isinstance(tools, str) else ""
