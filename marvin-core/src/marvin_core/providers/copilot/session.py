"""One session of Copilot's runtime, with our tools and our system prompt only."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ...api.messages import ToolOutput
from ...api.providers import Endpoint, Request
from ...api.tools import ToolSpec
from ..http.tool_forms import LONGEST_AT_OPENAI, described
from .runtime import Runtime, imported_sdk
from .transcript import Prompt

_LISTENS = ("assistant.", "model.", "session.error", "session.idle")


class Setup:
    """The fixed properties of a session: model, tools, the stable part of the system prompt, thinking level."""

    def __init__(self, request: Request) -> None:
        last = request.tool_choice == "none"
        stable = request.stable if request.stable and not last else len(request.system)
        self.system = request.system
        self.news = request.system[stable:].strip()
        self.tools: tuple[ToolSpec, ...] = () if last else request.tools
        self.thinking = request.thinking
        self._fixed = request.system[:stable]

    def allows(self, other: Setup) -> bool:
        """Whether a session with this setup can continue with the other one."""
        return (self._fixed, self.thinking) == (other._fixed, other.thinking) and (
            self.tools is other.tools or self.tools == other.tools
        )


class CopilotSession:
    """A session, created by `begin`; `next_event` returns its events.

    The runtime runs the loop of tool calls itself. Our handlers only wait: Marvin runs a call between two requests, and
    `answer` passes the result to its handler.
    """

    def __init__(self, runtime: Runtime, setup: Setup) -> None:
        self.setup = setup
        self.news = setup.news
        self._runtime = runtime
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._outputs: dict[str, asyncio.Future[Any]] = {}
        self._session: Any = None

    async def begin(self, endpoint: Endpoint) -> None:
        """Create the session in the runtime, which is started if necessary."""
        client = await self._runtime.client()
        names = [tool.name for tool in self.setup.tools]
        effort = self.setup.thinking if self.setup.thinking != "off" else None
        self._session = await client.create_session(
            model=endpoint.model,
            reasoning_effort=effort,
            provider=_own_provider(endpoint),
            tools=[self._tool(tool) for tool in self.setup.tools],
            available_tools=names,
            system_message={"mode": "replace", "content": self.setup.system},
            streaming=True,
            on_event=self._on_event,
            on_permission_request=_deny,
            **_NOTHING_OF_ITS_OWN,
        )

    def _tool(self, spec: ToolSpec) -> Any:
        return imported_sdk().Tool(
            name=spec.name,
            description=described(spec, LONGEST_AT_OPENAI),
            parameters=dict(spec.parameters),
            handler=self._wait_for_output,
            overrides_built_in_tool=True,  # some of ours have names of theirs
            skip_permission=True,  # Marvin's own gate decides
            defer="never",
        )

    async def _wait_for_output(self, call: Any) -> Any:
        return await self._output_of(call.tool_call_id)

    def _output_of(self, call_id: str) -> asyncio.Future[Any]:
        if call_id not in self._outputs:
            self._outputs[call_id] = asyncio.get_running_loop().create_future()
        return self._outputs[call_id]

    def answer(self, outputs: Sequence[ToolOutput]) -> None:
        """Pass on the results of the calls."""
        for output in outputs:
            waiting = self._output_of(output.call_id)
            if not waiting.done():
                waiting.set_result(_result(output))

    async def send(self, prompt: Prompt, *, steering: bool = False) -> None:
        """Send a message of the user. If the runtime is busy (`steering`), the message accompanies the next outputs."""
        attachments = [{"type": "blob", "data": image.data, "mimeType": image.media_type} for image in prompt.images]
        await self._session.send(prompt.text, attachments=attachments or None, mode="immediate" if steering else None)

    def _on_event(self, event: Any) -> None:
        if event.type.value.startswith(_LISTENS):
            self._events.put_nowait(event)

    async def next_event(self, silence: float, poll: float) -> Any:
        """The next event; None if the runtime has ended.

        Raises:
            TimeoutError: the runtime sent nothing for this many seconds.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + silence
        while True:
            left = min(poll, deadline - loop.time())
            try:
                async with asyncio.timeout(left):
                    return await self._events.get()
            except TimeoutError:
                if not self._runtime.is_alive():
                    return None
                if loop.time() >= deadline:
                    raise

    async def end(self, limit: float) -> None:
        """Stop and delete the session. If the runtime does not respond, the whole runtime is ended."""
        session, self._session = self._session, None
        if session is None or not self._runtime.is_alive():
            return
        try:
            async with asyncio.timeout(limit):
                await session.abort()
                client = await self._runtime.client()
                await client.delete_session(session.session_id)
        except Exception:  # the SDK raises whatever its parts raise
            await self._runtime.stop()
        finally:
            for waiting in self._outputs.values():
                waiting.cancel()


_NOTHING_OF_ITS_OWN: dict[str, Any] = {
    "infinite_sessions": {"enabled": False},
    "large_output": {"enabled": False},
    "memory": {"enabled": False},
    "tool_search": {"enabled": False},
    "skip_custom_instructions": True,
    "enable_config_discovery": False,
    "enable_on_demand_instruction_discovery": False,
    "enable_skills": False,
    "included_builtin_skills": [],
    "enable_file_hooks": False,
    "enable_host_git_operations": False,
    "enable_session_store": False,
    "enable_session_telemetry": False,
    "skip_embedding_retrieval": True,
    "embedding_cache_storage": "in-memory",
    "custom_agents_local_only": True,
    "coauthor_enabled": False,
    "manage_schedule_enabled": False,
}
"""Options that disable features of a session that Marvin provides itself, or that would bypass its permissions."""


def _own_provider(endpoint: Endpoint) -> dict[str, Any] | None:
    """The user's own service instead of GitHub's, if config.yaml has an address."""
    if not endpoint.base_url:
        return None
    provider: dict[str, Any] = {
        "type": "openai",
        "base_url": endpoint.base_url,
        "headers": dict(endpoint.headers or {}),
    }
    if endpoint.key:
        provider["api_key"] = endpoint.key.reveal()
    if endpoint.context_window:
        provider["max_prompt_tokens"] = endpoint.context_window
    return provider


def _deny(_request: Any, _invocation: Any) -> Any:
    from copilot.rpc import PermissionDecisionReject  # type: ignore[import-not-found]

    return PermissionDecisionReject(feedback="Only the offered tools may be used.")


def _result(output: ToolOutput) -> Any:
    # An image given here does not reach the model; see `RuntimeTranscript.step`.
    return imported_sdk().ToolResult(
        text_result_for_llm=output.text,
        result_type="failure" if output.is_error else "success",
        error=output.text if output.is_error else None,
    )
