"""The tools of a session: those on offer, why the others are not, and loading their functions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from ..api.config import Config
from ..api.errors import ToolError
from ..api.record import Record
from ..api.tools import SEARCH, Tool, ToolResult, ToolSpec
from ..config.secrets import Secrets
from ..guard.gates.agents import closed_to
from ..util.imports import load_module
from ..util.text import cut, did_you_mean, hint_at, one_line
from ..util.threads import in_thread
from ..util.watchdog import attributed, attributed_call
from .sets import select

if TYPE_CHECKING:
    from ..api.tool_context import ToolContext
    from ..guard.permissions.rules import Rule

    class Programs(Protocol):
        """The programs of this machine."""

        def which(self, program: str) -> str | None:
            """The path of a program, or None."""
            ...


HOT = 15
"""The number of tools that are always included when most are deferred."""
_SOME = 20
_LONGEST_NAME = 100
_LONGEST_GUIDANCE = 2_000
"""The maximum number of characters of a group's guidance in each prompt; a third-party pack may write more."""


def _some(names: Sequence[str]) -> str:
    """The first names, as a sentence."""
    more = len(names) - _SOME
    return f"Available: {', '.join(names[:_SOME])}{f' and {more} more' if more > 0 else ''}."


class LoadedTool(Record):
    """A loaded tool: its declarations, its function, and the validator of its arguments.

    `named` converts arguments in the form of another program; `validate` then checks them, and returns the arguments of
    the function. `context_parameter` is the parameter that receives the
    context, or an empty string. `is_async` says whether the function is declared with `async`.
    """

    spec: ToolSpec
    tool: Tool
    named: Callable[[Mapping[str, Any]], dict[str, Any]]
    validate: Callable[[Mapping[str, Any]], dict[str, Any]]
    context_parameter: str
    is_async: bool

    async def call(self, values: Mapping[str, Any], context: ToolContext) -> str | ToolResult:
        """Call the function with validated arguments, and with the context if it takes one.

        A function that is not `async` runs in a thread, which continues after a cancellation.
        """
        given = {**values, self.context_parameter: context} if self.context_parameter else values
        work: Callable[[], Any] = partial(self.tool.function, **given)
        owner = f"the tool {self.spec.name} of {self.spec.source}"
        if self.is_async:
            return await attributed(owner, work())
        from inspect import isawaitable

        returned = await in_thread(lambda: attributed_call(owner, work))
        # A wrapper around an async function returns an awaitable.
        return await attributed(owner, returned) if isawaitable(returned) else returned


class Offer(Record):
    """The options of a session for the installed tools."""

    shape: Callable[[ToolSpec], ToolSpec] | None = None
    """Converts the parameters of offered tools."""
    lost: Mapping[str, str] = MappingProxyType({})
    """The reasons for tools that are missing because their packs could not be loaded, by name."""
    find: Callable[[ToolSpec], Tool | None] | None = None
    """Loads tools that are in no module; None for all others."""


_AS_INSTALLED = Offer()


class Toolbox:
    """The tools of one session.

    `programs` and `secrets` check the tools' `requires`. `offered` are the tools on offer, always in the same order;
    `missing` has the reason for every other tool.

    Raises:
        UsageError: the selection names a set, group or tool that does not exist.
    """

    def __init__(
        self,
        specs: Sequence[ToolSpec],
        config: Config,
        programs: Programs,
        secrets: Secrets,
        offer: Offer = _AS_INSTALLED,
    ) -> None:
        self._shape = offer.shape
        self._config = config
        self._programs = programs
        self._secrets = secrets
        self._lost = offer.lost
        self._find = offer.find
        self._loaded: dict[str, LoadedTool] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._slow: set[str] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        self.missing: dict[str, str] = {}
        self.offered: tuple[ToolSpec, ...] = ()
        self._specs: dict[str, ToolSpec] = {}
        self._all = {spec.name: spec for spec in specs}
        self._held: dict[str, str] = {}
        self._needs: dict[str, str | None] = {}
        self._confined: Callable[[ToolSpec], str] | None = None
        self._guidance: tuple[tuple[ToolSpec, ...], tuple[str, ...]] | None = None
        self.selection = ""
        self.choose(config.tools or ("coding" if config.depth else "all"))

    def choose(self, selection: str) -> None:
        """Select the tools to offer from the next request on, as in `coding,-git`.

        Raises:
            UsageError: it names a set, group or tool that does not exist; nothing is changed.
        """
        selected = select(tuple(self._all.values()), selection, self._lost)
        if len(selected) > HOT and f"-{SEARCH}" not in map(str.strip, selection.split(",")):
            selected |= {SEARCH} & set(self._all)  # a selection of many tools includes the search
        self.selection = selection
        self._specs.clear()
        self._needs.clear()  # checked again on each selection: a program may have been installed meanwhile
        self.missing.clear()
        self.missing.update(self._lost)
        left_out, free = f"not in the chosen tools ({selection})", self._lets_all
        for name, spec in self._all.items():
            if free and name in selected and not (spec.requires or spec.interactive):  # the usual case
                self._specs[name] = self._shape(spec) if self._shape is not None else spec
            else:
                self._take(spec, "" if name in selected else left_out)
        self.offered = tuple(self._specs.values())

    @property
    def _lets_all(self) -> bool:
        """Whether no tool is withdrawn, and no setting excludes tools."""
        config = self._config
        bound = config.read_only or config.writable_files is not None or config.permissions.deny
        return not (bound or self._held or self._confined is not None)

    def beyond(self, selection: str) -> tuple[str, ...]:
        """The tools that a selection adds to the current one. Raises `UsageError` like `choose`."""
        everything = tuple(self._all.values())
        allowed = select(everything, self.selection, self._lost)
        return tuple(sorted(select(everything, selection, self._lost) - allowed))

    def hold(self, name: str, reason: str) -> None:
        """Withdraw a tool from the next request on; `reason` completes "not available here: ..."."""
        self._held[name] = reason
        if self._specs.pop(name, None) is not None:
            self.missing[name] = reason
            self.offered = tuple(self._specs.values())

    def is_held(self, name: str) -> bool:
        """Whether a tool is withdrawn, and otherwise available."""
        return name in self._held and name in self.missing and not self._reason(self._all[name], self._config)

    def release(self, name: str) -> None:
        """Offer a withdrawn tool again."""
        if self._held.pop(name, "") and name in self._all:
            self.choose(self.selection)

    def confine(self, closed: Callable[[ToolSpec], str] | None) -> None:
        """Withdraw tools for which `closed` returns a reason, from the next request on; None offers them again."""
        self._confined = closed
        self.choose(self.selection)

    def add(self, spec: ToolSpec, tool: Tool | None = None) -> None:
        """Add a tool, or replace the one with its name, also a withdrawn one. `tool` is its function, if it is loaded.

        The configuration may exclude it like any other; the selection by --tools does not apply.
        """
        for known in (self._specs, self._loaded, self.missing, self._held):
            known.pop(spec.name, None)
        self._all[spec.name] = spec
        self._take(spec, "")
        self.offered = tuple(self._specs.values())
        if tool is not None:
            self._loaded[spec.name] = _checked(spec, tool)

    def _take(self, spec: ToolSpec, left_out: str) -> None:
        confined = self._confined(spec) if self._confined is not None else ""
        reason = self._held.get(spec.name) or confined or self._reason(spec, self._config) or left_out
        if reason:
            self.missing[spec.name] = reason
        else:
            self._specs[spec.name] = self._shape(spec) if self._shape is not None else spec

    def _reason(self, spec: ToolSpec, config: Config) -> str | None:
        closed = closed_to(spec, config)
        if closed:
            return closed
        if config.permissions.deny and any(rule.names(spec.name) for rule in self._denials):
            return "denied by config.yaml"
        return next(filter(None, map(self._unmet, spec.requires)), None) if spec.requires else None

    @cached_property
    def _denials(self) -> Sequence[Rule]:
        """The rules that deny every call of a tool."""
        from ..guard.permissions.rules import Rule

        return [rule for rule in map(Rule, self._config.permissions.deny) if rule.is_whole]

    def _unmet(self, need: str) -> str | None:
        if need not in self._needs:
            self._needs[need] = self._lacking(need)
        return self._needs[need]

    def _lacking(self, need: str) -> str | None:
        kind, _, name = need.partition(":")
        if kind == "program":
            return None if self._programs.which(name) else f"needs the program {name}"
        if kind == "env":
            return None if self._secrets.has(name) else f"needs the variable {name}"
        from importlib.util import find_spec

        try:
            found = find_spec(name) is not None
        except (ImportError, ValueError):  # its package is missing or broken
            found = False
        return None if found else f"needs the Python package {name}"

    def guidance(self) -> tuple[str, ...]:
        """The guidance of the groups of the offered tools, in the order of the tools."""
        if self._guidance is None or self._guidance[0] is not self.offered:  # cached: each request needs it
            given = dict.fromkeys(spec.guidance for spec in self.offered if spec.guidance)
            self._guidance = self.offered, tuple(dict.fromkeys(cut(text, _LONGEST_GUIDANCE) for text in given))
        return self._guidance[1]

    def spec(self, name: str) -> ToolSpec:
        """The offered tool of this name.

        Raises:
            ToolError: it is not offered; the text gives the reason, or similar names.
        """
        found = self._specs.get(name)
        if found is not None:
            return found
        if name in self.missing:
            raise ToolError(f"The tool {name} is not available here: {self.missing[name]}. Do it another way.")
        all_of_them = _some(list(self._specs))
        if SEARCH in self._specs and len(self._specs) > _SOME:
            all_of_them = f"Look for one with {SEARCH}."
        meant = [spec.name for spec in self._specs.values() if name.casefold() in spec.known_as]
        hint = did_you_mean(meant) or hint_at(name, self._specs, all_of_them)
        raise ToolError(f"There is no tool {one_line(name, _LONGEST_NAME)!r}. {hint}")

    def preload(self, name: str, runner: str) -> None:
        """Start importing a tool and its module in the background, while its arguments are still being streamed."""
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
        """The loaded tool. Raises `ToolError` as `spec` does, and if loading takes too long."""
        spec = self.spec(name)
        turn = self._turns.get(name)
        if turn is None:
            turn = self._turns[name] = asyncio.Lock()
        elif not turn.locked() and name in self._loaded:
            return self._loaded[name]
        # The lock is fair, so calls of one tool, including questions, stay in order.
        async with turn:
            return self._loaded.get(name) or await self._load_in_time(spec)

    async def _load_in_time(self, spec: ToolSpec) -> LoadedTool:
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
            f"The module of {spec.name}, {spec.module}, was not loaded within {limit:g} s, so nothing was done. Do "
            f"it another way; the user can repair or remove the pack {spec.source}."
        )

    def _hangs(self, module: str) -> bool:
        """Whether a module exceeded its time limit and is still being loaded: do not wait again."""
        return module in self._slow and self._locks[module].locked()

    def _load(self, spec: ToolSpec) -> LoadedTool:
        # One lock for each module, so that a module that hangs delays only itself.
        with self._locks.setdefault(spec.module, threading.Lock()):
            if spec.name not in self._loaded:
                found = self._find(spec) if self._find is not None else None
                self._loaded[spec.name] = _checked(spec, found or find_tool(spec))
            return self._loaded[spec.name]


def _checked(spec: ToolSpec, tool: Tool) -> LoadedTool:
    from inspect import iscoroutinefunction

    from .schema import validator

    check = validator(tool)
    return LoadedTool(
        spec=spec,
        tool=tool,
        named=partial(check.named, spec=spec),
        validate=partial(check.check, spec=spec),
        context_parameter=check.context_parameter,
        is_async=iscoroutinefunction(tool.function),
    )


def find_tool(spec: ToolSpec) -> Tool:
    """Import the module of a specification and return its tool.

    Raises:
        ToolError: the module no longer has it.
    """
    module = load_module(spec.module)
    for value in vars(module).values():
        if isinstance(value, Tool) and value.name == (spec.function or spec.name):
            return value
    raise ToolError(f"The pack {spec.source} no longer contains the tool {spec.name}. Reinstall it.")
