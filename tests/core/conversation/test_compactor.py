"""Making room in a conversation: what stays, what is summarised by whom, and that nothing is lost by it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Delta, Record, Request, ToolSpec
from marvin_core.api.config import Config
from marvin_core.api.errors import Overloaded
from marvin_core.api.events import Event, Notice, UsageReport
from marvin_core.api.messages import Message, ToolCall, from_dict, tool, user
from marvin_core.api.providers import Provider, Retrying, TextDelta
from marvin_core.api.timeouts import Timeouts
from marvin_core.config.load import load
from marvin_core.conversation.compactor import Compactor
from marvin_core.conversation.conversation import Conversation
from marvin_core.conversation.digest import digest
from marvin_core.conversation.plan import KEPT, composed, plan, plan_turns
from marvin_core.conversation.window import ToolSizes, Window, characters
from marvin_core.guard.files.workspace import Workspace
from marvin_core.guard.kept_texts import KeptTexts
from marvin_core.guard.redaction import Redactor
from marvin_core.sessions.reader import load as load_session
from marvin_core.sessions.writer import SessionWriter
from marvin_core.testing import ScriptedProvider
from marvin_core.usage.meter import UsageMeter
from marvin_core.util.bus import Bus
from marvin_core.util.clock import SystemClock
from tests.support.conversations import answer, assert_accepted, call, conversations, output, rounds, turns
from tests.support.engine import Hang, Script, run, says, until
from tests.support.examples import examples

BACKUP = "context-backup-20261122-014245-123.jsonl"


def smaller(messages: Sequence[Message], limit: int) -> tuple[Message, ...]:
    """What becomes of messages without a model."""
    found = plan(messages, limit, BACKUP)
    return composed(found, digest(found.middle, found.summary_limit), f".marvin/logs/{BACKUP}")


class Ground(Record):
    """A compactor with everything around it, on a real disk."""

    compactor: Compactor
    conversation: Conversation
    recorder: SessionWriter
    meter: UsageMeter
    window: Window
    events: list[Event]
    project: Path
    home: Path

    def notices(self, level: str = "") -> list[str]:
        return [e.text for e in self.events if isinstance(e, Notice) and level in ("", e.level)]

    @property
    def backups(self) -> list[Path]:
        return sorted([*self.project.glob(".marvin/logs/*.jsonl"), *self.home.glob("marvin/**/context-backup-*.jsonl")])


class Model:
    """A model of which only its window is known, and one that sums up."""

    def __init__(self, window: Window, provider: Provider | None) -> None:
        self.window = window
        self._provider = provider

    def summarizer(self) -> Provider | None:
        return self._provider


class Around(Record):
    """What compaction works with."""

    config: Config
    workspace: Workspace
    conversation: Conversation
    model: Model
    meter: UsageMeter
    bus: Bus
    clock: SystemClock
    kept: KeptTexts
    tool_sizes: ToolSizes


def ground(
    tmp_path: Path,
    messages: Sequence[Message],
    provider: ScriptedProvider | None = None,
    *,
    size: int | None = 250_000,
    timeouts: Timeouts | None = None,
) -> Ground:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir(exist_ok=True, parents=True)
    project.mkdir(exist_ok=True)
    timeouts = timeouts or Timeouts()
    env = {"HOME": str(home), "MARVIN_HOME": str(home / "marvin"), "PATH": "/usr/bin:/bin"}
    config, _ = load(["--non-interactive"], env, cwd=project)
    events: list[Event] = []
    recorder = SessionWriter(config.data_folder / "sessions", timeouts, lambda text: None)
    recorder.begin(0.0, "go", "p", "m", str(project))
    conversation = Conversation(recorder, Redactor(tuple))
    for message in messages:
        conversation.append(message)
    meter = UsageMeter(lambda provider, model, usage: 0.5, lambda provider, model: True)
    window = Window(size)
    bus = Bus()
    bus.subscribe(events.append)
    around = Around(
        config=config.replace(timeouts=timeouts),
        workspace=Workspace(config),
        conversation=conversation,
        model=Model(window, provider),
        meter=meter,
        bus=bus,
        clock=SystemClock(),
        kept=KeptTexts(),
        tool_sizes=ToolSizes(),
    )
    return Ground(
        compactor=Compactor(around),
        conversation=conversation,
        recorder=recorder,
        meter=meter,
        window=window,
        events=events,
        project=project,
        home=home,
    )


LONG = [user("Build the parser"), *rounds(30, size=4_000)]


class TestWhatStays:
    def test_the_first_request_and_the_newest_eight_messages_stay_word_for_word(self) -> None:
        """I15: no call is cut from its output."""
        after = smaller(LONG, 100_000)
        assert after[0] == LONG[0]
        assert after[1].is_summary
        assert list(after[2:]) == LONG[-KEPT:]
        assert_accepted(after)

    def test_a_call_stays_with_its_outputs_although_that_makes_nine(self) -> None:
        messages = [*LONG, answer("Done."), user("And now?"), answer("Fine."), user("Go on"), answer("Yes.")]
        after = smaller(messages, 100_000)
        assert list(after[2:]) == messages[-9:]
        assert after[2].calls
        assert_accepted(after)

    @given(conversations(), st.integers(2_000, 300_000))
    @examples(80)
    def test_the_result_is_below_the_limit_and_accepted_by_every_service(
        self, messages: list[Message], limit: int
    ) -> None:
        """I15: whatever the conversation, also one that was compacted before."""
        after = smaller(messages, limit)
        assert characters(after) <= limit
        assert_accepted(after)
        again = smaller([*after, user("more")], limit)
        assert characters(again) <= limit
        assert_accepted(again)

    @given(conversations())
    @examples(50)
    def test_where_there_is_room_the_newest_messages_are_untouched(self, messages: list[Message]) -> None:
        kept = messages[-KEPT:]
        after = smaller(messages, characters(messages) + 100_000)
        assert after[-len(kept) :] == tuple(kept)
        assert any(message == messages[0] for message in after[:1])

    def test_an_interrupted_call_is_given_its_output(self) -> None:
        """I15"""
        after = smaller([*LONG, answer("", call("lost", path="a"))], 50_000)
        assert_accepted(after)
        assert after[-1].outputs[0].call_id == "lost"

    def test_one_message_of_200_000_tokens_is_shortened(self) -> None:
        """I15: it is larger than the window by itself, and stays where it was said."""
        after: tuple[Message, ...] = ()
        for messages in (
            [user("Read this: " + "w" * 800_000)],
            [*turns(10), user("Read this: " + "w" * 800_000 + " the end")],
            [user("Read it"), answer("", call("a", path="big")), tool([output("a", "w" * 800_000)])],
            [user("Write it"), answer("", call("a", content="w\n" * 400_000)), tool([output("a", "ok")])],
        ):
            after = smaller(messages, 100_000)
            assert characters(after) <= 100_000
            assert characters(after) > 60_000, "no more is cut than must be"
            assert_accepted(after)
            assert BACKUP in str(after[-2:])
        assert json.loads(after[1].calls[0].arguments)["content"].startswith("w\nw\n")

    def test_forty_calls_of_one_answer_are_shortened_alike(self) -> None:
        """I15"""
        ids = [f"c{n}" for n in range(40)]
        batch = [
            answer("", *(call(i, path=f"{i}.py") for i in ids)),
            tool([output(i, f"{i} " + "z" * (20_000 if n else 50)) for n, i in enumerate(ids)]),
        ]
        after = smaller([*LONG, user("Read all"), *batch], 100_000)
        assert characters(after) <= 100_000
        assert_accepted(after)
        outputs = after[-1].outputs
        assert [o.text.split()[0] for o in outputs] == ids
        assert outputs[0] == batch[1].outputs[0], "what is short stays as it is"
        assert len(outputs[1].text) > 1_000

    def test_cut_off_arguments_do_not_make_the_request_invalid(self) -> None:
        """I26: they are no call that could be run, and nothing of them is completed."""
        cut = ToolCall(id="a", name="create_file", arguments='{"content": "' + "w" * 400_000, complete=False)
        after = smaller([user("Write"), answer("", cut), tool([output("a", "not run")])], 20_000)
        assert_accepted(after)
        assert after[1].calls[0].complete is False


class TestWhatASummarySays:
    def test_without_a_model_it_lists_requests_files_tools_and_errors(self) -> None:
        failed = [answer("", call("e", "run_command", command="make")), tool([output("e", "boom", is_error=True)])]
        text = smaller([user("Build it"), user("Use tabs"), *failed, *rounds(20)], 50_000)[1].text
        for told in ("Use tabs", "src/part3.py (read_file 1)", "read_file 16", "boom", "Step 3."):
            assert told in text
        assert f".marvin/logs/{BACKUP}" in text
        assert "search_history_backups" in text

    def test_a_second_summary_keeps_what_the_first_one_says(self) -> None:
        once = smaller([user("Build it"), user("The port is 4711"), *rounds(20)], 50_000)
        twice = smaller([*once, *rounds(20, start=20)], 50_000)
        assert [message.is_summary for message in twice].count(True) == 1
        assert "The port is 4711" in twice[1].text
        assert "src/part30.py" in twice[1].text

    def test_the_newest_request_stays_word_for_word_when_its_turn_is_long(self) -> None:
        request = "Rename every function.\nBut not in vendor/!"
        once = smaller([*turns(3), user(request), *rounds(30)], 50_000)
        assert once[1].text.endswith(request)
        twice = smaller([*once, *rounds(30, start=30)], 50_000)
        assert twice[1].text.endswith(request)


class TestDroppingTurns:
    def test_whole_turns_go_and_the_first_request_stays(self) -> None:
        messages = turns(25)
        found = plan_turns(messages, 40)
        assert found is not None
        after = composed(found, digest(found.middle, found.summary_limit), BACKUP)
        assert len(after) <= 30
        assert after[0] == messages[0]
        assert after[2].text == "Request number 11"
        assert "Request number 3" in after[1].text
        assert_accepted(after)

    def test_a_turn_that_is_longer_than_the_cap_stays_whole(self) -> None:
        newest = [user("Now the long one"), *rounds(60)]
        found = plan_turns([*turns(3), *newest], 40)
        assert found is not None
        assert list(found.tail) == newest
        assert plan_turns([*found.first, *found.tail], 40) is None

    def test_a_short_conversation_is_left_alone(self) -> None:
        assert plan_turns(turns(20), 40) is None


class TestBackupFirst:
    def test_when_the_model_is_asked_for_a_summary_the_backup_holds_everything(self, tmp_path: Path) -> None:
        """I16: one message a line, readable by this user alone."""
        found: list[list[Message]] = []

        class Looking(ScriptedProvider):
            async def stream(self, request: Request) -> AsyncIterator[Delta]:
                (path,) = at.backups
                assert path.stat().st_mode & 0o777 == 0o600
                found.append([from_dict(json.loads(line)) for line in path.read_text().splitlines()])
                async for delta in super().stream(request):
                    yield delta

        at = ground(tmp_path, LONG, Looking(says("All about parsers.")))
        run(at.compactor.compact(50_000))
        assert found == [LONG]
        assert at.conversation.messages != tuple(LONG)

    def test_what_the_project_does_not_take_goes_to_the_data_folder(self, tmp_path: Path) -> None:
        """I16"""
        at = ground(tmp_path, LONG)
        (at.project / ".marvin").mkdir()
        (at.project / ".marvin" / "logs").write_text("a file in the way")
        told = run(at.compactor.compact(50_000))
        (path,) = at.backups
        assert at.home in path.parents
        assert str(path) in told

    def test_without_a_backup_nothing_is_compacted_and_the_user_is_told_once(self, tmp_path: Path) -> None:
        """I16: not even where the request is too large."""
        at = ground(tmp_path, LONG, size=20_000)
        (at.project / ".marvin").mkdir()
        (at.project / ".marvin" / "logs").write_text("a file in the way")
        shared = at.home / "marvin"
        for folder in {path.parent for path in shared.rglob("sessions")}:
            (folder / "logs").write_text("another one")
        run(at.compactor.prepare("", ()))
        run(at.compactor.prepare("", ()))
        assert not run(at.compactor.make_room(1))
        assert at.conversation.messages == tuple(LONG)
        assert len([text for text in at.notices("warning") if "backup cannot be written" in text]) == 1

    def test_cancelling_during_the_summary_leaves_the_conversation_as_it_was(self, tmp_path: Path) -> None:
        """I16: and the session on disk as well."""
        provider = Script([TextDelta(text="All ab"), Hang()])
        at = ground(tmp_path, LONG, provider)

        async def go() -> None:
            task = asyncio.create_task(at.compactor.compact(50_000))
            await until(lambda: provider.requests != [])
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        run(go())
        assert at.conversation.messages == tuple(LONG)
        (path,) = at.home.rglob("sessions/*.jsonl")
        assert load_session(path).messages == tuple(LONG)

    def test_what_is_said_during_the_summary_is_not_lost(self, tmp_path: Path) -> None:
        class Busy(ScriptedProvider):
            async def stream(self, request: Request) -> AsyncIterator[Delta]:
                at.conversation.append(user("Wait!"))
                async for delta in super().stream(request):
                    yield delta

        at = ground(tmp_path, LONG, Busy(says("All about parsers.")))
        assert run(at.compactor.compact(50_000)) == "The conversation stays as it is."
        assert at.conversation.messages == (*LONG, user("Wait!"))


class TestTheSummaryOfAModel:
    def test_it_is_asked_without_tools_and_its_answer_is_counted(self, tmp_path: Path) -> None:
        """I11"""
        provider = ScriptedProvider(says("All about ", "parsers."))
        at = ground(tmp_path, LONG, provider)
        told = run(at.compactor.compact(50_000))
        (request,) = provider.requests
        assert (request.tools, request.tool_choice, request.thinking) == ((), "none", "off")
        assert len(request.messages) == 1
        assert "Step 3." in request.messages[0].text
        assert "Step 29." not in request.messages[0].text, "what stays is not summarised"
        assert "All about parsers." in at.conversation.messages[1].text
        assert at.meter.tokens()["input_tokens"] == 100
        assert [e.cost for e in at.events if isinstance(e, UsageReport)] == [0.5]
        assert told.startswith("The conversation was compacted: 61 messages became 10, about ")
        assert told.endswith(f"the whole conversation is in .marvin/logs/{at.backups[0].name}.")

    def test_a_middle_larger_than_the_window_is_given_in_parts(self, tmp_path: Path) -> None:
        provider = ScriptedProvider(*(says(f"Summary {n}") for n in range(4)))
        at = ground(tmp_path, [user("go"), *rounds(60, size=4_000)], provider, size=32_768)
        run(at.compactor.compact(50_000))
        assert 2 <= len(provider.requests) <= 4
        for request in provider.requests:
            assert at.window.tokens(len(request.system) + characters(request.messages)) < at.window.compact
        assert "Summary 0" in provider.requests[1].messages[0].text
        assert f"Summary {len(provider.requests) - 1}" in at.conversation.messages[1].text

    def test_a_model_that_fails_or_is_silent_gives_lists(self, tmp_path: Path) -> None:
        scripts: list[Sequence[Delta | BaseException]] = [
            [TextDelta(text="Half"), Overloaded("The service is overloaded.")],
            [TextDelta(text="Half"), Hang()],
            says(""),
        ]
        for number, script in enumerate(scripts):
            at = ground(tmp_path / str(number), LONG, Script(script), timeouts=Timeouts(summary=0.05))
            run(at.compactor.compact(50_000))
            assert "Half" not in at.conversation.messages[1].text
            assert "src/part3.py" in at.conversation.messages[1].text
            assert "The model gave no summary, so the older messages were replaced by lists" in at.notices("warning")[0]

    def test_an_answer_that_is_started_over_counts_once(self, tmp_path: Path) -> None:
        script = [TextDelta(text="Half"), Retrying(text="again"), *says("Whole.")]
        at = ground(tmp_path, LONG, ScriptedProvider(script))
        run(at.compactor.compact(50_000))
        assert "\n\nWhole." in at.conversation.messages[1].text

    def test_without_a_model_and_offline_there_are_lists(self, tmp_path: Path) -> None:
        for number, provider in enumerate((None, ScriptedProvider(name="offline"))):
            at = ground(tmp_path / str(number), LONG, provider)
            run(at.compactor.compact(50_000))
            assert "src/part3.py" in at.conversation.messages[1].text
            assert not at.notices("warning")


class TestWhen:
    def test_below_the_threshold_nothing_happens(self, tmp_path: Path) -> None:
        at = ground(tmp_path, LONG)
        assert run(at.compactor.prepare("x" * 1_000, ())) == 1_000
        assert at.conversation.messages == tuple(LONG)
        assert at.events == []

    def test_above_it_the_conversation_is_compacted_by_half_and_people_are_told(self, tmp_path: Path) -> None:
        at = ground(tmp_path, LONG, size=40_000)
        assert at.window.tokens(at.conversation.characters) < at.window.compact
        run(at.compactor.prepare("x" * 40_000, ()))
        assert at.window.tokens(at.conversation.characters + 40_000) < at.window.compact * 2 // 3
        assert at.notices("info")[-1].startswith("The conversation was compacted: 61 messages became 10")

    def test_the_schemas_of_tools_count(self, tmp_path: Path) -> None:
        spec = ToolSpec(name="t", description="d" * 100, parameters={"type": "object"}, access=frozenset({"read"}))
        at = ground(tmp_path, LONG)
        assert run(at.compactor.prepare("", [spec])) == 1 + 100 + len('{"type": "object"}')

    def test_tools_that_take_the_whole_window_do_not_empty_the_conversation_each_time(self, tmp_path: Path) -> None:
        at = ground(tmp_path, [user("go"), *rounds(8, size=1_000)], size=32_768)
        run(at.compactor.prepare("x" * 200_000, ()))
        assert len(at.conversation.messages) == 17

    def test_nearing_the_threshold_is_told_once_per_climb(self, tmp_path: Path) -> None:
        at = ground(tmp_path, [user("x" * 760_000)])
        for _ in range(3):
            run(at.compactor.prepare("", ()))
        assert len(at.notices("warning")) == 1
        assert "about 190,000 tokens" in at.notices("warning")[0]
        at.conversation.load([])
        run(at.compactor.prepare("", ()))
        at.conversation.load([user("x" * 760_000)])
        run(at.compactor.prepare("", ()))
        assert len(at.notices("warning")) == 2

    def test_asked_for_by_a_tool_it_happens_before_the_next_request(self, tmp_path: Path) -> None:
        at = ground(tmp_path, LONG)
        told = at.compactor.compact_later(20_000)
        assert "Before the next request" in told
        assert at.conversation.messages == tuple(LONG)
        run(at.compactor.prepare("", ()))
        assert at.window.tokens(at.conversation.characters) <= 20_000
        assert len(at.conversation.messages) == 10

    def test_a_small_target_shortens_the_newest_messages_too(self, tmp_path: Path) -> None:
        at = ground(tmp_path, LONG)
        run(at.compactor.compact(2_000))
        assert at.window.tokens(at.conversation.characters) <= 2_000
        assert_accepted(at.conversation.messages)

    def test_where_there_is_nothing_to_compact_that_is_said_and_no_backup_is_made(self, tmp_path: Path) -> None:
        at = ground(tmp_path, turns(3))
        for told in (run(at.compactor.compact(50_000)), at.compactor.compact_later(50_000)):
            assert told.startswith("There is nothing to compact yet: the conversation has 6 messages")
        assert at.backups == []

    def test_a_request_that_did_not_fit_is_made_smaller_twice_and_then_explained(self, tmp_path: Path) -> None:
        at = ground(tmp_path, LONG)
        sizes = [at.conversation.characters]
        for overflows in (1, 2):
            assert run(at.compactor.make_room(overflows))
            sizes.append(at.conversation.characters)
        assert sizes[1] <= sizes[0] // 2
        assert sizes[2] <= sizes[1] // 2
        assert not run(at.compactor.make_room(3))
        assert "Offer fewer tools (--tools)" in at.notices("warning")[-1]

    def test_the_oldest_turns_go_when_a_prompt_begins_and_are_backed_up(self, tmp_path: Path) -> None:
        """I16"""
        at = ground(tmp_path, turns(25), size=None)
        run(at.compactor.cap(40))
        assert len(at.conversation.messages) == 30
        (path,) = at.backups
        gone = [from_dict(json.loads(line)).text for line in path.read_text().splitlines()]
        assert gone[0] == "Answer number 0"
        assert gone[-1] == "Answer number 10"
        run(at.compactor.cap(40))
        assert len(at.backups) == 1
