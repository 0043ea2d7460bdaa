"""The cost of compacting a conversation that fills the window, without the model's summary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from benchmarks.lab import BenchmarkError, Lab, interleaved, median
from benchmarks.table import Row

TOKENS = 200_000
# Comparisons import this name from other commits.
_TIMED = """
import asyncio, json, os, sys, time
from pathlib import Path
from marvin_core import Message, Text, ToolCall, ToolOutput
from marvin_core.conversation.compactor import Compactor
from marvin_core.config.load import load
from types import SimpleNamespace
from marvin_core.util.bus import Bus
from marvin_core.util.clock import SystemClock
from marvin_core.conversation.conversation import Conversation
from marvin_core.api.messages import to_dict, tool, user
from marvin_core.sessions.writer import SessionWriter
from marvin_core.usage.meter import UsageMeter
from marvin_core.conversation.window import Window
from marvin_core.guard.files.workspace import Workspace
from marvin_core.guard.kept_texts import KeptTexts
from marvin_core.guard.redaction import Redactor

def turn(number):
    call = ToolCall(id=f"call_{number}", name="read_file", arguments=json.dumps({"path": f"src/module_{number}.py"}))
    output = ToolOutput(call_id=call.id, name=call.name, content=(Text(text="a line of the file\\n" * 400),))
    answer = Text(text="It reads the file and returns what it holds. " * 10)
    return [
        user(f"What does module {number} do?"),
        Message(role="assistant", content=(Text(text="I look."), call), stop_reason="tool_calls"),
        tool([output]),
        Message(role="assistant", content=(answer,), stop_reason="stop"),
    ]

folder, tokens = Path(sys.argv[2]), int(sys.argv[3])
config, _ = load([], {"HOME": str(folder), "MARVIN_HOME": str(folder / "marvin")}, cwd=folder)
recorder = SessionWriter(config.data_folder / "sessions", config.timeouts, print)
recorder.begin(time.time(), "compaction", "", "", str(folder))
window = Window(tokens * 10)
conversation = Conversation(recorder, Redactor(tuple))
number = 0
while window.tokens(conversation.characters) < tokens:
    for message in turn(number):
        conversation.append(message)
    number += 1

async def compact():
    meter = UsageMeter(lambda *_: None, lambda *_: True)
    model = SimpleNamespace(window=window, summarizer=lambda: None)
    return await Compactor(SimpleNamespace(
        config=config, workspace=Workspace(config), conversation=conversation, model=model, meter=meter, bus=Bus(),
        clock=SystemClock(), kept=KeptTexts(),
    )).compact(50_000)

async def copy():
    data = b"".join(json.dumps(to_dict(message)).encode() + b"\\n" for message in conversation.messages)
    with (folder / f"copy-{time.time_ns()}").open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())

async def timed():
    begun = time.perf_counter()
    told = await {"compact": compact, "copy": copy}[sys.argv[1]]()
    return [(time.perf_counter() - begun) * 1e3, told or "", number * 4]

print(json.dumps(asyncio.run(timed())))
"""


def timed(lab: Lab, script: str, work: str) -> tuple[float, int]:
    """Milliseconds that this script takes to `compact` or to `copy` a conversation, and the number of its messages."""
    folder = lab.work / "compaction"
    folder.mkdir(exist_ok=True)
    output = lab.run([lab.program.python, "-c", script, work, str(folder), str(TOKENS)], piped=True).output
    value, told, count = json.loads(output)
    if work == "compact" and "was compacted" not in told:
        raise BenchmarkError(f"nothing was compacted: {told}")
    return float(value), int(count)


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The row of the table on compaction."""
    runs = interleaved({work: partial(timed, lab, _TIMED, work) for work in ("compact", "copy")}, rounds)
    value, reference = (median([taken for taken, _ in runs[work]]) for work in ("compact", "copy"))
    count = runs["compact"][0][1]
    how = f"{value:.0f} ms for {count:,} messages, the backup on disk; writing them as JSON alone {reference:.0f} ms"
    yield Row(f"compaction of {TOKENS:,} tokens", value / reference, 4.0, "x", how)
