"""The ways in which a pack can be broken, as wheels: each once as a pack with a command, and once as a guard."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

GUARD = """
from marvin_core import Deny, Hook, hookimpl

class Guard(Hook):
    async def before_tool(self, context, spec, arguments):
        return Deny(reason="the guard says no")
"""
PLAIN = """
from marvin_core import Command, hookimpl

async def speak(session, rest):
    return "spoken"

COMMAND = Command(name="NAME", help="Speak.", run=speak)
"""
SOUND = """PARTS
@hookimpl
def REGISTERS():
    return [ITEM]
"""
"""A pack with nothing wrong; PARTS, REGISTERS, ITEM and NAME are filled in."""


def _first(line: str) -> str:
    return f"{line}\n{SOUND}"


def _registering(body: str) -> str:
    return f"PARTS\n@hookimpl\ndef REGISTERS():\n    {body}\n"


def _configuring(body: str) -> str:
    return f"{SOUND}\n@hookimpl\ndef marvin_configure(config):\n    {body}\n"


_FAULTY = "class Faulty(Exception):\n    def __str__(self):\n        raise ValueError('no words')\n\n"
_ENDED = "ended the whole process while it was loaded, with exit code"
_CRASHED = "crashed the whole process while it was loaded"
_HUNG = "did not finish loading within"
_WAIT = "import threading; threading.Event().wait()"

AT_IMPORT: Mapping[str, tuple[str, str]] = {
    "missing-import": (_first("import nothing_has_this_name"), "No module named 'nothing_has_this_name'"),
    "missing-name": (_first("from marvin_core import Nonsense"), "cannot import name 'Nonsense'"),
    "syntax": (f"{SOUND}\ndef broken(:\n", "SyntaxError: "),
    "indentation": (f"{SOUND}\nif True:\nx = 1\n", "IndentationError: "),
    "raises": (_first("raise RuntimeError('no such luck')"), "RuntimeError: no such luck"),
    "raises-group": (_first("raise ExceptionGroup('two', [ValueError(1), OSError(2)])"), "ExceptionGroup: two"),
    "exits": (_first("raise SystemExit('not on this machine')"), "SystemExit: not on this machine"),
    "interrupts": (_first("raise KeyboardInterrupt"), "KeyboardInterrupt"),
    "cancels": (_first("import asyncio; raise asyncio.CancelledError"), "CancelledError"),
    "leaves-generator": (_first("raise GeneratorExit"), "GeneratorExit"),
    "speechless": (_first(f"{_FAULTY}raise Faulty"), "Faulty (its text cannot be shown)"),
    "talkative": (_first("raise RuntimeError('x' * 200_000)"), "RuntimeError: xxxx"),
    "recursion": (_first("def deep(): deep()\ndeep()"), "RecursionError: "),
    "ends": (_first("import os; os._exit(3)"), f"{_ENDED} 3"),
    "ends-well": (_first("import os; os._exit(0)"), f"{_ENDED} 0"),
    "segfault": (_first("import ctypes; ctypes.string_at(0)"), f"{_CRASHED} (SIGSEGV)"),
    "abort": (_first("import os; os.abort()"), f"{_CRASHED} (SIGABRT)"),
    "kills": (_first("import os; os.kill(os.getpid(), 9)"), f"{_CRASHED} (SIGKILL)"),
    "terminates": (_first("import os, time\nos.kill(os.getpid(), 15)\ntime.sleep(60)"), f"{_CRASHED} (SIGTERM)"),
    "forks": (_first("import os; os.fork()"), "forked while it was loaded"),
    "prints": (_first("print('hello')"), "printed to standard output while it was loaded: 'hello"),
    "prints-below": (_first("import os; os.write(1, b'hello')"), "printed to standard output while it was loaded"),
    "asks": (_first("input('name? ')"), "Error: "),
    "empty": (
        "",
        "implements no hook, so it provides nothing. Check its entry point, and mark its hooks with @hookimpl",
    ),
    "zero-bytes": (f"\0\0\0{SOUND}", "null bytes"),
    "latin": (f"x = 'na\udcefve'\n{SOUND}", "SyntaxError: "),
    "no-module": (f"import sys\nsys.modules[__name__] = None\n{SOUND}", "Error: "),
    "other-module": (f"import sys\nsys.modules[__name__] = 7\n{SOUND}", "Error: "),
    "moody": (f"{SOUND}\ndef __getattr__(name):\n    raise RuntimeError('not now')\n", "RuntimeError: not now"),
}
"""By their names, modules that fail while they are imported, or just after; and what is said of each."""

AT_REGISTRATION: Mapping[str, tuple[str, str]] = {
    "wrong-item": (_registering("return [42]"), "registered 42 where a "),
    "no-list": (_registering("return 7"), "a hook returned 7; it must return a list of "),
    "faulty-generator": (_registering("return (1 / 0 for _ in range(3))"), "ZeroDivisionError: division by zero"),
    "endless-generator": (_registering("while True: yield ITEM"), "it must return a list that ends"),
    "registration-raises": (_registering("raise KeyError('lost')"), "KeyError: 'lost'"),
    "registration-exits": (_registering("raise SystemExit(3)"), "SystemExit: 3"),
    "registration-ends": (_registering("import os; os._exit(4)"), f"{_ENDED} 4"),
    "registration-crashes": (_registering("import os; os.abort()"), f"{_CRASHED} (SIGABRT)"),
    "registration-forks": (_registering("import os; os.fork(); return [ITEM]"), "forked while it was loaded"),
    "registration-prints": (_registering("print('hello'); return [ITEM]"), "printed to standard output"),
    "class-for-object": (_registering("return [type(ITEM)]"), "registered <class "),
    "wrong-arguments": ("PARTS\n@hookimpl\ndef REGISTERS(colour):\n    return [ITEM]\n", "PluginValidationError: "),
    "unmarked": (
        "PARTS\ndef REGISTERS():\n    return [ITEM]\n",
        "has no @hookimpl, so it would not be called. Write @hookimpl above it",
    ),
    "misspelt": ("PARTS\n@hookimpl\ndef REGISTERSS():\n    return [ITEM]\n", "Unknown hook 'marvin_register_"),
    "misspelt-unmarked": ("PARTS\ndef REGISTERSS():\n    return [ITEM]\n", "Unknown hook 'marvin_register_"),
    "configure-raises": (_configuring("1 / 0"), "ZeroDivisionError: "),
    "configure-ends": (_configuring("import os; os._exit(5)"), f"{_ENDED} 5"),
    "other-registration": (f"{SOUND}\n@hookimpl\ndef marvin_register_uis():\n    return [1]\n", "where a UISpec"),
    "bad-tool": (
        f"{SOUND}\nfrom marvin_core import tool\n@tool(access=['fly'])\nasync def x() -> str:\n    'X.'\n",
        "declares access ['fly']",
    ),
}
"""By their names, modules whose registration fails; and what is said of each."""

BY_METADATA: Mapping[str, tuple[str, str]] = {
    "no-file": ("", "No module named 'broken_no_file'"),
    "attribute": (SOUND, "its entry point names broken_attribute:plugin; it must name only a module"),
}
"""Those where the module may be sound, and its distribution is not."""

OF_GUARDS: Mapping[str, tuple[str, str]] = {
    "plain-method": (SOUND, "Guard.before_tool cannot be awaited. Write `async def before_tool`"),
    "no-return": (_registering("[ITEM]"), "marvin_register_hooks returned None; it must return a list of Hooks"),
    "misspelt-method": (SOUND, "Guard.before_tools is not a hook, so it is never called. Did you mean before_tool?"),
    "misspelt-order": (SOUND, "Guard.try_last is not a hook, so it is never looked at. Did you mean trylast?"),
    "order-without-sense": (SOUND, "Guard.trylast is 'yes'. Write `trylast = True`"),
}
"""Those that only a guard can have."""

HANGING: Mapping[str, tuple[str, str]] = {
    "waits": (_first(_WAIT), _HUNG),
    "busy": (_first("while True: pass"), _HUNG),
    "busy-below": (_first("import ctypes; ctypes.PyDLL(None).pause()"), _HUNG),
    "registration-waits": (_registering(_WAIT), _HUNG),
    "configure-waits": (_configuring(_WAIT), _HUNG),
}
"""Those that never come to an end."""

QUICK: Mapping[str, tuple[str, str]] = {**AT_IMPORT, **AT_REGISTRATION, **BY_METADATA}
UNREADABLE = frozenset({"empty", "no-file", "zero-bytes", "no-module", "other-module", "moody"})
"""Those whose source does not say that they register no hooks."""


def install_broken(name: str, folder: Path, *, guard: bool) -> None:
    """Install the pack with this fault, as its wheel has it."""
    template = {**QUICK, **OF_GUARDS, **HANGING}[name][0]
    parts, item = (GUARD, "Guard()") if guard else (PLAIN, "COMMAND")
    if name == "plain-method":
        parts = parts.replace("async def", "def")
    if name == "misspelt-method":
        parts = parts.replace("before_tool", "before_tools")
    for fault, line in (("misspelt-order", "try_last = True"), ("order-without-sense", "trylast = 'yes'")):
        if name == fault:
            parts = parts.replace("(Hook):\n", f"(Hook):\n    {line}\n")
    module = f"broken_{name.replace('-', '_')}"
    registers = "marvin_register_hooks" if guard else "marvin_register_commands"
    source = template.replace("PARTS", parts).replace("REGISTERS", registers)
    source = source.replace("ITEM", item).replace("NAME", module)
    attribute = ":plugin" if name == "attribute" else ""
    files = {} if name == "no-file" else {f"{module}.py": source}
    install_wheel(folder, f"broken-{name}", files, f"[marvin]\n{module} = {module}{attribute}\n")


def install_wheel(folder: Path, distribution: str, files: Mapping[str, str], entry_points: str) -> None:
    """Make a wheel by hand and install it as an installer does."""
    stem = f"{distribution.replace('-', '_')}-1.0"
    info = f"{stem}.dist-info"
    metadata = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": entry_points,
    }
    content = {**files, **metadata}
    path = folder.parent / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in content.items():
            wheel.writestr(name, text.encode("utf-8", "surrogateescape"))
        wheel.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*content, f"{info}/RECORD"]))
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder)
