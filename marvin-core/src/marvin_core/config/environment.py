"""The environment variables that the core reads. The reference page and a test use this table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from zlib import crc32

ENVIRONMENT: Mapping[str, str] = {
    "LLM_PROVIDER": "The model service, if --provider is not given.",
    "MARVIN_MODEL": "The model, if --model is not given.",
    "MARVIN_THINKING": "How much the model thinks, if --thinking is not given: off, low, medium or high.",
    "MARVIN_CODE_MODEL_HIGH": "The model of the tier opus: reviews, and `!pro`.",
    "MARVIN_CODE_MODEL_LOW": "The model of the tier codex: writing code, and fixes.",
    "MARVIN_CODE_MODEL_PLAN": "The model of the tier plan: finding errors. Default: the model of the tier opus.",
    "MARVIN_CODE_MODEL_PLAN_GEN": "The model of the tier plan_gen: specifications and designs.",
    "MARVIN_CODE_MODEL_TEST_WRITER": "The model of the tier test_writer: tests.",
    "MARVIN_CODE_MODEL_AUX_REVIEWER": "The model of the tier aux_reviewer: further reviewers.",
    "MARVIN_HOME": "A folder that holds configuration, data, cache and state together.",
    "MARVIN_PACKS": "Comma-separated names of the packs to load; no others are loaded.",
    "MARVIN_TRACE_HOOKS": "Set to 1 to print each call of a pack's registration hooks to stderr.",
    "MARVIN_PERMISSION_MODE": "The permission mode, if --permission-mode is not given: ask, edit, auto or readonly.",
    "MARVIN_ON_ASK": "What a non-interactive run does with calls that need approval, if --on-ask is not given.",
    "MARVIN_DEPTH": "The nesting depth of this agent; set by the agent that starts it.",
    "MARVIN_READONLY": "Set to 1 to remove all tools that write files or run programs.",
    "MARVIN_WRITABLE_FILES": "Comma-separated files, relative to the working directory: only these may be written.",
    "MARVIN_NETWORK": "What commands can reach in the sandbox, if --network is not given: none, loopback, all, or "
    "hosts.",
    "MARVIN_TOOL_SEARCH": "Whether tools are hidden until the model searches for them, if --tool-search is not "
    "given: on, off or auto.",
    "MARVIN_SANDBOX": "Whether commands run in a sandbox, if --sandbox is not given: auto, required or off.",
    "MARVIN_TICKET": "The ticket this sub-agent works on.",
    "MARVIN_MAX_COST": "The cost ceiling in USD, if --max-cost is not given.",
    "MARVIN_LEDGER": "The file that records the costs below the ceiling; set by the agent that starts this one.",
    "MARVIN_SUBAGENT_LOG": "A file that gets one JSON line for each tool call.",
    "MARVIN_AGENT_SLOTS": "The file that counts the agents that run at the same time; set by the agent that starts "
    "this one.",
    "MARVIN_LIFELINE": "Says that this agent ends when its standard input closes; set by the agent that starts it.",
    "XDG_CONFIG_HOME": "Where the configuration folder is; default: ~/.config.",
    "XDG_DATA_HOME": "Where the data folder is; default: ~/.local/share.",
    "XDG_CACHE_HOME": "Where the cache folder is; default: ~/.cache.",
    "XDG_STATE_HOME": "Where the state folder is; default: ~/.local/state.",
    "HTTP_PROXY": "The proxy for http:// addresses.",
    "HTTPS_PROXY": "The proxy for https:// addresses.",
    "NO_PROXY": "Comma-separated hosts that are reached without a proxy.",
    "SSL_CERT_FILE": "A file with the certificate authorities to trust.",
    "NO_COLOR": "Set to any value to turn off colours.",
    "MARVIN_SCREEN_READER": "Set to 1 to make the chat suitable for a screen reader, as --screen-reader does.",
    "TERM": "The kind of terminal; in a dumb one the chat writes plain lines.",
    "XTERM_VERSION": "Set by xterm itself, which does not wrap long rows when its window gets narrower.",
    "STY": "Set by GNU screen, which does not restore the screen when another program has used it.",
    "EDITOR": "The program that `marvin config edit` and `preferences edit` open, default: nano; and `marvin tk edit`, "
    "default: vi.",
    "TICKETS_DIR": "The folder of the tickets; default: the nearest `.tickets` from the current folder upwards.",
    "TICKET_PAGER": "The program by which `marvin tk show` shows a ticket on a terminal.",
    "PAGER": "The program that shows a ticket if TICKET_PAGER is not set.",
    "MARVIN_URL_NTFY": "The server that --ntfy publishes to, instead of the public one.",
    "MARVIN_MCP_TOKEN": "The token that clients of `marvin mcp serve --http` send; without it, each run makes its own.",
    "MARVIN_URL_PRICES": "Where `marvin models update` downloads the price table, instead of from its publisher.",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "The collector of traces and metrics, if config.yaml has `telemetry: on`.",
    "OTEL_EXPORTER_OTLP_HEADERS": "The headers that are sent to the collector, as in api-key=...: a secret.",
    "OTEL_SERVICE_NAME": "The name of the service in traces and metrics; default: marvin.",
    "OTEL_RESOURCE_ATTRIBUTES": "Further attributes of the service, as in deployment.environment.name=ci.",
    "OTEL_TRACES_SAMPLER": "Which traces are kept; OTEL_TRACES_SAMPLER_ARG sets their share.",
    "OTEL_TRACES_SAMPLER_ARG": "See OTEL_TRACES_SAMPLER.",
    "OTEL_SDK_DISABLED": "true: neither traces nor metrics are sent, whatever config.yaml says.",
    "TRACEPARENT": "The parent span of the spans of a run, if config.yaml has `telemetry: on`.",
    "CI": "Set by CI services.",
}
"""The variables that `Config` and the ticket program read. Providers and packs declare their own."""

READ_BY_LIBRARIES = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that native libraries read, not through Python."""
_OF_SHELLS = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES"})
"""Variables that shells change between commands. Code that copies the whole environment reads them as well."""


def variable_stamps(names: Iterable[str]) -> dict[str, int]:
    """Stamps of these variables of this process, to detect changes.

    A stamp is a checksum of the value; 0 means that the variable is not set.
    """
    return {name: _variable_stamp(os.environ.get(name)) for name in sorted({*names} - _OF_SHELLS)}


def _variable_stamp(value: str | None) -> int:
    return 0 if value is None else crc32(os.fsencode(value)) + 1
