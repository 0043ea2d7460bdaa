"""Services that refuse what they are known to refuse, in their own words, and answer the rest with a script."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from marvin_core.testing import Answer, ModelServer, RecordedRequest, error

Rule = Callable[[Mapping[str, Any]], str]
"""The words in which a service refuses a request; empty where it takes it."""


class StrictServer(ModelServer):
    """Asks each rule in turn before it answers. `refused` holds what it said, `taken` the bodies that it took."""

    def __init__(self, *script: Answer, rules: tuple[Rule, ...] = (), status: int = 400) -> None:
        self.rules = rules
        self.status = status
        self.refused: list[str] = []
        self.taken: list[dict[str, Any]] = []
        super().__init__(*script)

    def answer_to(self, request: RecordedRequest) -> Answer:
        """A refusal, else the next answer of the script."""
        if request.method == "POST":
            said = next(filter(None, (rule(request.body) for rule in self.rules)), "")
            if said:
                self.refused.append(said)
                return error(self.status, said)
            self.taken.append(request.body)
        return super().answer_to(request)


def wants_reasoning(body: Mapping[str, Any]) -> str:
    """DeepSeek: of each answer, where it thinks."""
    thinks = body.get("thinking", {}).get("type") != "disabled"
    lacks = any(m["role"] == "assistant" and "reasoning_content" not in m for m in body["messages"])
    return "The `reasoning_content` in the thinking mode must be passed back to the API." if thinks and lacks else ""


def wants_reasoning_of_calls(body: Mapping[str, Any]) -> str:
    """Kimi: of each answer with calls."""
    for number, message in enumerate(body["messages"]):
        if "tool_calls" in message and "reasoning_content" not in message:
            return (
                f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {number}"
            )
    return ""


def wants_no_reasoning(body: Mapping[str, Any]) -> str:
    """Mistral, and others that check each field."""
    for number, message in enumerate(body["messages"]):
        for field in ("reasoning_content", "reasoning"):
            if field in message:
                where = f'"loc":["body","messages",{number},"assistant","{field}"]'
                return f'{{"type":"extra_forbidden",{where},"msg":"Extra inputs are not permitted"}}'
    return ""


def wants_nine(body: Mapping[str, Any]) -> str:
    """Mistral's own service, and templates of its models elsewhere."""
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            if not (len(call["id"]) == 9 and call["id"].isalnum() and call["id"].isascii()):
                return f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
    return ""


def wants_an_answer_to_outputs(body: Mapping[str, Any]) -> str:
    """Mistral's models."""
    roles = [message["role"] for message in body["messages"]]
    return "Unexpected role 'user' after role 'tool'" if ("tool", "user") in itertools.pairwise(roles) else ""


def wants_turns(body: Mapping[str, Any]) -> str:
    """Templates that know two roles."""
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    if all(before != after for before, after in itertools.pairwise(roles)):
        return ""
    return "Conversation roles must alternate user/assistant/user/assistant/..."


def wants_one_answer_at_the_end(body: Mapping[str, Any]) -> str:
    """llama.cpp."""
    roles = [message["role"] for message in body["messages"]]
    return "Cannot have 2 or more assistant messages at the end of the list." if roles[-2:] == ["assistant"] * 2 else ""


def wants_the_user_last(body: Mapping[str, Any]) -> str:
    """Mistral, and newer models of Anthropic behind gateways."""
    if body["messages"][-1]["role"] in ("user", "tool"):
        return ""
    return "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"


def wants_turns_or_outputs(body: Mapping[str, Any]) -> str:
    """A template of Mistral's: after the user, and after an output, the model speaks."""
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    pairs = set(itertools.pairwise(roles))
    if pairs & {("user", "user"), ("assistant", "assistant"), ("tool", "user")}:
        return "After the optional system message, conversation roles must alternate user and assistant roles."
    return ""
