"""What is imported is looked at once by the garbage collector, and what was given up is freed all the same."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.util.garbage import end_exemptions, exempt_from_collection
from marvin_core.util.imports import file_module, load_module


class Knot:
    """An object that only a collection can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """A module of a user."""
    path = tmp_path / "one.py"
    path.write_text("from marvin_core import tool\n")
    yield path
    sys.modules.pop(file_module(str(path)), None)


def is_looked_at(thing: object) -> bool:
    return any(each is thing for each in gc.get_objects())


def test_what_earlier_tools_imported_is_not_looked_at_again(file: Path) -> None:
    earlier = Knot()
    assert is_looked_at(earlier)
    load_module(str(file))
    assert not is_looked_at(earlier)
    later = Knot()
    load_module(str(file))  # it is imported already
    assert is_looked_at(later)


def test_garbage_from_before_an_import_is_freed(file: Path) -> None:
    garbage = weakref.ref(Knot())
    load_module(str(file))
    assert garbage() is None


def test_what_became_garbage_since_is_freed_after_the_exemption() -> None:
    session = Knot()
    exempt_from_collection()
    known = weakref.ref(session)
    del session
    gc.collect()
    assert known() is not None
    end_exemptions()
    gc.collect()
    gc.freeze()  # as the tests are kept out of the way from the start
    assert known() is None


def test_nothing_is_exempt_while_nothing_is_collected(file: Path) -> None:
    earlier = Knot()
    gc.disable()
    try:
        load_module(str(file))
    finally:
        gc.enable()
    assert is_looked_at(earlier)
