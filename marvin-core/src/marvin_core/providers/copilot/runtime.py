"""Copilot's runtime: the program that its SDK starts and uses, separate from the user's own setup of the program."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.providers import Endpoint
from ...guard.processes.table import adopts_orphans, start_of, ticks
from ...guard.processes.tree import MARKER, Family
from ...util.threads import in_thread
from .installation import own_folder, program_environment

if TYPE_CHECKING:
    from types import ModuleType

_STARTER = "import os,sys;os.setsid();open(sys.argv[1],'w').write(str(os.getpid()));os.execv(sys.argv[2],sys.argv[2:])"
"""Starts the program in a process session of its own, which Ctrl+C in the terminal does not reach, and stores its id.
"""
_TOLD = "pid"
_PREFIX = "marvin-copilot-"


class Runtime:
    """The program. It is started when first needed, and restarted after a crash.

    All its files are in a folder of its own, which is removed at the end. Of the user's setup, only the login is used:
    MCP servers, plugins and settings would bypass Marvin's permissions.
    """

    def __init__(self, endpoint: Endpoint, program: str, environment: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._program = program
        self._environment = environment
        self._timeouts = endpoint.timeouts
        self._client: Any = None
        self._family: Family | None = None
        self._folder: Path | None = None

    async def client(self) -> Any:
        """The connected client of the SDK.

        Raises:
            Unreachable: the program does not start.
        """
        if self._client is not None and not self.is_alive():
            await self.stop()
        if self._client is None:
            try:
                await self._start()
            except BaseException:
                await self.stop()
                raise
        return self._client

    def is_alive(self) -> bool:
        """Whether the program runs."""
        return self._family is not None and start_of(self._family.pid) is not None

    async def _start(self) -> None:
        import tempfile

        from .errors import not_started

        await in_thread(lambda: remove_leftovers(Path(tempfile.gettempdir())))
        sdk = await in_thread(imported_sdk)
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        told = self._folder / _TOLD
        token, since = os.urandom(8).hex(), ticks()
        self._client = self._made(sdk, told, token)
        adopts_orphans()
        try:
            async with asyncio.timeout(self._timeouts.runtime_start):
                await self._client.start()
        except TimeoutError:
            reason = f"it did not answer within {self._timeouts.runtime_start:g} s"
            raise not_started(self._endpoint, self._program, reason) from None
        except Exception as error:  # the SDK raises whatever its parts raise
            raise not_started(self._endpoint, self._program, str(error)) from None
        finally:
            if told.is_file():
                self._family = Family(int(told.read_text()), token, since)

    def _made(self, sdk: ModuleType, told: Path, token: str) -> Any:
        folder = str(told.parent)
        own = bool(self._endpoint.base_url)
        environment = program_environment(self._environment, with_login=not own)
        environment[MARKER] = f"{environment.get(MARKER, '')}{token}."
        if not own:
            self._link_login(told.parent)
        starter = ("-I", "-S", "-c", _STARTER, str(told), self._program)
        return sdk.CopilotClient(
            connection=sdk.RuntimeConnection.for_stdio(path=sys.executable, args=starter),
            env=environment,
            base_directory=folder,
            working_directory=folder,
            log_level="error",
            use_logged_in_user=not own,
        )

    def _link_login(self, folder: Path) -> None:
        """Link the login of `copilot`; the login of `gh` is found without a link."""
        login = own_folder(self._environment) / "config.json"
        if login.is_file():
            (folder / "config.json").symlink_to(login.resolve())

    async def stop(self) -> None:
        """End the program and its descendants, and remove its folder. A cancellation ends the wait, but not the
        cleanup.
        """
        client, self._client = self._client, None
        family, self._family = self._family, None
        folder, self._folder = self._folder, None
        if client is not None or folder is not None:
            await asyncio.shield(asyncio.ensure_future(self._end(client, family, folder)))

    async def _end(self, client: Any, family: Family | None, folder: Path | None) -> None:
        import shutil

        try:
            if client is not None:
                await self._disconnect(client)
        finally:
            if family is not None:
                family.reaped()
                family.kill()
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    async def _disconnect(self, client: Any) -> None:
        try:
            async with asyncio.timeout(self._timeouts.close):
                await client.stop()
        except Exception:  # whatever keeps it from ending by itself, it is ended
            await client.force_stop()


def remove_leftovers(folder: Path) -> None:
    """Remove the folders of runtimes whose Marvin was killed: they contain conversations."""
    import shutil

    for left in folder.glob(f"{_PREFIX}*"):
        try:
            dead = left.stat().st_uid == os.getuid() and start_of(int((left / _TOLD).read_text())) is None
        except (OSError, ValueError):  # another Marvin's, which is just being made or removed
            continue
        if dead:
            shutil.rmtree(left, ignore_errors=True)


def imported_sdk() -> ModuleType:
    """The SDK, with its logging disabled: messages would be printed into the chat. Its import takes seconds."""
    import logging

    import copilot  # type: ignore[import-not-found]

    logging.getLogger("copilot").addHandler(logging.NullHandler())
    module: ModuleType = copilot
    return module
