"""Which tools a request carries, why the others are not offered, and where their functions are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ..api.config import Config
from ..api.errors import ToolError
from ..api.record import Record
from ..api.tool_context import ToolContext
from ..api.tools import Tool, ToolResult, ToolSpec
from ..config.secrets import Secrets
from ..guard.permissions.policy import Rule
from ..util.imports import load_module
from ..util.text import hint_at
from ..util.threads import in_thread
from ..util.watchdog import attributed, attributed_call
from .sets import select

_SOME = 20


def _some(names: Sequence[str]) -> str:
    """The first of the names, as a sentence."""
    more = len(names) - _SOME
    return f"There are: {', '.join(names[:_SOME])}{f' and {more} more' if more > 0 else ''}."


class LoadedTool(Record):
    """A tool whose module is imported: its declarations, its function, and the check of its arguments.

    `context_parameter` is the parameter that receives the context, or an empty string.
    """

    spec: ToolSpec
    tool: Tool
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    context_parameter: str

    async def call(self, values: Mapping[str, Any], context: ToolContext) -> str | ToolResult:
        """Call the function with validated arguments, and with the context where it wants one.

        One that is not `async` runs in a thread, which is left to itself where this is cancelled.
        """
        from inspect import isawaitable, iscoroutinefunction

        given = {**values, self.context_parameter: context} if self.context_parameter else values
        work: Callable[[], Any] = partial(self.tool.function, **given)
        owner = f"the tool {self.spec.name} of {self.spec.source}"
        if iscoroutinefunction(self.tool.function):
            return await attributed(owner, work())
        returned = await in_thread(lambda: attributed_call(owner, work))
        # A function around an async one returns what is to be awaited.
        return await attributed(owner, returned) if isawaitable(returned) else returned


class Programs(Protocol):
    """The programs of this machine."""

    def which(self, program: str) -> str | None:
        """Where a program is, or None."""
        ...


class Toolbox:
    """The tools of one session.

    `programs` and `secrets` answer what the tools' `requires` name. `offered` is what requests
    carry, always in the same order; `missing` says of every other tool why it is not offered.

    Raises:
        UsageError: where the selection names a set, group or tool that does not exist.
    """

    def __init__(
        self,
        specs: Sequence[ToolSpec],
        config: Config,
        programs: Programs,
        secrets: Secrets,
    ) -> None:
        self._config = config
        self._programs = programs
        self._secrets = secrets
        self._loaded: dict[str, LoadedTool] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._slow: set[str] = set()
        self.missing: dict[str, str] = {}
        self.offered: tuple[ToolSpec, ...] = ()
        self._specs: dict[str, ToolSpec] = {}
        self._all = {spec.name: spec for spec in specs}
        self._held: dict[str, str] = {}
        self.selection = ""
        self.choose(config.tools or ("coding" if config.depth else "all"))

    def choose(self, selection: str) -> None:
        """Offer what a selection such as `coding,-git` names, from the next request on.

        Raises:
            UsageError: where it names a set, group or tool that does not exist; nothing is changed then.
        """
        selected = select(tuple(self._all.values()), selection)
        self.selection = selection
        self._specs.clear()
        self.missing.clear()
        for spec in self._all.values():
            self._take(spec, "" if spec.name in selected else f"not in the chosen tools ({selection})")
        self.offered = tuple(self._specs.values())

    def hold(self, name: str, reason: str) -> None:
        """Keep a tool back from the next request on; `reason` completes "not available here: ..."."""
        self._held[name] = reason
        if self._specs.pop(name, None) is not None:
            self.missing[name] = reason
            self.offered = tuple(self._specs.values())

    def is_held(self, name: str) -> bool:
        """Whether a tool is only kept back, and lacks nothing."""
        return name in self._held and name in self.missing and not self._reason(self._all[name], self._config)

    def release(self, name: str) -> None:
        """Offer a tool again that was held back."""
        if self._held.pop(name, "") and name in self._all:
            self.choose(self.selection)

    def add(self, spec: ToolSpec, tool: Tool | None = None) -> None:
        """Take one more tool, in place of another one of its name. `tool` is its function where that is here already.

        The configuration may rule it out as it may any other; what is chosen with --tools does not matter.
        """
        for known in (self._specs, self._loaded, self.missing):
            known.pop(spec.name, None)
        self._all[spec.name] = spec
        self._take(spec, "")
        self.offered = tuple(self._specs.values())
        if tool is not None:
            self._loaded[spec.name] = _checked(spec, tool)

    def _take(self, spec: ToolSpec, left_out: str) -> None:
        reason = self._held.get(spec.name) or self._reason(spec, self._config) or left_out
        if reason:
            self.missing[spec.name] = reason
        else:
            self._specs[spec.name] = spec

    def _reason(self, spec: ToolSpec, config: Config) -> str | None:
        if config.read_only and spec.changes and "readonly" not in spec.passes:
            return "this agent is read-only (MARVIN_READONLY)"
        if config.writable_files is not None and spec.changes and "writable-files" not in spec.passes:
            return "this agent may only edit its files (MARVIN_WRITABLE_FILES)"
        if spec.interactive and (config.non_interactive or config.read_only or config.depth):
            return "only in a chat"
        if any(rule.pattern == "*" and rule.fits(spec.name, ()) for rule in map(Rule.parse, config.permissions.deny)):
            return "denied by config.yaml"
        return next(filter(None, map(self._unmet, spec.requires)), None)

    def _unmet(self, need: str) -> str | None:
        kind, _, name = need.partition(":")
        if kind == "program":
            return None if self._programs.which(name) else f"needs the program {name}"
        if kind == "env":
            return None if self._secrets.get(name) else f"needs the variable {name}"
        from importlib.util import find_spec

        try:
            found = find_spec(name) is not None
        except (ImportError, ValueError):  # the package around it is missing, or broken
            found = False
        return None if found else f"needs the Python package {name}"

    def guidance(self) -> tuple[str, ...]:
        """What the groups of the offered tools say about working with them, in the order of the tools."""
        return tuple(dict.fromkeys(spec.guidance for spec in self.offered if spec.guidance))

    def spec(self, name: str) -> ToolSpec:
        """The offered tool of this name.

        Raises:
            ToolError: where it is not offered; the text gives the reason, or the nearest names.
        """
        found = self._specs.get(name)
        if found is not None:
            return found
        if name in self.missing:
            raise ToolError(f"The tool {name} is not available here: {self.missing[name]}. Do it another way.")
        hint = hint_at(name, self._specs, _some(list(self._specs)))
        raise ToolError(f"There is no tool {name!r}. {hint}")

    def preload(self, name: str, runner: str) -> None:
        """Start importing a tool and the module that runs it in the background, while its arguments still stream in."""
        spec = self._specs.get(name)
        if spec is not None and name not in self._loaded:
            threading.Thread(target=self._preload, args=(spec, runner), daemon=True).start()

    def _preload(self, spec: ToolSpec, runner: str) -> None:
        try:
            load_module(runner)
            self._load(spec)
        except Exception:  # the call itself meets the same error and reports it
            return

    async def load(self, name: str) -> LoadedTool:
        """The tool, imported where it was not yet. Raises `ToolError` as `spec` does, and where that takes too long."""
        spec = self.spec(name)
        loaded = self._loaded.get(name)
        if loaded is not None:
            return loaded
        limit = self._config.timeouts.pack
        if not self._hangs(spec.module):
            timer = asyncio.timeout(limit)
            try:
                async with timer:
                    return await in_thread(lambda: self._load(spec))
            except TimeoutError:
                if not timer.expired():
                    raise
                self._slow.add(spec.module)
        raise ToolError(
            f"The module of {name}, {spec.module}, was not loaded within {limit:g} s, so nothing was done. "
            f"Do it another way; the user can mend or remove the pack {spec.source}."
        )

    def _hangs(self, module: str) -> bool:
        """Whether a module took too long and is still being loaded: nobody waits for it twice."""
        return module in self._slow and self._locks[module].locked()

    def _load(self, spec: ToolSpec) -> LoadedTool:
        # One lock for each module: what hangs holds up nothing but itself.
        with self._locks.setdefault(spec.module, threading.Lock()):
            if spec.name not in self._loaded:
                self._loaded[spec.name] = _checked(spec, find_tool(spec))
            return self._loaded[spec.name]


def _checked(spec: ToolSpec, tool: Tool) -> LoadedTool:
    from .schema import validator

    check = validator(tool)
    return LoadedTool(
        spec=spec, tool=tool, validate=partial(check, spec=spec), context_parameter=check.context_parameter
    )


def find_tool(spec: ToolSpec) -> Tool:
    """Import the module that a spec names and take its tool.

    Raises:
        ToolError: where the module no longer has it.
    """
    module = load_module(spec.module)
    for value in vars(module).values():
        if isinstance(value, Tool) and value.name == (spec.function or spec.name):
            return value
    raise ToolError(f"The pack {spec.source} no longer has the tool {spec.name}. Reinstall it.")
