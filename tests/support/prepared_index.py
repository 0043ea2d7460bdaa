"""The index of installed packs, built once for each process of tests and copied to where a test starts."""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from marvin_core.api.config import Config
from marvin_core.plugins.index import load_index
from marvin_core.plugins.model import Selection


def give_index(config: Config) -> Config:
    """The same configuration, its cache folder with the index of what it selects.

    Marvin looks whether that is current, as it does with its own: it rebuilds an index that it cannot use here.
    """
    config.cache_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for file in _prepared(config.packs, config.packs_off).glob("*.json"):
        shutil.copy2(file, config.cache_folder)
    return config


@cache
def _prepared(chosen: frozenset[str] | None, off: frozenset[str]) -> Path:
    folder = Path(mkdtemp(prefix="marvin-index-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    load_index(folder, selection=Selection(chosen=chosen, off=off))
    return folder
