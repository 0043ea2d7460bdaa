"""What git stores of a content, kept aside from the objects of the repository: its filters run once more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from marvin_core import Record, ToolContext, ToolError, in_thread

from .running import failure, store, try_read

_LARGEST = 200_000_000


class Aside(Record):
    """A folder that git takes for that of its objects; those of the repository are its alternates."""

    context: ToolContext
    folder: Path

    async def store(self, path: str, content: bytes, attributes: str, *, alone: bool, keep: bool = False) -> str:
        """Store what git makes of a content. Returns its hash; empty if a filter fails.

        Args:
            path: the file that git takes it for.
            attributes: of the file, see `Conversion`.
            alone: whether filters of the repository are switched off.
            keep: whether it is stored in the repository, and not aside.
        """
        file = self.folder / "attributes"
        await in_thread(partial(file.write_text, f"* {attributes}\n", "utf-8", "surrogateescape"))
        return await store(self.context, path, content, file, {} if keep else self._env, alone=alone)

    async def read(self, name: str) -> bytes | None:
        """What is stored under a hash; None if it is too large."""
        result = await try_read(self.context, ["cat-file", "blob", name], _LARGEST, env=self._env)
        return result.output if result.exit_code == 0 and not result.omitted else None

    @property
    def _env(self) -> dict[str, str]:
        return {"GIT_OBJECT_DIRECTORY": str(self.folder / "objects")}


@asynccontextmanager
async def aside(context: ToolContext) -> AsyncIterator[Aside]:
    """A folder of objects in the git directory, removed at the end.

    Raises:
        ToolError: git fails, or its folder cannot be written.
    """
    asked = ["rev-parse", "--path-format=absolute", "--git-dir", "--git-path", "objects"]
    said = await try_read(context, asked)
    if said.exit_code != 0:
        raise failure(context, "git rev-parse", said)
    git_dir, objects = said.output.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
    folder = await in_thread(partial(_made, git_dir, objects))
    try:
        yield Aside(context=context, folder=folder)
    finally:
        await in_thread(partial(shutil.rmtree, folder, ignore_errors=True))


def _made(git_dir: str, objects: str) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="marvin-objects-", dir=git_dir))
        info = folder / "objects" / "info"
        info.mkdir(parents=True)
        (info / "alternates").write_text(f"{objects}\n", "utf-8", "surrogateescape")
    except OSError as error:
        raise ToolError(f"The git directory {git_dir} cannot be written: {error.strerror}.") from error
    return folder
