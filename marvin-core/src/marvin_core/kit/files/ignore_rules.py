"""What .gitignore files exclude, where git itself cannot be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...api.errors import ToolError
from ...api.tool_context import ToolContext

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NEVER = (".git", ".tickets")
"""Folders that are not listed, whatever their case."""


class IgnoreRules:
    """The rules of the .gitignore files from one folder downwards, each read when it is first needed.

    Args:
        top: the folder whose .gitignore is the first that counts, relative to the root; empty for the root.
    """

    def __init__(self, context: ToolContext, top: str = "") -> None:
        self._context = context
        self._top = top
        self._specs: dict[str, GitIgnoreSpec | None] = {}

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path below the top is excluded; the deepest file that has a rule for it decides."""
        folder = path
        while folder != self._top and folder:
            folder = folder.rpartition("/")[0]
            spec = self._spec(folder)
            if spec is not None:
                below = path[len(folder) + 1 :] if folder else path
                decision = spec.check_file(f"{below}/" if is_folder else below).include
                if decision is not None:
                    return decision
        return False

    def ignores_above(self, path: str) -> bool:
        """Whether a folder, or one that it is in, is excluded."""
        names = path.split("/")
        return any(self.ignores("/".join(names[: end + 1]), is_folder=True) for end in range(len(names)))

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            self._specs[folder] = self._load(f"{folder}/.gitignore" if folder else ".gitignore")
        return self._specs[folder]

    def _load(self, path: str) -> GitIgnoreSpec | None:
        try:
            with self._context.paths.open(path) as file:
                lines = file.read().decode("utf-8", "replace").splitlines()
        except ToolError:
            return None
        from pathspec import GitIgnoreSpec  # 8 ms, and most folders have no such file

        return GitIgnoreSpec.from_lines(lines)
