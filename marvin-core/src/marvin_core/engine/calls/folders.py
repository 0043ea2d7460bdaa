"""The folders of a pack, as a tool receives them."""

from __future__ import annotations

from pathlib import Path

from ...api.errors import ConfigError, ToolError
from ...api.tool_context import PackFolders


class FoldersOfCall:
    """The folders of a pack. Failure to create one is an error of the tool, which ends only its call."""

    def __init__(self, folders: PackFolders) -> None:
        self._folders = folders

    @property
    def data(self) -> Path:
        """For data that must not be lost."""
        return self._made("data")

    @property
    def cache(self) -> Path:
        """For data that can be created again."""
        return self._made("cache")

    @property
    def state(self) -> Path:
        """For data that outlives a run."""
        return self._made("state")

    @property
    def profile(self) -> Path:
        """For files that belong to the person."""
        return self._made("profile")

    def _made(self, name: str) -> Path:
        try:
            folder: Path = getattr(self._folders, name)
        except ConfigError as error:
            raise ToolError(str(error)) from error
        return folder
