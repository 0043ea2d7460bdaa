"""Configurable limits for counts and sizes, and the settings of telemetry and prices."""

from __future__ import annotations

from .record import Record


class Limits(Record):
    """Ceilings; `limits:` in config.yaml changes them. Each is a whole number from 1 on."""

    event: int = 4_000_000
    """Bytes of one event of a streamed answer."""
    document: int = 4_000_000
    """Bytes of an answer that is one JSON document instead of a stream."""
    values: int = 200_000
    """Objects and lists in one event or document; each takes far more memory than bytes."""
    answer: int = 4_000_000
    """Characters of the text and the thinking of an answer, and of the data that is sent back with them."""
    arguments: int = 4_000_000
    """Characters of the arguments of all calls of an answer."""
    stream: int = 400_000_000
    """Bytes of a streamed answer as a whole, decompressed, including data that is not content."""
    body: int = 50_000_000
    """Bytes of what a tool reads from one address, decompressed."""
    download: int = 20_000_000_000
    """Bytes of one file that a tool downloads, as they are sent."""
    shown: int = 200_000
    """Characters of what a tool shows people in addition to its output; further rows of tables are left out."""
    parallel_calls: int = 8
    """Calls of one answer that run in parallel."""
    agents: int = 8
    """Agents of one run that work at the same time, including nested ones; an agent that waits for its own agents does
    not count."""
    agent_days: int = 30
    """The age, in days, beyond which the prompts of agents and the lists of their calls are removed."""
    proxy_connections: int = 256
    """Connections that commands in the sandbox have at a time, if a proxy restricts them to certain hosts."""
    sandbox_memory: int = 75
    """Percent of the machine's memory that all commands in the sandbox may use together."""
    sandbox_processes: int = 4_000
    """Processes that may run in the sandbox at a time."""
    session_line: int = 32_000_000
    """Bytes of a line of a session file. A longer line is cut when it is written, and skipped when it is read."""
    backup_days: int = 90
    """The age, in days, beyond which backups of conversations are removed."""
    backup_bytes: int = 100_000_000
    """The size of all backups of conversations in a folder, beyond which the oldest ones are removed."""
    undo_days: int = 30
    """The age, in days, beyond which a change can no longer be undone."""
    undo_bytes: int = 200_000_000
    """The size of all data that is kept for undo, beyond which the oldest of it is removed."""
    undo_file: int = 20_000_000
    """Bytes of a file beyond which a change of it cannot be undone."""
    undo_snapshots: int = 1_000_000_000
    """Bytes of all snapshots of folders around commands. The least recently used ones are removed first. A folder that
    is larger gets no snapshot."""
    instruction_file: int = 16_000
    """Characters of one file with instructions in the prompt, including the files that it imports."""
    instructions: int = 32_000
    """Characters of all files with instructions together; the nearest ones come first."""
    skills: int = 12_000
    """Characters of the names and descriptions of all skills in the prompt; beyond that, only names are listed."""
    output_file: int = 100_000_000
    """Bytes of a command's output that are kept in a file, if the model gets only its start and its end."""
    output_files: int = 500_000_000
    """The size of all files with output of a working directory, beyond which the oldest ones are removed."""
    output_days: int = 7
    """The age, in days, beyond which a file with output is removed."""
    pack_memory: int = 2_000_000_000
    """Bytes of memory that `marvin packs check` lets a pack take."""
    pack_file: int = 100_000_000
    """Bytes of a file that `marvin packs check` lets a pack write."""
    command: int = 65_536
    """Bytes of a shell command that is parsed to check it against rules; a longer one counts as not understood."""
    command_operators: int = 128
    """Pipes, lists, substitutions and brackets of such a command; one with more counts as not understood."""
    command_words: int = 2_000
    """Words of such a command, separated by blanks; one with more counts as not understood."""
    command_parts: int = 1_000
    """The commands in such a command, including those of scripts in it."""
    command_scripts: int = 24
    """Scripts in such a command that are parsed, as in `sh -c SCRIPT`."""
    command_tree: int = 3_000_000
    """Bytes of the syntax tree of such a command."""
    command_memory: int = 400_000_000
    """Bytes of memory that the parser may take, on Linux."""


class Telemetry(Record):
    """`telemetry:`, what is sent to a collector of OpenTelemetry; `telemetry: on` is short for `enabled`."""

    enabled: bool = False
    """Whether traces and metrics of runs are sent by OpenTelemetry; see [Tracing](../how-to/tracing.md)."""
    endpoint: str = ""
    """The address of the collector (OTLP over HTTP), without `/v1/traces`, if OTEL_EXPORTER_OTLP_ENDPOINT is not set.
    Without either: http://localhost:4318."""
    content: bool = False
    """Whether prompts, answers, arguments and results of tools are sent as well, redacted as in logs."""
    longest: int = 4_000
    """The maximum number of characters of each of these texts."""


class Price(Record):
    """USD per million tokens, from config.yaml."""

    input: float = 0.0
    """The price of a million input tokens of this model, in USD."""
    output: float = 0.0
    """The price of a million output tokens."""
    cache_read: float | None = None
    """The price of a million tokens that are read from the service's cache."""
    cache_write: float | None = None
    """The price of a million tokens that are written to the service's cache."""
