"""Which model answers now, how hard it thinks, and how much it takes."""

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
    """The model of a session, which people may change between prompts. The session's file is told of each change.

    `ceiling`, unless None, is what a prompt may cost beside the ceiling of the run. With `restarts` another model may
    give an answer again of which something was shown.
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
        """Whose window was asked for last: it is asked for several times a round."""
        self._told: set[tuple[str, str]] = set()
        self._last: Provider | None = None

    def _changed(self) -> None:
        self._writer.changed(provider=self.provider_name, model=self.model, thinking=self.thinking)

    @property
    def _answering(self) -> Provider | None:
        return self._lent or (self._chosen.provider if self._chosen else None)

    @property
    def window(self) -> Window:
        """The window of the model that answers now, with what was learnt of it."""
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
        """Learn what services have to say of a name, before it is used; blocks for a while."""
        self.source.know(name, self._chosen.provider if self._chosen else None)

    def know_earlier(self, provider: str, model: str) -> None:
        """Have at hand what `restore` needs of the model that a session was with; blocks for a while."""
        if provider not in ("", OFFLINE) and (provider, model) != (self.provider_name, self.model):
            with suppress(MarvinError):  # `restore` says it
                self.source.know(f"{provider}/{model}", None)

    def _take(self, serving: Serving) -> None:
        self._chosen = serving
        self._changed()

    def moved(self, provider: Provider) -> None:
        """The conversation outgrew the model; this larger one goes on with it."""
        self._take(Serving(provider=provider, reason=_LARGER))

    def lent(self, provider: Provider) -> None:
        """This model stands in until the prompt is over; what the conversation may take follows its window."""
        self._lent = provider

    def prompt_ended(self) -> None:
        """The chosen model answers again."""
        self._lent = None

    def think(self, level: str) -> None:
        """Have the model think so hard from the next prompt on.

        Raises:
            UsageError: for a level that does not exist.
        """
        levels = get_args(ThinkingLevel)
        if level not in levels:
            raise UsageError(f"Unknown thinking level {level!r}. Use one of: {', '.join(levels)}.")
        self.thinking = level  # type: ignore[assignment]  # it is one of them
        self._changed()

    def restore(self, provider: str, model: str, thinking: str, *, fixed: bool) -> None:
        """Go on with the model that a session was with, if it can be had; where not, say so.

        With `fixed` the user said which model is to answer, whatever the session was with. What a flag or a variable
        says of thinking counts in any case.
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
        """Another conversation goes on, with the same model: what chose it for the last one is no reason any more."""
        if self._chosen is not None and self._chosen.reason in (_ITS_OWN, _LARGER):
            self._chosen = self._chosen.replace(reason=_BEFORE)

    @contextmanager
    def pro(self) -> Iterator[None]:
        """The best model, for as long as the context lasts; says which. Raises as `ModelSource.pro`."""
        before, level = self._chosen, self.thinking
        self._chosen = best = self.source.pro(before.provider if before else None)
        self.thinking = self._level_of("opus")
        self._bus.tell(f"{best.provider.model} of {best.provider.name} answers this one: {best.reason}.")
        try:
            yield
        finally:
            self._chosen, self.thinking = before, level

    def listed(self) -> Sequence[ModelEntry]:
        """Every service, those that are set up first."""
        return self.source.listed()

    def for_prompt(self) -> Provider:
        """The provider of one prompt. Raises `ConfigError` where there is none."""
        return self.source.resilient(self.provider, self, restarts=self._restarts, ceiling=self.ceiling)

    def summarizer(self) -> Provider | None:
        """The model that sums up older messages; None where there is none."""
        provider = self._answering
        if provider is None:
            return None
        return self.source.resilient(provider, _Summaries(self), restarts=True, ceiling=self.ceiling)

    async def measure(self, characters: int) -> None:
        """Ask the service for the model's window, once, where that is not known and a conversation becomes long."""
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
        """A request did not fit: go by what the service says of the window, or says now that it is asked.

        That only makes the window smaller. A larger one than was thought is no reason why something did not fit.
        """
        provider = self._answering
        size = said if said is not None or provider is None else await self._asked(provider)
        self._told.add(_key(provider))
        if size is not None and size < self.window.size:
            self.window.resize(size)

    async def _asked(self, provider: Provider) -> int | None:
        """What the service says of the window of its model; nothing where it has said so before."""
        if _key(provider) in self._told or not isinstance(provider, Measures):
            return None
        self._told.add(_key(provider))
        return await provider.find_window()


class _Summaries:
    """Goes along with a change of the model while a summary is made: who stands in there does so for that only."""

    def __init__(self, model: ActiveModel) -> None:
        self._model = model

    def moved(self, provider: Provider) -> None:
        self._model.moved(provider)

    def lent(self, provider: Provider) -> None:
        """Nothing of the prompt itself changes."""


def _key(provider: Provider | None) -> tuple[str, str]:
    return (provider.name, provider.model) if provider is not None else ("", "")
