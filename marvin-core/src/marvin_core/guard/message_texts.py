"""Reads and replaces the texts of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..api.messages import Block, Message, Text, Thinking, ToolCall, ToolOutput


def with_texts(message: Message, change: Callable[[Sequence[str]], list[str]]) -> Message:
    """The message with what `change` makes of all its texts, in their order."""
    texts = [text for block in message.content for text in _texts_of(block)]
    changed = change(texts)
    if changed == texts:
        return message
    left = iter(changed)
    return message.replace(content=tuple(_with_texts(block, left) for block in message.content))


def _texts_of(block: Block) -> Iterator[str]:
    if isinstance(block, (Text, Thinking)):
        yield block.text
    elif isinstance(block, ToolCall):
        yield block.arguments
    elif isinstance(block, ToolOutput):
        for part in block.content:
            yield from _texts_of(part)
        yield block.lasting


def _with_texts(block: Block, texts: Iterator[str]) -> Block:
    """The block with other texts in the place of its own."""
    if isinstance(block, Text):
        return block.replace(text=next(texts))
    if isinstance(block, Thinking):
        text = next(texts)
        # A service that signed its reasoning refuses it once it is another one.
        return block if text == block.text else Thinking(text=text)
    if isinstance(block, ToolCall):
        return block.replace(arguments=next(texts))
    if isinstance(block, ToolOutput):
        content = tuple(_with_texts(part, texts) for part in block.content)
        return block.replace(content=content, lasting=next(texts))
    return block
