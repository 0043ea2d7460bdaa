"""A home and a project in which calls are undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.testing import ToolRunner


class Desk:
    """A home and a project, and sessions in it one after the other."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.runner = ToolRunner(self.home, self.project, **options)

    def again(self, **options: Any) -> ToolRunner:
        """Another Marvin, after this one has ended."""
        self.runner.close()
        self.runner = ToolRunner(self.home, self.project, **options)
        return self.runner

    def refused(self, count: int = 1) -> str:
        """The message where calls cannot be undone."""
        with pytest.raises(MarvinError) as caught:
            self.runner.take_back(count)
        return str(caught.value)
