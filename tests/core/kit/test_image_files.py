"""Whether services take an image: with an invalid one they refuse each further request of the conversation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from marvin_core import image_flaw
from tests.support.images import gif, jpeg, png, webp

KINDS = [png, jpeg, gif, webp]


@pytest.mark.parametrize("made", KINDS)
def test_a_whole_image_has_no_flaw(made: Callable[..., bytes]) -> None:
    assert image_flaw(made()) == ""
    assert image_flaw(made(8_000, 600)) == ""
    assert image_flaw(made() + b"\0\0\0") == ""
    assert image_flaw(made() + b"\n") == ""


@pytest.mark.parametrize("made", [png, jpeg, gif])
@pytest.mark.parametrize("size", [(0, 0), (5, 0), (0, 5)])
def test_an_image_without_pixels_is_named(made: Callable[..., bytes], size: tuple[int, int]) -> None:
    assert image_flaw(made(*size)) == "it is cut off or damaged"


@pytest.mark.parametrize("made", KINDS)
def test_a_cut_image_is_named(made: Callable[..., bytes]) -> None:
    whole = made()
    for size in range(16, len(whole)):
        assert image_flaw(whole[:size]) == "it is cut off or damaged", size


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("size", [(8_001, 1), (1, 9_000)])
def test_an_image_of_too_many_pixels_is_named(made: Callable[..., bytes], size: tuple[int, int]) -> None:
    assert (
        image_flaw(made(*size)) == f"it has {size[0]:,} x {size[1]:,} pixels, and services take 8,000 in each direction"
    )
