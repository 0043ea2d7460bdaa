"""A conversation in the form of Copilot's runtime: what the runtime knows, and what it must be sent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ...api.messages import Image, Message, Text, ToolCall, ToolOutput
from ...api.record import Record

BEGUN_ELSEWHERE = (
    "The conversation so far, oldest first, one JSON object a line. It took place before this session; take it as if "
    'it had taken place here. "call" is a tool that the assistant called, "output" what came back: that is done, and '
    'is not to be done again. A number in "images" counts the attached images.'
)
GO_ON = "Continue from here, using the last outputs."
_SHOWN = "[From Marvin, not from the user: the attached images are the results of these calls, in this order: {}]"
_NOW = "Changes since then, from Marvin, not from the user: "


class Prompt(Record):
    """What to send: text, and the attached images."""

    text: str
    images: tuple[Image, ...] = ()


class Step(Record):
    """What a request adds to the runtime's knowledge: outputs of the calls it waits for, and a message."""

    outputs: tuple[ToolOutput, ...] = ()
    prompt: Prompt | None = None


class RuntimeTranscript(Record):
    """What the runtime knows: the messages of the last request, and an answer with this text and these calls."""

    messages: tuple[Message, ...]
    provider: str
    model: str
    text: str
    calls: tuple[str, ...] = ()

    def step(self, messages: Sequence[Message]) -> Step | None:
        """What these messages add; None if they do not continue what is known."""
        count = len(self.messages)
        if len(messages) <= count + 1 or not self._agrees(messages):
            return None
        rest = messages[count + 1 :]
        outputs: tuple[ToolOutput, ...] = ()
        if self.calls:
            outputs = rest[0].outputs
            if rest[0].role != "tool" or tuple(output.call_id for output in outputs) != self.calls:
                return None
            rest = rest[1:]
        elif not rest:
            return None
        if any(message.role != "user" for message in rest):
            return None
        prompt = _with_shown(outputs, said(rest))
        return Step(outputs=outputs, prompt=prompt if rest or prompt.images else None)

    def _agrees(self, messages: Sequence[Message]) -> bool:
        """Whether the messages begin with the known ones. Usually they are the same objects."""
        if any(a is not b and a != b for a, b in zip(self.messages, messages, strict=False)):
            return False
        answer = messages[len(self.messages)]
        return (
            answer.role == "assistant"
            and (answer.provider, answer.model) == (self.provider, self.model)
            and answer.text == self.text
            and tuple(call.id for call in answer.calls) == self.calls
        )


def said(messages: Sequence[Message]) -> Prompt:
    """The user's message, as a prompt."""
    images = tuple(block for message in messages for block in message.content if isinstance(block, Image))
    return Prompt(text="\n\n".join(filter(None, (message.text for message in messages))), images=images)


def _with_shown(outputs: Sequence[ToolOutput], prompt: Prompt) -> Prompt:
    """The prompt with the images of tool outputs: the runtime drops images that are part of an output."""
    shown = [(output, image) for output in outputs for image in output.content if isinstance(image, Image)]
    if not shown:
        return prompt
    whose = ", ".join(f"{output.name} ({output.call_id})" for output, _ in shown)
    text = f"{_SHOWN.format(whose)}\n\n{prompt.text}".strip()
    return Prompt(text=text, images=(*(image for _, image in shown), *prompt.images))


def whole(messages: Sequence[Message]) -> Prompt:
    """A conversation as the first prompt of a new session."""
    end = len(messages)
    while end and messages[end - 1].role == "user":
        end -= 1
    now = said(messages[end:])
    if not end:
        return now
    images: list[Image] = []
    lines = [json.dumps(entry, ensure_ascii=False) for entry in _entries(messages[:end], images)]
    parts = [BEGUN_ELSEWHERE, "<conversation>", *lines, "</conversation>", "", now.text or GO_ON]
    return Prompt(text="\n".join(parts), images=(*images, *now.images))


def with_news(prompt: Prompt, news: str) -> Prompt:
    """The prompt, preceded by changes in the part of the system prompt that a session cannot change."""
    return prompt.replace(text=f"[{_NOW}{news}]\n\n{prompt.text}")


def _entries(messages: Sequence[Message], images: list[Image]) -> Iterator[dict[str, Any]]:
    """The messages in order, without thinking. Images are added to `images` and numbered."""
    for message in messages:
        texts, shown = [], []
        for block in message.content:
            if isinstance(block, Text):
                texts.append(block.text)
            elif isinstance(block, Image):
                images.append(block)
                shown.append(len(images))
        if texts or shown:
            yield _entry(message.role, "".join(texts), shown)
        for block in message.content:
            if isinstance(block, ToolCall):
                yield {"call": block.name, "id": block.id, "arguments": block.arguments}
            elif isinstance(block, ToolOutput):
                yield _output(block, images)


def _output(output: ToolOutput, images: list[Image]) -> dict[str, Any]:
    shown = []
    for block in output.content:
        if isinstance(block, Image):
            images.append(block)
            shown.append(len(images))
    entry = _entry("output", output.text, shown)
    return {**entry, "id": output.call_id, "tool": output.name, **({"failed": True} if output.is_error else {})}


def _entry(key: str, text: str, images: list[int]) -> dict[str, Any]:
    return {key: text, **({"images": images} if images else {})}
