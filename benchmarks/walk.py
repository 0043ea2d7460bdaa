"""Measure how far a reader walks from `marvin --prompt` to the model's request and back; `--verbose` lists the way.

The real program answers one prompt from a real server on loopback, in a child process that notes its calls; a first
run, not noted, fills its caches. What counts are functions of marvin_core, properties and lambdas too; a
comprehension belongs to the function around it. Nothing counts that runs while a module is imported. Stacks are
logical: what awaits or iterates stands below what it waits for, and a task or a thread on the stack of its maker.

The way there   The stack at the moment the bytes of the request go into the socket.
The way back    The stack on which the answer's bytes come in, and the one on which its text goes to standard output;
                of both, what is not on the way there. The latter alone would not show who receives: generators that
                wait for their next turn are on no stack.
Before          All that is called until the request is out: the walk, and what is called beside it and makes the
                request what it is. It is told by the function of the way there that it serves.
Junctions       Functions that are called before the request from another module, and call another in turn. Who
                follows all that makes the request passes them; what only they call can be taken at its name.
Up              A call into a module that imports the caller's, over any number of others, at run time, lazily or for
                its types, and is not imported by it: a reader who came down is sent up again. Within a cycle of
                imports there is no direction. Where neither imports the other the call goes sideways, to what
                stands behind an interface. To import from the root package is not to import all that it offers;
                imports of computed names are not seen.
Stored          A call of what lies in a field or a variable: who reads it cannot see what is called. Told from the
                source of the call and the receiver's own attributes; operators, constructors, `for`, and what
                another library calls are not judged.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import inspect
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import BuiltinMethodType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

PACKAGE = "marvin_core"
PROMPT = "question-of-the-walk"
ANSWER = "answer-of-the-walk"
_PAUSE = 0.3
"""Seconds between the head of the answer and its text, so that the text is always waited for."""
_INLINE = re.compile(r"(\.<locals>)?\.<(listcomp|genexpr|dictcomp|setcomp)>")
_UNKNOWN = object()
_FUNCTIONS = (FunctionType, MethodType, BuiltinMethodType, partial)


class Node(NamedTuple):
    """A function; the body of a module or class has no name."""

    module: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.module.removeprefix(f'{PACKAGE}.')}:{self.line} {self.name}"


class Call(NamedTuple):
    """A function calls, awaits or iterates another; `stack` is the one on which it first did."""

    caller: Node
    callee: Node
    stored: bool
    stack: list[Node]

    def __str__(self) -> str:
        return f"{self.caller} -> {self.callee}{' *' if self.stored else ''}"


class Made(NamedTuple):
    """A class of which objects were made, with how many arguments, how many of these functions."""

    arguments: int
    callbacks: int
    name: str


class Tracer:
    """Notes the calls of the process that it is installed in, and saves them when the answer is first written."""

    def __init__(self, root: Path, report: Path) -> None:
        self._root = f"{root}{os.sep}"
        self._report = report
        self._phase = "there"
        self._nodes: dict[CodeType, Node] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._made_on: dict[object, list[Node]] = {}
        self._trees: dict[str, tuple[dict[tuple[int, int], ast.expr], set[str]]] = {}
        self._calls: dict[str, dict[tuple[Node, Node], tuple[bool, list[Node]]]] = {"there": {}, "back": {}}
        self._made: dict[str, Made] = {}
        self._found: dict[str, Any] = {}
        self._sender: object = None

    def install(self) -> None:
        """Begin, in this thread and all that are started."""
        self._watch(asyncio.BaseEventLoop, "create_task", lambda stack, task, *_: self._made_on.update({task: stack}))
        self._watch(threading.Thread, "__init__", lambda stack, _, thread, *__: self._made_on.update({thread: stack}))
        for name in ("send", "sendall", "sendmsg"):
            self._watch(socket.socket, name, self._sent)
        self._watch(socket.socket, "recv", self._received)
        self._watch(os, "write", self._written)
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def _watch(self, owner: Any, name: str, note: Callable[..., None]) -> None:
        real = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            result = real(*args, **kwargs)
            note(self._stack(sys._getframe(1)), result, *args)
            return result

        setattr(owner, name, watched)

    def _sent(self, stack: list[Node], _: object, __: object, data: Any, *___: object) -> None:
        parts = data if isinstance(data, (list, tuple)) else [data]
        if self._phase == "there" and PROMPT.encode() in b"".join(map(bytes, parts)):
            self._found["there"] = stack
            self._found["imported"] = sum(f"{name}.".startswith(f"{PACKAGE}.") for name in sys.modules)
            self._phase, self._sender = "waiting", _task()

    def _received(self, _: object, data: bytes, *__: object) -> None:
        if self._phase == "waiting" and ANSWER.encode() in data:
            self._phase = "came"

    def _written(self, stack: list[Node], _: int, descriptor: int, data: Any) -> None:
        if self._phase == "back" and descriptor == 1 and ANSWER.encode() in bytes(data):
            self._phase = "done"
            calls = {phase: [(*pair, *how) for pair, how in calls.items()] for phase, calls in self._calls.items()}
            self._found.update(writing=stack, made=[*self._made.values()], before=calls["there"], after=calls["back"])
            self._report.write_text(json.dumps(self._found))

    def _event(self, frame: FrameType, kind: str, _: object) -> None:
        if self._phase == "came" and kind == "return" and self._node(frame.f_code):
            if _task() is self._sender:
                self._found["receiving"], self._phase = self._stack(frame), "back"
        elif kind == "call" and self._phase in self._calls and self._node(frame.f_code):
            self._called(frame)

    def _called(self, frame: FrameType) -> None:
        stack = self._stack(frame)
        if any(not node.name for node in stack):
            return  # a module is being imported
        if frame.f_code.co_name == "__init__" and self._phase == "there":
            self._note_made(frame)
        if len(stack) > 1:
            pair, calls = (stack[-2], stack[-1]), self._calls[self._phase]
            stored, first = calls.get(pair, (False, stack))
            calls[pair] = (stored or self._is_stored(frame), first)

    def _note_made(self, frame: FrameType) -> None:
        code, held = frame.f_code, frame.f_locals
        count = code.co_argcount + code.co_kwonlyargcount
        owner, *values = (held[name] for name in code.co_varnames[:count])
        if code.co_flags & inspect.CO_VARKEYWORDS:  # a record takes its fields so
            values += held[code.co_varnames[count]].values()
        name = f"{type(owner).__module__.removeprefix(f'{PACKAGE}.')} {type(owner).__qualname__}"
        made = Made(len(values), sum(isinstance(value, _FUNCTIONS) for value in values), name)
        self._made[name] = max(made, self._made.get(name, made))

    def _stack(self, frame: FrameType | None) -> list[Node]:
        nodes: list[Node] = []
        maker: object = threading.current_thread()
        while frame is not None:
            if frame.f_code is asyncio.Handle._run.__code__ and (task := _task()) in self._made_on:
                maker = task
                break
            node = self._node(frame.f_code)
            nodes += [node] if node and (node.name or not node.module.endswith(".__main__")) else []
            frame = frame.f_back
        whole = self._made_on.get(maker, []) + nodes[::-1]
        return [node for at, node in enumerate(whole) if not at or whole[at - 1] != node]

    def _node(self, code: CodeType) -> Node | None:
        if code in self._nodes or not code.co_filename.startswith(self._root):
            return self._nodes.get(code)
        module = _module_name(Path(self._root), Path(code.co_filename))
        name = _INLINE.sub("", code.co_qualname) if code.co_flags & inspect.CO_OPTIMIZED else ""
        key = (module, f"{name}{code.co_firstlineno}" if "<lambda>" in name else name)
        self._nodes[code] = Node(module, self._lines.setdefault(key, code.co_firstlineno), name)
        return self._nodes[code]

    def _is_stored(self, frame: FrameType) -> bool:
        caller, callee = frame.f_back, frame.f_code
        if caller is None or self._node(caller.f_code) in (None, self._node(callee)) or callee.co_name.startswith("__"):
            return False
        code = caller.f_code
        if code.co_filename not in self._trees:
            self._trees[code.co_filename] = _calls_and_imports(Path(code.co_filename))
        calls, imported = self._trees[code.co_filename]
        _, line, _, column = next(islice(code.co_positions(), caller.f_lasti // 2, None))
        called = calls.get((line or 0, column or 0))
        if called is None:
            return False  # an iteration, or a property
        if isinstance(called, ast.Name):
            name, place = called.id, callee.co_qualname.rpartition(".<locals>.")[0]
            known = name in imported or (callee.co_name == name and place and code.co_qualname.startswith(place))
            return not known and name in (*code.co_varnames, *code.co_freevars, *code.co_cellvars)
        if not isinstance(called, ast.Attribute):
            return True
        receiver = _value(called.value, caller)
        if receiver is _UNKNOWN:
            return called.attr != callee.co_name
        return not isinstance(receiver, (ModuleType, type)) and called.attr in getattr(receiver, "__dict__", {})


def _task() -> object:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def _calls_and_imports(path: Path) -> tuple[dict[tuple[int, int], ast.expr], set[str]]:
    """What is called in a file, by where the call ends; and the names that imports bind."""
    calls: dict[tuple[int, int], ast.expr] = {}
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call):
            calls[node.end_lineno or 0, node.end_col_offset or 0] = node.func
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return calls, names


def _value(expression: ast.expr, frame: FrameType) -> object:
    """What a name or a chain of fields is at this moment; no property is asked."""
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id, _UNKNOWN))
    if isinstance(expression, ast.Attribute):
        owner = _value(expression.value, frame)
        found = inspect.getattr_static(owner, expression.attr, _UNKNOWN) if owner is not _UNKNOWN else _UNKNOWN
        return _UNKNOWN if inspect.isdatadescriptor(found) else found
    return _UNKNOWN


class Source:
    """The modules of the package, and which imports which."""

    def __init__(self, root: Path) -> None:
        self._trees = {_module_name(root, path): ast.parse(path.read_bytes()) for path in root.rglob("*.py")}
        packages = {_module_name(root, path) for path in root.rglob("__init__.py")}
        self._direct = {name: set(self._imports(name, name in packages)) for name in self._trees}
        self._direct[PACKAGE] = set()
        self._reached = {name: self._reach(name) for name in self._trees}

    def direction(self, call: Call) -> str:
        """`up`, `down`, `sideways` or `cycle`; `down` also within a module."""
        caller, callee = call.caller.module, call.callee.module
        down, up = callee in self._reached[caller], caller in self._reached[callee]
        if caller == callee or (down and not up):
            return "down"
        return "cycle" if down and up else "up" if up else "sideways"

    def _imports(self, name: str, is_package: bool) -> Iterator[str]:
        for node in ast.walk(self._trees[name]):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self._trees)
            elif isinstance(node, ast.ImportFrom):
                above = name.split(".")[: len(name.split(".")) - node.level + is_package] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                for alias in node.names:
                    yield from [each for each in (f"{base}.{alias.name}", base) if each in self._trees][:1]

    def _reach(self, name: str) -> set[str]:
        reached, waiting = set[str](), {name}
        while waiting:
            waiting = set().union(*(self._direct[each] for each in waiting)) - reached
            reached |= waiting
        return reached


def _module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join([PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def trace() -> dict[str, Any]:
    """Let the program answer a prompt; returns what `Tracer` saved of that."""
    from marvin_core.testing import ModelServer, burst, pause, text

    answer, program = pause(_PAUSE, burst(text(ANSWER))), ["--non-interactive", "--prompt", PROMPT]
    with TemporaryDirectory(prefix="marvin-walk-") as home, ModelServer(answer, answer) as server:
        report = Path(home) / "report.json"
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": home,
            "LANG": "C.UTF-8",
            "OPENAI_COMPAT_URL": server.url,
            "OPENAI_COMPAT_MODEL": "qwen/qwen3-32b",
        }
        for words in (["-m", PACKAGE, *program], [__file__, "--traced", str(report), *program]):
            command = [sys.executable, "-P", *words]
            done = subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, timeout=60)
            if done.returncode or ANSWER not in done.stdout:
                raise SystemExit(f"walk: {' '.join(command)}\nended with {done.returncode}\n{done.stderr[-2000:]}")
        if not report.exists():
            raise SystemExit("walk: the request, the answer or its writing was not seen; see Tracer.install")
        return dict(json.loads(report.read_text()))


class Report:
    """What was found of the walk."""

    def __init__(self, found: dict[str, Any], source: Source) -> None:
        self._direction = source.direction
        there, receiving, writing = (_nodes(found[name]) for name in ("there", "receiving", "writing"))
        before, after = (
            [Call(Node(*caller), Node(*callee), stored, _nodes(stack)) for caller, callee, stored, stack in found[name]]
            for name in ("before", "after")
        )
        self._there = there
        back = (("receive", receiving), ("write", writing))
        self._back = {title: [node for node in stack if node not in there] for title, stack in back}
        across = [call for call in before if call.caller.module != call.callee.module]
        passing = {call.caller for call in across} - {*there, *receiving, *writing}
        self._junctions = dict.fromkeys(call.callee for call in across if call.callee in passing)
        legs = {pair for stack in (there, receiving, writing) for pair in pairwise(stack)}
        walk = {call[:2]: call for call in [*before, *after] if call[:2] in legs}
        self._calls = {"on the walk": [*walk.values()], "before the request": before, "with the answer": after}
        self._takers = sorted((made for each in found["made"] if (made := Made(*each)).callbacks), reverse=True)
        self._imported: int = found["imported"]

    def table(self) -> Iterator[str]:
        """The numbers."""
        there, (_, before, after) = self._there, self._calls.values()
        back = [*self._back["receive"], *self._back["write"]]
        most = ", ".join(f"{made.arguments} {made.name.split()[-1]}" for made in self._takers[:4])
        yield f"the walk              {_counted([*there, *back])}"
        yield f"  with the junctions  {_counted([*there, *back, *self._junctions])}"
        yield f"  the way there       {_counted(there)}"
        yield f"  the way back        {_counted(back)}"
        yield f"before the request    {_counted(call.callee for call in before)}"
        yield f"                      {self._imported} modules imported"
        yield f"                      {sum(made.callbacks for made in self._takers)} callbacks to constructors: {most}"
        yield f"with the answer       {_counted(call.callee for call in after)}"
        yield "distinct calls            up  and stored  stored  sideways  in a cycle"
        for name, calls in self._calls.items():
            ways = [self._direction(call) for call in calls]
            up_stored = sum(call.stored for call, way in zip(calls, ways, strict=True) if way == "up")
            numbers = f"{ways.count('up'):>6}{up_stored:>12}{sum(call.stored for call in calls):>8}"
            yield f"  {name:<20}{numbers}{ways.count('sideways'):>10}{ways.count('cycle'):>12}"

    def details(self) -> Iterator[str]:
        """What was counted."""
        beside: dict[Node, Node] = {}
        for call in self._calls["before the request"]:
            along = (one for one, other in zip(self._there, call.stack, strict=False) if one == other)
            beside.setdefault(call.callee, [*along][-1])
        yield "\nThe way there, and what is first called beside each function of it:"
        for number, node in enumerate(self._there, 1):
            aside = [each for each, hop in beside.items() if hop == node and each not in self._there]
            yield f"  {number:>3}  {node}{f'  + {_counted(aside)}' if aside else ''}"
        for title, stack in self._back.items():
            yield f"\nThe way back, those who {title}:"
            yield from (f"  {number:>3}  {node}" for number, node in enumerate(stack, 1))
        yield "\nJunctions beside the walk:"
        yield from (f"  {node}" for node in self._junctions)
        for name, calls in self._calls.items():
            for way in ("up", "sideways", "cycle", "down"):
                chosen = [call for call in calls if self._direction(call) == way and (call.stored or way != "down")]
                yield f"\n{len(chosen)} {way}{' and stored' if way == 'down' else ''}, {name} (* stored):"
                yield from (f"  {call}" for call in chosen)
        yield "\nConstructors that take callbacks (arguments, callbacks):"
        yield from (f"  {made.arguments:>3} {made.callbacks:>3}  {made.name}" for made in self._takers)


def _nodes(values: Iterable[Iterable[Any]]) -> list[Node]:
    return [Node(*value) for value in values]


def _counted(nodes: Iterable[Node]) -> str:
    found = set(nodes)
    return f"{len(found)} functions in {len({node.module for node in found})} modules"


def main() -> None:
    """Measure; in the child, trace the program instead, and never return."""
    spec = find_spec(PACKAGE)
    root = Path(*(spec and spec.submodule_search_locations) or ())
    if sys.argv[1:2] == ["--traced"]:
        Tracer(root, Path(sys.argv[2])).install()
        sys.argv[1:] = sys.argv[3:]
        runpy.run_module(PACKAGE, run_name="__main__", alter_sys=True)
    parser = argparse.ArgumentParser(description="Measure the walk from the prompt to the request and back.")
    parser.add_argument("--verbose", action="store_true", help="also list what was counted")
    report = Report(trace(), Source(root))
    for line in [*report.table(), *(report.details() if parser.parse_args().verbose else ())]:
        print(line)


if __name__ == "__main__":
    main()
