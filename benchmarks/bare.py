"""The baseline script: the same exchanges with plain httpx clients, and nothing else.

    python bare.py async|sync BASE_URL PROMPT     a chat with a tool loop
    python bare.py spawn SHELL COUNT              COUNT times `SHELL -c true`; prints the nanoseconds of each

It is measured from its exec on, so each variant imports only what it uses. httpx also imports its own command
line where click, rich and pygments happen to be installed (60 ms); that is kept out, as no client needs it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def read_file(path: str) -> str:
    """The text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def create_file(path: str, content: str) -> str:
    """Write a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
    return f"Wrote {path}."


sys.modules["httpx._main"] = None  # type: ignore[assignment]

TOOLS: dict[str, Callable[..., str]] = {"read_file": read_file, "create_file": create_file}
SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": tool.__name__,
            "description": tool.__doc__,
            "parameters": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in parameters},
                "required": parameters,
            },
        },
    }
    for tool, parameters in ((read_file, ["path"]), (create_file, ["path", "content"]))
]


class Answer:
    """What one answer streams in."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[dict[str, Any]] = []

    def take(self, line: str) -> None:
        """Print or store the content of this line of the stream."""
        if not line.startswith("data: ") or line == "data: [DONE]":
            return
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                self.texts.append(delta["content"])
                print(delta["content"], end="", flush=True)
            for call in delta.get("tool_calls") or ():
                function = call["function"]
                if "id" in call:
                    self.calls.append({"id": call["id"], "name": function["name"], "arguments": []})
                self.calls[call["index"]]["arguments"].append(function.get("arguments", ""))

    def messages(self) -> list[dict[str, Any]]:
        """The answer and the outputs of its calls, as the next request carries them."""
        calls, outputs = [], []
        for call in self.calls:
            arguments = "".join(call["arguments"])
            function = {"name": call["name"], "arguments": arguments}
            calls.append({"id": call["id"], "type": "function", "function": function})
            output = TOOLS[call["name"]](**json.loads(arguments))
            outputs.append({"role": "tool", "tool_call_id": call["id"], "content": output})
        return [{"role": "assistant", "content": "".join(self.texts), "tool_calls": calls}, *outputs]


def body(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """One request."""
    return {"model": "scripted", "stream": True, "messages": messages, "tools": SCHEMAS}


def chat(base_url: str, prompt: str) -> None:
    """The chat, blocking."""
    import httpx

    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    with httpx.Client() as client:
        while True:
            answer = Answer()
            with client.stream("POST", f"{base_url}/chat/completions", json=body(messages)) as response:
                for line in response.iter_lines():
                    answer.take(line)
            if not answer.calls:
                return
            messages += answer.messages()


async def chat_async(base_url: str, prompt: str) -> None:
    """The chat, on asyncio."""
    import httpx

    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    async with httpx.AsyncClient() as client:
        while True:
            answer = Answer()
            async with client.stream("POST", f"{base_url}/chat/completions", json=body(messages)) as response:
                async for line in response.aiter_lines():
                    answer.take(line)
            if not answer.calls:
                return
            messages += answer.messages()


def spawn(shell: str, count: int) -> None:
    """The duration of `SHELL -c true`."""
    import subprocess
    import time

    taken = []
    for _ in range(count):
        begun = time.monotonic_ns()
        subprocess.run([shell, "-c", "true"], check=True)
        taken.append(time.monotonic_ns() - begun)
    print(json.dumps(taken))


if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        spawn(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "sync":
        chat(sys.argv[2], sys.argv[3])
    else:
        import asyncio

        asyncio.run(chat_async(sys.argv[2], sys.argv[3]))
