"""Records: immutable values that cost nothing at start-up, and refuse what they were not declared with."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import pytest

from marvin_core import Record


class Point(Record):
    kind: ClassVar[str] = "point"
    x: int
    y: int = 0


class Named(Point):
    name: str = "origin"


class One(Record):
    only: int


def test_fields_have_their_values_and_defaults() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=2).y) == (1, 0, 2)
    assert Named(x=1).as_dict() == {"x": 1, "y": 0, "name": "origin"}
    assert Point.kind == "point"


def test_a_missing_field_is_named() -> None:
    with pytest.raises(TypeError, match="Point needs x"):
        Point(y=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("values", [{"x": 1, "z": 2}, {"x": 1, "y": 2, "z": 3}, {"z": 3}])
def test_an_unknown_field_is_named_with_what_there_is(values: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Point has no field z; it has x, y"):
        Point(**values)


def test_a_wrong_name_in_place_of_the_only_field_is_refused() -> None:
    with pytest.raises(TypeError, match="One has no field other; it has only"):
        One(other=1)  # type: ignore[call-arg]


def test_a_record_cannot_be_changed() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError, match="immutable"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del point.x
    assert point.x == 1


def test_replace_makes_a_copy_and_checks_its_names() -> None:
    point = Point(x=1)
    assert point.replace(y=5) == Point(x=1, y=5)
    assert point == Point(x=1)
    with pytest.raises(TypeError, match="no field z"):
        point.replace(z=1)


def test_equality_is_by_type_and_values_and_agrees_with_the_hash() -> None:
    assert Point(x=1) == Point(y=0, x=1)
    assert hash(Point(x=1)) == hash(Point(y=0, x=1))
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Named(x=1)
    assert len({Point(x=1), Point(x=1), Point(x=2)}) == 2


def test_the_representation_shows_every_field_in_order() -> None:
    assert repr(Named(name="n", x=1)) == "Named(x=1, y=0, name='n')"


@pytest.mark.parametrize("default", [[], {}, set()])
def test_a_default_that_all_instances_would_share_and_change_is_refused(default: object) -> None:
    with pytest.raises(TypeError, match="must be immutable"):
        type("Bad", (Record,), {"__annotations__": {"field": "object"}, "field": default})


class Counted(Record):
    count: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.count


def test_a_copy_keeps_no_cached_property_of_the_original() -> None:
    counted = Counted(count=1)
    assert counted.twice == 2
    assert counted.replace(count=5).twice == 10
    with pytest.raises(TypeError, match="Counted has no field more"):
        counted.replace(more=1)
