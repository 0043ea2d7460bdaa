"""Which model answers now, how hard it thinks, and how much it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

from ..api.errors import ConfigError, MarvinError, UsageError
from ..api.models import ModelEntry, ModelSource, Serving
from ..api.providers import OFFLINE, Measures, Provider, ThinkingLevel
from ..config.tiers import ALIASES
from ..conversation.window import Window
from ..sessions.writer import SessionWriter
from ..util.bus import Bus

if TYPE_CHECKING:
    from ..api.usage import CostCeiling


class ActiveModel:
    """The model of a session, which people may change between prompts. The session's file is told of each change.

    `ceiling`, unless None, is what a prompt may cost beside the ceiling of the run. With `restarts` another model may
    give an answer again of which something was shown.
    """

    def __init__(self, source: ModelSource, writer: SessionWriter, bus: Bus, *, restarts: bool) -> None:
        self.source = source
        self.thinking: ThinkingLevel = "off"
        self.ceiling: CostCeiling | None = None
        self._writer = writer
        self._bus = bus
        self._restarts = restarts
        self._chosen = source.first()
        self.window = self._make_window()
        self._measured: Provider | None = None
        self._asked: Provider | None = None

    def _changed(self) -> None:
        self._writer.changed(provider=self.provider_name, model=self.model, thinking=self.thinking)

    def _make_window(self) -> Window:
        self._told = self._chosen.provider.context_window if self._chosen else None
        return Window(self._told)

    @property
    def provider(self) -> Provider:
        """The provider that answers.

        Raises:
            ConfigError: where no model is configured; the text says how to set one.
        """
        if self._chosen is None:
            raise ConfigError(self.source.how_to)
        return self._chosen.provider

    @property
    def configured(self) -> bool:
        """Whether a model answers."""
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
        """Go on with the model that a name means; of a tier, say why. Raises as `ModelSource.named`."""
        serving = self.source.named(name, self._chosen.provider if self._chosen else None)
        self._take(serving)
        self._tell_end(serving.provider)
        if name in ALIASES:
            self._bus.tell(f"{name} is {serving.provider.model} of {serving.provider.name}: {serving.reason}.")

    def _tell_end(self, provider: Provider) -> None:
        ending = self.source.ending(provider)
        if ending:
            self._bus.warn(ending)

    def know(self, name: str) -> None:
        """Learn what services have to say of a name, before it is used; blocks for a while."""
        self.source.know(name)

    def _take(self, serving: Serving) -> None:
        self._chosen = serving
        self.window = self._make_window()
        self._changed()

    def moved(self, provider: Provider) -> None:
        """The conversation outgrew the model; this larger one goes on with it."""
        self._take(Serving(provider=provider, reason="the conversation needs its larger window"))

    def think(self, level: str) -> None:
        """Have the model think so hard from the next prompt on.

        Raises:
            UsageError: for a level that does not exist.
        """
        levels = get_args(ThinkingLevel)
        if level not in levels:
            raise UsageError(f"There is no thinking level {level!r}. Use one of: {', '.join(levels)}.")
        self.thinking = level  # type: ignore[assignment]  # it is one of them
        self._changed()

    def restore(self, provider: str, model: str, thinking: str, *, fixed: bool) -> None:
        """Go on with the model that a session was with, if it can be had; where not, say so.

        With `fixed` the user said which model is to answer, whatever the session was with.
        """
        if thinking in get_args(ThinkingLevel):
            self.thinking = thinking  # type: ignore[assignment]  # it is one of them
        if provider in ("", OFFLINE) or (provider, model) == (self.provider_name, self.model):
            return
        if fixed:
            self._changed()
            return
        try:
            serving = self.source.named(f"{provider}/{model}", None)
        except MarvinError as error:
            here = f"{self.provider_name}/{self.model} goes on with it" if self._chosen else "there is no model now"
            self._bus.warn(f"This session was with {provider}/{model}, which cannot be used: {error} {here}.")
            self._changed()
        else:
            self._chosen = Serving(provider=serving.provider, reason="the session was with it")
            self.window = self._make_window()
            self._tell_end(serving.provider)

    @contextmanager
    def pro(self) -> Iterator[None]:
        """The best model, for as long as the context lasts; says which. Raises as `ModelSource.pro`."""
        before = self._chosen
        self._chosen = best = self.source.pro(before.provider if before else None)
        self.window = self._make_window()
        self._bus.tell(f"{best.provider.model} of {best.provider.name} answers this one: {best.reason}.")
        try:
            yield
        finally:
            self._chosen = before
            self.window = self._make_window()

    def listed(self) -> Sequence[ModelEntry]:
        """Every service, those that are set up first."""
        return self.source.listed()

    def for_prompt(self) -> Provider:
        """The provider of one prompt. Raises `ConfigError` where there is none."""
        return self.source.resilient(self.provider, self, restarts=self._restarts, ceiling=self.ceiling)

    def summarizer(self) -> Provider | None:
        """The model that sums up older messages; None where there is none."""
        if not self.configured:
            return None
        return self.source.resilient(self.provider, self, restarts=True, ceiling=self.ceiling)

    async def measure(self, characters: int) -> None:
        """Ask the service for the model's window, once, where that is not known and a conversation becomes long."""
        provider = self._chosen.provider if self._chosen else None
        if provider is None:
            return
        if self._asked is provider:  # it has answered by now, so that nothing waits for what is asked beside
            self.source.refresh(provider)
        self._asked = provider
        if provider.context_window != self._told:  # the service said it by itself meanwhile
            self._resize(provider.context_window)
        if provider is self._measured or provider.context_window is not None:
            return
        if self.window.tokens(characters) < self.window.warn / 2 or not isinstance(provider, Measures):
            return
        self._measured = provider
        self._resize(await provider.find_window())

    def _resize(self, size: int | None) -> None:
        self._told = size
        if size is not None:
            self.window.resize(size)
