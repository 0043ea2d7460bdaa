"""The cost of opening and resuming a long session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import answers
from benchmarks.lab import Lab, interleaved, median
from benchmarks.table import Row
from marvin_core import Message, Text, ToolCall, ToolOutput
from marvin_core.api.messages import Usage, tool, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.sessions.records import Header
from marvin_core.sessions.transcript import Transcript

_MESSAGES = 10_000
_SINCE = 40
"""Messages after the newest compaction."""
_GOALS = {"compacted": 0.05, "whole": 3.0}
# Comparisons import this name, and the function `_session`, from other commits.
_TIMED = """
import gc, json, sys, time
from pathlib import Path
from marvin_core.api import timeouts
from marvin_core.conversation import conversation, pairing
from marvin_core.guard import redaction
from marvin_core.sessions import reader, writer as sessions
gc.disable()  # as it is until the first request is out
path = Path(sys.argv[2])

def decode():
    return [json.loads(line) for line in path.read_bytes().splitlines()]

def resume():
    loaded = reader.load(path)
    messages, _ = pairing.heal(loaded.messages)
    writer = sessions.SessionWriter(path.parent, timeouts.Timeouts(), print)
    writer.resume(path, loaded)
    live = conversation.Conversation(writer, redaction.Redactor(tuple))
    live.load(messages)
    return live

work = {"decode": decode, "resume": resume}[sys.argv[1]]
begun = time.perf_counter()
result = work()
print(json.dumps((time.perf_counter() - begun) * 1e3))
"""


def opened(lab: Lab, script: str, work: str, path: Path) -> float:
    """Milliseconds that this script takes to `resume` a session, or to `decode` its file."""
    return float(json.loads(lab.run([lab.program.python, "-c", script, work, str(path)], piped=True).output))


def sessions_folder(lab: Lab) -> Path:
    """Where Marvin keeps its sessions."""
    return lab.folder / "home" / ".local" / "share" / "marvin" / "sessions"


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The rows of the table on sessions."""
    files = {name: _session(sessions_folder(lab), name, lab.work) for name in _GOALS}
    yield from _opened(lab, files, rounds)
    yield _resumed(lab, files["compacted"], rounds)
    for path in files.values():
        path.unlink()


def _opened(lab: Lab, files: dict[str, Path], rounds: int) -> Iterator[Row]:
    taken = partial(opened, lab, _TIMED)
    times = interleaved(
        {f"{work} {name}": partial(taken, work, path) for work in ("decode", "resume") for name, path in files.items()},
        rounds,
    )
    for name, goal in _GOALS.items():
        value, reference = median(times[f"resume {name}"]), median(times[f"decode {name}"])
        size = files[name].stat().st_size / 1e6
        how = f"{value:.1f} ms; reading and decoding its {size:.1f} MB {reference:.0f} ms"
        what = f"open {_MESSAGES:,} messages, {'a compaction near the end' if name == 'compacted' else 'no compaction'}"
        yield Row(what, value / reference, goal, "x", how)


def _resumed(lab: Lab, path: Path, rounds: int) -> Row:
    def taken(*flags: str) -> float:
        return lab.run([*lab.marvin(), *flags], [answers.text(1)]).to_first_request

    times = interleaved({"new": partial(taken), "resumed": partial(taken, "--resume", path.stem)}, rounds)
    value, reference = median(times["resumed"]), median(times["new"])
    how = f"{value:.0f} ms to the first request; a new session {reference:.0f} ms"
    return Row("  resumed, against a new session", value / reference, 1.15, "x", how)


def _session(folder: Path, name: str, working_dir: Path) -> Path:
    """A session of calls and answers, as coding makes it."""
    path = folder / f"{name}.jsonl"
    header = Header(id=name, title=name, time=0.0, provider="", model="", working_dir=str(working_dir))
    transcript = Transcript(path, header, Timeouts())
    messages = [message for number in range(_MESSAGES // 4) for message in _turn(number)]
    if name == "compacted":
        transcript.append(*messages[:-_SINCE])
        kept = messages[-_SINCE - 8 : -_SINCE]
        transcript.append_compaction([messages[0], user("What was done so far. " * 200), *kept])
        transcript.append(*messages[-_SINCE:])
    else:
        transcript.append(*messages)
    transcript.close()
    return path


def _turn(number: int) -> list[Message]:
    used = Usage(input_tokens=10_000, output_tokens=200)
    call = ToolCall(id=f"call_{number}", name="read_file", arguments=f'{{"path": "src/module_{number}.py"}}')
    output = ToolOutput(call_id=call.id, name=call.name, content=(Text(text="a line of the file\n" * 40),))
    answer = Text(text="It reads the file and returns what it holds. " * 10)
    return [
        user(f"What does module {number} do? " * 3),
        Message(role="assistant", content=(Text(text="I look."), call), usage=used, stop_reason="tool_calls"),
        tool([output]),
        Message(role="assistant", content=(answer,), usage=used, stop_reason="stop"),
    ]
