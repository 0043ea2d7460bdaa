"""Keeps a conversation within the context window: when to remove older messages, and what replaces them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..api.messages import Message
from ..api.providers import OFFLINE
from ..util.text import counted
from ..util.threads import in_thread

if TYPE_CHECKING:
    from ..api.config import Config
    from ..api.models import Meter
    from ..api.providers import Provider
    from ..api.tool_context import Clock
    from ..api.tools import Mode, ToolSpec
    from ..guard.files.workspace import Workspace
    from ..guard.kept_texts import KeptTexts
    from ..util.bus import Bus
    from .backups import Backup, Backups
    from .conversation import Conversation
    from .plan import CompactionPlan
    from .window import ToolSizes, Window

    class SummaryModel(Protocol):
        """The parts of the current model that compaction uses."""

        @property
        def window(self) -> Window: ...
        def summarizer(self) -> Provider | None:
            """The model for summaries of older messages; None if there is none."""
            ...

    class CompactedSession(Protocol):
        """The dependencies of compaction."""

        @property
        def config(self) -> Config: ...
        @property
        def workspace(self) -> Workspace: ...
        @property
        def conversation(self) -> Conversation: ...
        @property
        def model(self) -> SummaryModel: ...
        @property
        def meter(self) -> Meter: ...
        @property
        def bus(self) -> Bus: ...
        @property
        def clock(self) -> Clock: ...
        @property
        def kept(self) -> KeptTexts: ...
        @property
        def tool_sizes(self) -> ToolSizes: ...


CAPS: dict[Mode, int] = {"chat": 40, "coding": 100}
"""The maximum number of messages at the start of a prompt, by mode."""
_OVERFLOWS = 2
"""How often a request that was too large is reduced and sent again."""
_LEAST_TOKENS = 500
"""A smaller conversation is not the reason for a request that is too large."""


def _nothing(messages: int) -> str:
    """There is nothing to compact; the text says why."""
    if not messages:
        return "There is nothing to compact: the conversation is empty."
    return (
        f"There is nothing to compact yet: the conversation has {counted(messages, 'message')}, and the newest "
        "are always kept unchanged."
    )


class Compactor:
    """Reduces conversations. Messages are removed only after all of them are in a backup.

    A cancellation leaves the conversation unchanged.
    """

    def __init__(self, session: CompactedSession) -> None:
        self._session = session
        self._kept: Backups | None = None
        self._asked: int | None = None
        self._near = False
        self._refused = False
        self.overhead = 0
        """The length of the newest request besides its messages: the system prompt and the tools, in characters."""

    async def prepare(self, system: str, tools: Sequence[ToolSpec]) -> int:
        """Make room before a request if necessary or requested.

        Returns the number of characters besides the messages.
        """
        self.overhead = len(system) + self._session.tool_sizes.of_all(tools)
        asked, self._asked = self._asked, None
        limit = self._limit()
        if asked is not None:
            await self._compact(min(asked, limit // 2))
        elif self._tokens() > limit:
            await self._compact(limit // 2)
        self._warn_when_near()
        return self.overhead

    async def make_room(self, overflows: int) -> bool:
        """Make room after a request did not fit despite the estimate; returns whether to send it again.

        Args:
            overflows: how often this request has not fitted so far.
        """
        before = self._tokens()
        if overflows <= _OVERFLOWS and before >= _LEAST_TOKENS:
            target = min(self._limit() // 2, before) // 2
            if await self._compact(target, "The request did not fit into the context window of the model. "):
                return True
        overhead = self._session.model.window.tokens(self.overhead)
        self._session.bus.warn(
            "The request does not fit into the context window, and compaction cannot make it smaller: the system "
            f"prompt and the tools take about {overhead:,} tokens. Offer fewer tools (--tools), choose a model with "
            "a larger window, or start over with /clear.",
        )
        return False

    async def compact(self, target_tokens: int) -> str:
        """Compact now, between prompts; returns a report."""
        from .plan import is_worth_it

        target = min(target_tokens, self._limit() // 2)
        told = await self._compact(target, quiet=True)
        if told:
            return told
        messages = self._session.conversation.messages
        if not is_worth_it(messages, self._characters(target)):
            return _nothing(len(messages))
        return "The conversation stays as it is."

    def compact_later(self, target_tokens: int) -> str:
        """Compact before the next request, when the running calls have their outputs; returns a report."""
        from .plan import is_worth_it

        messages = self._session.conversation.messages
        if not is_worth_it(messages, self._characters(target_tokens)):
            return _nothing(len(messages))
        self._asked = target_tokens
        return (
            "Before the next request, the older messages will be backed up and replaced by a summary, so that the "
            f"conversation takes at most {target_tokens:,} tokens. The newest messages are kept unchanged; "
            "search_history_backups finds the others."
        )

    def search(self, query: str, most: int) -> str:
        """Search the removed messages of this folder's conversations; see `Backups.search`. Blocks."""
        return self._backups().search(query, most)

    def _backups(self) -> Backups:
        from .backups import Backups

        if self._kept is None:
            self._kept = Backups(self._session.workspace, self._session.config, self._session.kept)
        return self._kept

    async def cap(self, most: int) -> None:
        """Remove the oldest turns of a conversation of more than `most` messages, before a prompt is added.

        Nothing is removed if the window is known and the conversation takes at most half of it.
        """
        window, before = self._session.model.window, self._session.conversation.messages
        if window.known and self._tokens() <= window.size // 2:
            return
        if 2 * len(before) <= most:  # includes the additions of healing; nothing needs to be imported at a start
            return
        from .plan import composed, plan_turns

        found = plan_turns(before, most)
        if found is None:
            return
        from .digest import digest

        backup = await self._backed_up(found.middle)
        if backup is not None and self._replace(
            before, composed(found, digest(found.middle, found.summary_limit), backup.shown)
        ):
            self._session.bus.tell(
                f"The conversation became long, so its oldest {len(found.middle):,} messages were replaced by a "
                f"summary. They are kept in {backup.shown}.",
            )
            await self._index(backup)

    async def _compact(self, target_tokens: int, why: str = "", *, quiet: bool = False) -> str:
        """Compact, and report it unless `quiet`; returns the report, empty if nothing was done."""
        from .plan import composed, is_worth_it, plan

        limit = self._characters(target_tokens)
        before = self._session.conversation.messages
        if not is_worth_it(before, limit):
            return ""
        backup = await self._backed_up(before)
        if backup is None:
            return ""
        tokens = self._tokens()
        found = plan(before, limit, backup.path.name)
        after = composed(found, await self._summary(found), backup.shown)
        if not self._replace(before, after):
            return ""
        fewer = f"compacted: {counted(len(before), 'message')} became {len(after):,}, about"
        told = (
            f"{why}The conversation was {fewer if len(after) < len(before) else 'shortened: about'} {tokens:,} "
            f"tokens became {self._tokens():,}; the whole conversation is in {backup.shown}."
        )
        if not quiet:
            self._session.bus.tell(told)
        await self._index(backup)
        return told

    async def _summary(self, found: CompactionPlan) -> str:
        """The replacement for the middle: a summary by the model if it answers in time, otherwise lists."""
        from .digest import digest

        session = self._session
        listed = digest(found.middle, found.summary_limit)
        provider = None if all(message.is_summary for message in found.middle) else session.model.summarizer()
        if provider is None or provider.name == OFFLINE:
            return listed
        self._session.bus.tell(f"Making room: {provider.model} summarises {len(found.middle):,} older messages.")
        from .summarizer import Summarizer

        summarizer = Summarizer(
            provider=provider,
            meter=session.meter,
            bus=session.bus,
            limit=session.config.timeouts.summary,
        )
        try:
            return await summarizer.summary(found.middle, self._characters(session.model.window.compact * 3 // 4))
        except Exception as error:  # whatever it is, the conversation must continue
            self._session.bus.warn(f"The model gave no summary, so the older messages were replaced by lists: {error}")
            return listed

    async def _backed_up(self, messages: Sequence[Message]) -> Backup | None:
        """Back up messages; None, and a single warning, if that fails."""
        session = self._session
        try:
            backup = await in_thread(lambda: self._backups().write(messages, session.clock.now()))
        except OSError as error:
            if not self._refused:
                self._session.bus.warn(
                    f"The conversation was not compacted, because its backup cannot be written: {error.strerror} "
                    f"({error.filename}). Free space, make the folder writable, or start over with /clear.",
                )
            self._refused = True
            return None
        self._refused = False
        return backup

    def _replace(self, before: Sequence[Message], after: Sequence[Message]) -> bool:
        """Replace the conversation by `after`, unless it has changed meanwhile."""
        session = self._session
        if session.conversation.messages != before:
            return False
        session.conversation.replace(after)
        return True

    async def _index(self, backup: Backup) -> None:
        from ..api.errors import MarvinError

        now = self._session.clock.now()
        try:
            await in_thread(lambda: self._backups().add_to_index(backup, now))
        except (OSError, MarvinError) as error:
            self._session.bus.warn(f"The index of backups was not written: {error}")

    def _limit(self) -> int:
        """The token limit for messages: the rest of the window, but at least a quarter."""
        window = self._session.model.window
        return max(window.compact - window.tokens(self.overhead), window.compact // 4)

    def _tokens(self) -> int:
        """The estimated number of tokens of the messages."""
        return self._session.model.window.tokens(self._session.conversation.characters)

    def _characters(self, tokens: int) -> int:
        return self._session.model.window.room(tokens)

    def _warn_when_near(self) -> None:
        window = self._session.model.window
        used = window.tokens(self._session.conversation.characters + self.overhead)
        if used > window.warn and not self._near:
            self._session.bus.warn(
                f"The conversation takes about {used:,} tokens. At {window.compact:,} tokens, older messages are "
                "replaced by a summary; /compact does that now.",
            )
        self._near = used > window.warn

    def fit(self, text: str, added: int) -> str:
        """The text of a result, cut to fit the window.

        Args:
            added: the characters of earlier results that are not in the conversation yet.
        """
        window = self._session.model.window
        used = self._session.conversation.characters + self.overhead
        return window.fit(text, window.tokens(used + added))
