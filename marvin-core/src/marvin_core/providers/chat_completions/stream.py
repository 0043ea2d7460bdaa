"""Decodes streamed chat completions into deltas."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ...api.messages import ProviderData, StopReason, Usage
from ...api.providers import Delta, Endpoint, Stop, ThinkingDelta
from ...util.numbers import amount, count_at
from ..http.answer_stream import AnswerStream
from ..http.thinking_tags import ThinkingTags
from .request import PLACE

if TYPE_CHECKING:
    from .reasoning_details import ReasoningDetails

_REASONS: dict[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
}


class ChatStream(AnswerStream):
    """Decodes one answer in the chat completions format."""

    def __init__(self, endpoint: Endpoint, url: str, taken_ids: Callable[[], Collection[str]] = tuple) -> None:
        super().__init__(endpoint, url, taken_ids)
        self._tags = ThinkingTags()
        self._details: ReasoningDetails | None = None
        self._signature: Any = None
        self._take_place = True
        self._place = ""
        self._reason = ""
        self._refused = False
        self._counted: Usage | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the stop reason has arrived, so that a lost connection loses nothing."""
        return self.done or bool(self._reason)

    def finish(self) -> list[Delta]:
        """The last deltas; the data that the service requires back with the whole answer comes before `Stop`."""
        deltas = super().finish()
        wanted = {"reasoning_details": self._details and self._details.all, "extra_content": self._signature}
        data = {name: value for name, value in wanted.items() if value}
        # After a truncated call, it would make the call look complete.
        if data and self.failure is None and deltas[-1] != Stop(reason="length"):
            provider_data = ProviderData(provider=self._endpoint.provider, data=data)
            deltas.insert(-1, ThinkingDelta(text="", provider_data=provider_data))
        return deltas

    def _document(self, document: Any) -> None:
        """An answer that is one JSON document, and not a stream."""
        self._chunk(document)
        if not isinstance(document, dict) or not document.get("choices"):
            raise self._broken("answered with JSON that is not a chat completion", bytes(self._plain or b""))
        self._reason = self._reason or "stop"

    def _event(self, payload: bytes) -> None:
        if payload.startswith(b"[DONE]"):
            self.done = True
        elif not self.done and payload.strip():
            self._chunk(self._parsed(payload))

    def _chunk(self, chunk: Any) -> None:
        if isinstance(chunk, list) and chunk:
            chunk = chunk[0]  # Gemini wraps its errors in a list
        try:
            usage = chunk.get("usage")
            if usage:
                self._count(usage)
            if chunk.get("error") or "base_resp" in chunk:
                self._check_error(chunk)
            if choices := chunk.get("choices"):
                self._choice(choices[0])
            elif not usage:
                self._check_error(chunk)
        except (AttributeError, TypeError, KeyError, IndexError):
            raise self._broken("sent an answer of an unknown shape", json.dumps(chunk).encode()) from None

    def _take(self) -> list[Delta]:
        out = super()._take()
        if self._place:
            # Told with the first piece of it. What is returned is the text itself, so its place is all that is kept.
            for number, delta in enumerate(out):
                if isinstance(delta, ThinkingDelta):
                    data = ProviderData(provider=self._endpoint.provider, data={PLACE: self._place})
                    out[number] = delta.replace(provider_data=data)
                    self._place = ""
                    break
        return out

    def _keep_details(self, pieces: list[dict[str, Any]]) -> None:
        from .reasoning_details import ReasoningDetails

        self._details = self._details or ReasoningDetails()
        self._weigh(self._details.add(pieces))

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or choice.get("message") or {}
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        if thinking:
            if self._take_place:
                self._came_in("reasoning_content" if delta.get("reasoning_content") else "reasoning")
            self._add("thinking", thinking if isinstance(thinking, str) else _text(thinking))
        if delta.get("reasoning_details"):
            self._keep_details(delta["reasoning_details"])
        if _is_signed(delta.get("extra_content")):
            self._signature = delta["extra_content"]
        content = delta.get("content") or ""
        for kind, text in self._tags.feed(content if isinstance(content, str) else self._parts_of(content)):
            self._add(kind, text)
        if delta.get("tool_calls") or choice.get("finish_reason"):
            self._release()
            if choice.get("usage"):  # Kimi counts there
                self._count(choice["usage"])
        if delta.get("refusal"):
            self._refused = True
            self._add("text", _text(delta["refusal"]))
        for item in delta.get("tool_calls") or ():
            self._switch(self._calls.take(item))
        if delta.get("function_call"):
            self._switch(self._calls.take({"function": delta["function_call"], "index": 0}))
        self._reason = choice.get("finish_reason") or self._reason
        if self._reason == "error":
            raise self._broken("reported an error inside the answer", json.dumps(choice).encode())

    def _count(self, usage: Any) -> None:
        """Take counts; those of nothing do not replace earlier ones, as some gateways end with zeros."""
        found = _usage(usage)
        if not found.cost and not self._endpoint.model.endswith(":free"):
            found = found.replace(cost=None)  # gateways state a cost of nothing for what is billed elsewhere
        if self._counted is None or found.input_tokens or found.output_tokens or found.cost:
            self._counted = self._usage = found

    def _came_in(self, place: str) -> None:
        """Record the field of thinking, once per answer."""
        self._take_place, self._place = False, place

    def _parts_of(self, content: Any) -> str:
        """The text of content in parts, of which some may be thinking."""
        for part in content:
            if part.get("type") == "thinking":
                if self._take_place:
                    self._came_in("content")
                self._add("thinking", _text(part["thinking"]))
        return _text(content)

    def _release(self) -> None:
        """Release text that could have become a tag."""
        for kind, text in self._tags.finish():
            self._add(kind, text)

    def _leftover(self) -> None:
        super()._leftover()
        self._release()

    def _stop_reason(self) -> StopReason:
        if self._refused:
            return "refused"
        # Many servers report "stop" after calls as well.
        # A few send an object in its place.
        return _REASONS.get(str(self._reason)) or ("tool_calls" if self._calls.all else "stop")


def _is_signed(extra: Any) -> bool:
    """Whether Gemini's own part of a delta has a signature; it also marks parts of reasoning there."""
    parts = extra.values() if isinstance(extra, dict) else ()
    return any(isinstance(part, dict) and "thought_signature" in part for part in parts)


def _text(content: Any) -> str:
    """Text that arrives as a string, or as a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content)


def _usage(counts: Any) -> Usage:
    prompt = count_at(counts, "prompt_tokens")
    hits = count_at(counts, "prompt_tokens_details", "cached_tokens") or count_at(counts, "prompt_cache_hit_tokens")
    return Usage(
        input_tokens=prompt,
        # Some services include reasoning in the total only.
        output_tokens=max(count_at(counts, "completion_tokens"), count_at(counts, "total_tokens") - prompt),
        cache_read_tokens=hits,
        cache_write_tokens=count_at(counts, "prompt_tokens_details", "cache_write_tokens"),
        reasoning_tokens=count_at(counts, "completion_tokens_details", "reasoning_tokens"),
        cost=_cost(counts) if isinstance(counts, dict) else None,
    )


def _cost(counts: dict[str, Any]) -> float | None:
    """The cost that the service states: OpenRouter a number, Perplexity an object with the parts and their sum."""
    stated = counts.get("cost")
    cost = amount(stated.get("total_cost") if isinstance(stated, dict) else stated)
    details = counts.get("cost_details")
    if cost is None or counts.get("is_byok") is not True or not isinstance(details, dict):
        return cost
    # The key is the user's own: the service behind OpenRouter bills the tokens, and OpenRouter its fee.
    return cost + (amount(details.get("upstream_inference_cost")) or 0.0)
