"""What servers answer, as Marvin's results."""

from __future__ import annotations

import time
from typing import Any

from mcp_types import CallToolResult

from marvin_core.api.messages import Image, Text
from marvin_core.mcp.results import result_of

IMAGE = {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}


def shown(*blocks: dict[str, Any]) -> list[str]:
    """The texts of a result in their order; an image is shown as a word."""
    result = result_of(CallToolResult.model_validate({"content": list(blocks)}))
    assert isinstance(result.content, tuple)
    return [block.text if isinstance(block, Text) else "image" for block in result.content]


def test_neighbouring_texts_are_one_and_images_stay_between_them() -> None:
    one, two = {"type": "text", "text": "one"}, {"type": "text", "text": "two"}
    assert shown(one, two, IMAGE, IMAGE, two) == ["one\ntwo", "image", "image", "two"]


def test_of_many_images_the_first_are_kept_and_the_texts_between_them_stay_apart() -> None:
    word = {"type": "text", "text": "word"}
    found = shown(*[part for _ in range(12) for part in (IMAGE, word)])
    assert found.count("image") == 10
    assert found[-1] == "(2 more images were left out.)"
    assert "".join(found).count("word") == 12


def test_very_many_blocks_are_joined_in_a_moment() -> None:
    answer = CallToolResult.model_validate({"content": [{"type": "text", "text": "x" * 20}] * 150_000})
    begun = time.process_time()
    result = result_of(answer)
    assert time.process_time() - begun < 1.5
    assert isinstance(result.content, tuple)
    assert not any(isinstance(block, Image) for block in result.content)
    assert len(result.content) == 1
