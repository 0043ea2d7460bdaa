"""What git stores of a content, kept aside from the objects of the repository: its filters run once more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from io import BytesIO
from pathlib import Path

from marvin_core import Record, ToolContext, ToolError, in_thread

from .running import failure, hash_object, try_read

_LARGEST = 200_000_000


class Aside(Record):
    """A folder that git takes for that of its objects; those of the repository are its alternates.

    Filters may run git themselves. There they see that folder, too, and must not have a ref lead to what they store in
    it. So git is told that it is a quarantine, in which it changes no ref.
    """

    context: ToolContext
    folder: Path
    alone: bool
    """Whether filters of the repository are switched off."""

    async def hash(self, path: str, content: bytes, attributes: str, *, keep: bool = False) -> str:
        """The hash of what git makes of a content; empty if a filter fails.

        Args:
            path: the file that git takes it for.
            attributes: of the file, see `Conversion`; for a content, git does not look for them in the index.
            keep: whether to store it in the repository.
        """
        options = ["hash-object", *(["-w"] if keep else [])]
        settings = await self._settings(attributes)
        return await hash_object(self.context, path, content, [*settings, *options], alone=self.alone)

    async def store(self, path: str, content: bytes, attributes: str) -> str:
        """Store what git makes of a content, as `hash` does, but aside."""
        options = [*await self._settings(attributes), "hash-object", "-w"]
        return await hash_object(self.context, path, content, options, alone=self.alone, env=self._env)

    async def read(self, names: Iterable[str]) -> Mapping[str, bytes]:
        """What is stored under each hash, without what is missing or too large."""
        stdin = "".join(f"{name}\n" for name in names if name).encode()
        result = await try_read(self.context, ["cat-file", "--batch"], _LARGEST, stdin=stdin, env=self._env)
        if result.exit_code != 0 or result.omitted:
            return {}
        batch, found = BytesIO(result.output), dict[str, bytes]()
        for line in iter(batch.readline, b""):
            name, kind, *size = line.decode().split()
            if kind == "blob":
                found[name] = batch.read(int(size[0]))
                batch.readline()
        return found

    async def _settings(self, attributes: str) -> Sequence[str]:
        file = self.folder / "attributes"
        await in_thread(partial(file.write_text, f"* {attributes}\n", "utf-8", "surrogateescape"))
        return ["-c", f"core.attributesFile={file}"]

    @property
    def _env(self) -> Mapping[str, str]:
        objects = str(self.folder / "objects")
        return {"GIT_OBJECT_DIRECTORY": objects, "GIT_QUARANTINE_PATH": objects}


@asynccontextmanager
async def aside(context: ToolContext, *, alone: bool) -> AsyncIterator[Aside]:
    """A folder of objects in the git directory, removed at the end.

    Args:
        alone: whether filters of the repository are switched off.

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
        yield Aside(context=context, folder=folder, alone=alone)
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
