"""Configurable limits for counts and sizes, and the settings of telemetry and prices."""

from __future__ import annotations

from .record import Record


class Limits(Record):
    """Ceilings; `limits:` in config.yaml changes them. Each is a whole number from 1 on."""

    event: int = 4_000_000
    """Bytes of one event of a streamed answer, and of what stands between two events."""
    document: int = 4_000_000
    """Bytes of an answer that is one JSON document, not a stream."""
    values: int = 200_000
    """Objects and lists in one event or document: each takes far more memory than it takes bytes."""
    answer: int = 4_000_000
    """Characters of the text and the thinking of an answer, and of the data that goes back with them."""
    arguments: int = 4_000_000
    """Characters of the arguments of all calls of an answer."""
    stream: int = 400_000_000
    """Bytes of a streamed answer as a whole, decompressed, including data that is not content."""
    body: int = 50_000_000
    """Bytes of what a tool reads from one address, decompressed."""
    download: int = 20_000_000_000
    """Bytes of one file that a tool saves, as they come."""
    shown: int = 200_000
    """Characters of what a tool shows people beside its output; rows of tables beyond that are left out."""
    parallel_calls: int = 8
    """Calls of one answer that run in parallel."""
    agents: int = 8
    """Agents of one run that work at the same time, including nested ones; an agent that waits for its own agents does
    not count."""
    agent_days: int = 30
    """The age, in days, beyond which the prompts of agents and the lists of their calls are removed."""
    proxy_connections: int = 256
    """Connections that commands in the sandbox have at a time, where a proxy leads them to the hosts they may reach."""
    sandbox_memory: int = 75
    """Percent of the machine's memory that all commands in the sandbox may take together."""
    sandbox_processes: int = 4_000
    """Processes that may be in the sandbox at a time."""
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
    """Bytes of all snapshots of folders that are taken around commands; those used longest ago are removed first. Of a
    folder that has more, none is taken."""
    instruction_file: int = 16_000
    """Characters of one file with instructions that go into the prompt, those that it imports included."""
    instructions: int = 32_000
    """Characters of all files with instructions together; the nearest ones come first."""
    skills: int = 12_000
    """Characters of the names and descriptions of all skills in the prompt; beyond that, names alone."""
    output_file: int = 100_000_000
    """Bytes of a command's output that are kept in a file, where the model is shown only its head and its tail."""
    output_files: int = 500_000_000
    """The size of all such files of a working directory, beyond which the oldest ones are removed."""
    output_days: int = 7
    """The age, in days, beyond which such a file is removed."""
    pack_memory: int = 2_000_000_000
    """Bytes of memory that `marvin packs check` lets a pack take."""
    pack_file: int = 100_000_000
    """Bytes of a file that `marvin packs check` lets a pack write."""
    command: int = 65_536
    """Bytes of a shell command that is parsed to check it against rules; a longer one counts as not understood."""
    command_operators: int = 128
    """Pipes, lists, substitutions and brackets of such a command; with more of them it counts as not understood."""
    command_words: int = 2_000
    """Words of such a command, as far as blanks tell; with more of them it counts as not understood."""
    command_parts: int = 1_000
    """The commands that such a command is made of, those of scripts within it included."""
    command_scripts: int = 24
    """Scripts within such a command, as in `sh -c SCRIPT`, that are taken apart."""
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
