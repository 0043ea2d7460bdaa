"""Agents under test: a tool that starts them, a scripted model for each of them, and their processes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from marvin_core.testing import ModelServer, RecordedRequest, answers
from marvin_core.testing.answers import Answer

TOOL = '''
import json
from marvin_core import AgentTask, ToolContext, tool


@tool(access=["exec", "net"], parallel=True, sets=["coding"], timeout=900)
async def start_agent(context: ToolContext, prompt: str, fields: str = "{}") -> str:
    """Start an agent."""
    result = await context.agents.run(AgentTask(prompt=prompt, **json.loads(fields)), context.progress)
    return json.dumps({**result.as_dict(), "log": str(result.log)})
'''
"""A tool of the user's own, by which tests start agents that launch_agent does not."""


class AgentModels(ModelServer):
    """Answers each agent with the next answer of its own script, which the first word of its prompt selects."""

    def __init__(self, **scripts: Sequence[Answer]) -> None:
        self.scripts = {word: deque(script) for word, script in scripts.items()}
        super().__init__(models=("qwen/qwen3-32b", "qwen/qwen3-14b"))

    def answer_to(self, request: RecordedRequest) -> Answer:
        """The next answer for whoever asks."""
        if request.method != "POST":
            return super().answer_to(request)
        with self._lock:
            script = self.scripts.get(word_of(request))
            return script.popleft() if script else answers.error(500, f"no answer is left for {word_of(request)!r}")


def word_of(request: RecordedRequest) -> str:
    """Who asks: the first word of the prompt."""
    prompt = next(message for message in request.body["messages"] if message["role"] == "user")["content"]
    text = prompt if isinstance(prompt, str) else "".join(part.get("text", "") for part in prompt)
    return str(text.split()[0])


def asked_by(server: ModelServer, word: str) -> list[dict[str, Any]]:
    """The bodies of the requests that the agent of this word made."""
    posts = [request for request in server.requests if request.method == "POST"]
    return [request.body for request in posts if word_of(request) == word]


def start(prompt: str, **fields: Any) -> tuple[str, Mapping[str, Any]]:
    """A call that starts an agent."""
    import json

    return "start_agent", {"prompt": prompt, "fields": json.dumps(fields)}


class AgentProcess:
    """An agent that runs: its number, its command line and its environment."""

    def __init__(self, folder: Path) -> None:
        self.pid = int(folder.name)
        self.argv = (folder / "cmdline").read_bytes().decode().split("\0")[:-1]
        pairs = (entry.partition("=") for entry in (folder / "environ").read_bytes().decode().split("\0") if entry)
        self.environment = {name: value for name, _, value in pairs}

    @property
    def prompt_file(self) -> Path:
        """The file with its prompt."""
        return Path(next(word for word in self.argv if word.startswith("--prompt-file=")).partition("=")[2])

    @property
    def word(self) -> str:
        """The first word of its prompt."""
        return self.prompt_file.read_text().split()[0]


def agents_in(home: Path) -> dict[str, AgentProcess]:
    """The agents that run with this home folder, by the first words of their prompts (Linux)."""
    found = {}
    for agent in all_agents_in(home):
        with suppress(OSError, StopIteration, IndexError):
            found[agent.word] = agent
    return found


def all_agents_in(home: Path) -> list[AgentProcess]:
    """The agents that run with this home folder (Linux)."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(OSError, ValueError):
                agent = AgentProcess(folder)
                is_agent = any(word.startswith("--prompt-file=") for word in agent.argv)
                if "marvin_core" in agent.argv and is_agent and agent.environment.get("HOME") == str(home):
                    found.append(agent)
    return found


def processes_in(home: Path) -> list[str]:
    """Whatever runs with this home folder, as its command line (Linux)."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with suppress(OSError):
                if f"HOME={home}\0".encode() in (folder / "environ").read_bytes():
                    state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                    if state != "Z":
                        found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
