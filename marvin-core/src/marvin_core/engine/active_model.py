"""The current model of a session, its thinking level and its context window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, get_args

from ..api.errors import ConfigError, MarvinError, UsageError
from ..api.models import ModelEntry, ModelSource, Serving
from ..api.providers import OFFLINE, Measures, Provider, ThinkingLevel
from ..config.tiers import ALIASES
from ..conversation.window import Window
from ..sessions.writer import SessionWriter
from ..util.bus import Bus

if TYPE_CHECKING:
    from ..api.config import Config
    from ..api.models import CostCeiling

# Why a model answers, as /model shows it.
_ITS_OWN = "the session used it"
_LARGER = "the conversation needs its larger window"
_BEFORE = "it answered before"


class ActiveModel:
    """The model of a session, which the user may switch between prompts. Switches are written to the session file.

    `ceiling`, unless None, is the cost ceiling of a prompt beside the one of the run. With `restarts` another model may
    repeat an answer that was shown in part.
    """

    def __init__(self, source: ModelSource, writer: SessionWriter, bus: Bus, config: Config, *, restarts: bool) -> None:
        self.source = source
        self.thinking: ThinkingLevel = config.thinking
        self._config = config
        self.ceiling: CostCeiling | None = None
        self._writer = writer
        self._bus = bus
        self._restarts = restarts
        self._chosen = source.first()
        self._lent: Provider | None = None
        self._windows: dict[tuple[str, str], Window] = {}
        self._listed: dict[tuple[str, str], int | None] = {}
        self._shown: tuple[Provider | None, Window] | None = None
        """The provider whose window was queried last, as a cache for several queries per round."""
        self._told: set[tuple[str, str]] = set()
        self._last: Provider | None = None

    def _changed(self) -> None:
        self._writer.changed(provider=self.provider_name, model=self.model, thinking=self.thinking)

    @property
    def _answering(self) -> Provider | None:
        return self._lent or (self._chosen.provider if self._chosen else None)

    @property
    def window(self) -> Window:
        """The context window of the current model, with corrections by the service."""
        provider = self._answering
        if self._shown is None or self._shown[0] is not provider:
            key = _key(provider)
            if key not in self._windows:
                self._listed[key] = provider.context_window if provider else None
                self._windows[key] = Window(self._listed[key])
            self._shown = provider, self._windows[key]
        return self._shown[1]

    @property
    def provider(self) -> Provider:
        """The current provider.

        Raises:
            ConfigError: no model is configured; the text says how to set one.
        """
        if self._chosen is None:
            raise ConfigError(self.source.how_to)
        return self._chosen.provider

    @property
    def configured(self) -> bool:
        """Whether a model is configured."""
        return self._chosen is not None

    @property
    def reason(self) -> str:
        """Why this model was chosen."""
        return self._chosen.reason if self._chosen else ""

    @property
    def provider_name(self) -> str:
        """The model service, or an empty string."""
        return self._chosen.provider.name if self._chosen else ""

    @property
    def model(self) -> str:
        """The model, or an empty string."""
        return self._chosen.provider.model if self._chosen else ""

    def use(self, name: str) -> None:
        """Switch to the model with a name; for a tier, report why. Raises as `ModelSource.named`."""
        serving = self.source.named(name, self._chosen.provider if self._chosen else None)
        if name in ALIASES:
            self.thinking = self._level_of(ALIASES[name])
        self._take(serving)
        self._tell_end(serving.provider)
        if name in ALIASES:
            self._bus.tell(f"{name} is {serving.provider.model} of {serving.provider.name}: {serving.reason}.")

    def _level_of(self, tier: str) -> ThinkingLevel:
        return self._config.tier_thinking.get(tier, self.thinking)

    def _tell_end(self, provider: Provider) -> None:
        ending = self.source.ending(provider)
        if ending:
            self._bus.warn(ending)

    def know(self, name: str | None) -> None:
        """Fetch what services know about a name, before it is used. Blocks."""
        self.source.know(name, self._chosen.provider if self._chosen else None)

    def know_earlier(self, provider: str, model: str) -> None:
        """Fetch what `restore` needs for the model of a session. Blocks."""
        if provider not in ("", OFFLINE) and (provider, model) != (self.provider_name, self.model):
            with suppress(MarvinError):  # `restore` reports it
                self.source.know(f"{provider}/{model}", None)

    def _take(self, serving: Serving) -> None:
        self._chosen = serving
        self._changed()

    def moved(self, provider: Provider) -> None:
        """The conversation exceeded the window of the model; this larger model continues it."""
        self._take(Serving(provider=provider, reason=_LARGER))

    def lent(self, provider: Provider) -> None:
        """This model is used until the prompt is complete; the conversation is limited by its window."""
        self._lent = provider

    def prompt_ended(self) -> None:
        """The chosen model is used again."""
        self._lent = None

    def think(self, level: str) -> None:
        """Set the thinking level from the next prompt on.

        Raises:
            UsageError: the level does not exist.
        """
        levels = get_args(ThinkingLevel)
        if level not in levels:
            raise UsageError(f"Unknown thinking level {level!r}. Use one of: {', '.join(levels)}.")
        self.thinking = level  # type: ignore[assignment]  # it is one of them
        self._changed()

    def restore(self, provider: str, model: str, thinking: str, *, fixed: bool) -> None:
        """Switch to the model of a resumed session if it is available; otherwise report that it is not.

        With `fixed` the user has set the model, whatever the session used. A thinking level in a flag or variable
        always applies.
        """
        known = thinking in get_args(ThinkingLevel)
        if known and self._config.thinking_from not in ("flag", "environment"):
            self.thinking = thinking  # type: ignore[assignment]  # it is one of them
        self._restore_model(provider, model, fixed=fixed)
        if known and self.thinking != thinking:
            self._changed()

    def _restore_model(self, provider: str, model: str, *, fixed: bool) -> None:
        if (provider, model) == (self.provider_name, self.model):
            if self._chosen is not None and self._chosen.reason == _BEFORE:
                self._chosen = self._chosen.replace(reason=_ITS_OWN)
            return
        if provider in ("", OFFLINE):
            self.conversation_left()
            return
        if fixed:
            self._changed()
            return
        try:
            serving = self.source.named(f"{provider}/{model}", None)
        except MarvinError as error:
            here = f"{self.provider_name}/{self.model} continues it" if self._chosen else "no model is available now"
            self._bus.warn(f"This session used {provider}/{model}, which cannot be used now: {error} {here}.")
            self.conversation_left()
            self._changed()
        else:
            self._chosen = Serving(provider=serving.provider, reason=_ITS_OWN)
            self._tell_end(serving.provider)

    def conversation_left(self) -> None:
        """Another conversation continues with the same model, so that the reason for its choice no longer holds."""
        if self._chosen is not None and self._chosen.reason in (_ITS_OWN, _LARGER):
            self._chosen = self._chosen.replace(reason=_BEFORE)

    @contextmanager
    def pro(self) -> Iterator[None]:
        """Switch to the best model while the context is active; returns its name. Raises as `ModelSource.pro`."""
        before, level = self._chosen, self.thinking
        self._chosen = best = self.source.pro(before.provider if before else None)
        self.thinking = self._level_of("opus")
        self._bus.tell(f"{best.provider.model} of {best.provider.name} answers this one: {best.reason}.")
        try:
            yield
        finally:
            self._chosen, self.thinking = before, level

    def listed(self) -> Sequence[ModelEntry]:
        """Every service; those that are set up come first."""
        return self.source.listed()

    def for_prompt(self) -> Provider:
        """The provider of one prompt. Raises `ConfigError` if there is none."""
        return self.source.resilient(self.provider, self, restarts=self._restarts, ceiling=self.ceiling)

    def summarizer(self) -> Provider | None:
        """The model for summaries; None if there is none."""
        provider = self._answering
        if provider is None:
            return None
        return self.source.resilient(provider, _Summaries(self), restarts=True, ceiling=self.ceiling)

    async def measure(self, characters: int) -> None:
        """Ask the service once for the window of the model, if it is unknown and the conversation becomes long."""
        provider = self._answering
        if provider is None:
            return
        if self._last is provider:  # it has answered by now, so that nothing waits for what is asked beside
            self.source.refresh(provider)
        self._last = provider
        window, key, size = self.window, _key(provider), provider.context_window
        if size is None and window.tokens(characters) >= window.warn / 2:
            size = await self._asked(provider)
        elif size == self._listed[key] or key in self._told:
            return
        if size is not None:  # the service has said it by now
            self._listed[key] = size
            window.resize(size)

    async def overflowed(self, said: int | None) -> None:
        """A request did not fit: use the window that the service reports, now or in its error.

        The window only becomes smaller: a larger one does not explain the failure.
        """
        provider = self._answering
        size = said if said is not None or provider is None else await self._asked(provider)
        self._told.add(_key(provider))
        if size is not None and size < self.window.size:
            self.window.resize(size)

    async def _asked(self, provider: Provider) -> int | None:
        """The window that the service reports; empty after the first time."""
        if _key(provider) in self._told or not isinstance(provider, Measures):
            return None
        self._told.add(_key(provider))
        return await provider.find_window()


class _Summaries:
    """Ignores fallbacks during a summary: they apply to that summary only."""

    def __init__(self, model: ActiveModel) -> None:
        self._model = model

    def moved(self, provider: Provider) -> None:
        self._model.moved(provider)

    def lent(self, provider: Provider) -> None:
        """The model of the prompt stays the same."""


def _key(provider: Provider | None) -> tuple[str, str]:
    return (provider.name, provider.model) if provider is not None else ("", "")
