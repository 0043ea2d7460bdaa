"""Traces and metrics of one run with OpenTelemetry, if config.yaml enables them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..api.config import Config
from ..api.providers import OFFLINE, Secret
from ..config.secret_files import secrets_of_address, secrets_of_headers
from ..config.secrets import Secrets
from ..util.threads import in_thread
from .content import Content
from .exporting import Destination, Exporter
from .trace_context import context_of
from .traced import TracedProvider
from .tree import SpanTree

if TYPE_CHECKING:
    from ..api.providers import Provider
    from ..api.session import TurnResult
    from ..engine.parts import SessionParts

_SIGNALS = ("", "TRACES_", "METRICS_")
_ENDPOINTS = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in _SIGNALS)
HEADERS = tuple(f"OTEL_EXPORTER_OTLP_{signal}HEADERS" for signal in _SIGNALS)
"""Variables with headers for a collector: usually keys."""
_DEFAULT = "http://localhost:4318"
_EXTRA = 'telemetry: is on in config.yaml, and its extra is not installed. Install it: pip install "marvin-core[otel]"'


class Telemetry:
    """The spans and metrics of a run."""

    def __init__(self, config: Config, secrets: Secrets, warn: Callable[[str], None]) -> None:
        self._config = config
        self._warn = warn
        self._exporter = Exporter(_destination(config, secrets), self._tell)
        self._tree = SpanTree(context_of(secrets.setting), self._exporter)

    def _tell(self, text: str) -> None:
        self._warn(text)

    def traced(self, provider: Provider, base_url: str) -> Provider:
        """The provider with a span for each request, unless it has no model."""
        return provider if provider.name == OFFLINE else TracedProvider(provider, base_url, self._tree)

    def attach(self, parts: SessionParts) -> None:
        """Set the session whose events are traced."""
        asked = self._config.telemetry
        self._warn = parts.bus.warn
        self._tree.attach(parts, Content(parts.kept.text, asked.longest if asked.content else 0))
        parts.endings.append(self.close)

    async def lead(self, work: Callable[[], Awaitable[TurnResult]]) -> TurnResult:
        """Run a sub-command in its own span."""
        return await self._tree.lead(work)

    async def close(self) -> None:
        """Export the rest, within the configured time."""
        self._tree.close()
        await in_thread(lambda: self._exporter.close(self._config.timeouts.telemetry))


def telemetry_of(config: Config, secrets: Secrets, warn: Callable[[str], None]) -> Telemetry | None:
    """Starts tracing; None if OTEL_SDK_DISABLED is set or the extra is missing."""
    if (secrets.setting("OTEL_SDK_DISABLED") or "").strip().lower() == "true":
        return None
    if not _is_installed():
        warn(_EXTRA)
        return None
    _learn_keys(config, secrets)
    return Telemetry(config, secrets, warn)


def _is_installed() -> bool:
    """Whether the extra is installed: other libraries install the API alone."""
    from importlib.util import find_spec

    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def _destination(config: Config, secrets: Secrets) -> Destination:
    """The target; a variable overrides config.yaml."""
    given = next(filter(None, map(secrets.setting, _ENDPOINTS)), "")
    own = "" if given else config.telemetry.endpoint
    ca_file = "" if secrets.setting("OTEL_EXPORTER_OTLP_CERTIFICATE") else config.ca_file
    return Destination(endpoint=own, ca_file=ca_file, shown=_shown(given or own or _DEFAULT))


def _shown(url: str) -> str:
    """An address as shown to the user, without password, path and query."""
    try:
        parts = urlsplit(url)
        if not parts.hostname:
            return "an address that is none"
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return "an address that is none"


def _learn_keys(config: Config, secrets: Secrets) -> None:
    """Redact the keys of the collector, hide them from programs, and pass them to sub-agents."""
    secrets.declare(HEADERS)
    secrets.of_agents += (*HEADERS, *_ENDPOINTS)
    for value in _keys(config, secrets):
        secrets.learn(Secret(value))


def _keys(config: Config, secrets: Secrets) -> Iterator[str]:
    for name in _ENDPOINTS:
        yield from secrets_of_address(secrets.setting(name) or "")
    yield from secrets_of_address(config.telemetry.endpoint)
    for name in HEADERS:
        pairs = (pair.partition("=") for pair in (secrets.setting(name) or "").split(","))
        headers = {key.strip(): unquote(value.strip()) for key, _, value in pairs if value.strip()}
        yield from secrets_of_headers(headers)
