"""Session files: nothing that was said is lost, whatever happens to the process, the disk or the file."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import MarvinError, Message, Text, ToolCall, ToolOutput
from marvin_core.api.errors import SessionError
from marvin_core.api.messages import tool, user
from marvin_core.api.timeouts import Timeouts
from marvin_core.conversation.pairing import INTERRUPTED, heal
from marvin_core.sessions.reader import load
from marvin_core.sessions.records import Header
from marvin_core.sessions.store import find, newest_of, read_header, sessions
from marvin_core.sessions.transcript import Transcript, new_session_id

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.002)
HEADER = Header(id="s1", title="A chat", time=1.5, provider="p", model="m", working_dir="/w")


def begin(path: Path, *texts: str) -> Transcript:
    transcript = Transcript(path, HEADER, TIMEOUTS)
    for text in texts:
        transcript.append(user(text))
    return transcript


def go_on(path: Path) -> Transcript:
    return Transcript.resumed(path, load(path), TIMEOUTS)


def texts(path: Path) -> list[str]:
    return [message.text for message in load(path).messages]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "s1.jsonl"


# --- writing and reading -------------------------------------------------------------------------------------------


def test_what_was_appended_is_loaded_with_its_header_and_state(file: Path) -> None:
    transcript = begin(file, "one", "zwei \u2028 ü \ud83d")
    transcript.append_state({"pack": {"n": 1}})
    transcript.append_state({"pack": {"n": 2}})
    transcript.append(user("three"), user("four"))
    transcript.close()
    loaded = load(file)
    assert loaded.header == HEADER
    assert [m.text for m in loaded.messages] == ["one", "zwei \u2028 ü \ud83d", "three", "four"]
    assert loaded.state == {"pack": {"n": 2}}
    assert loaded.problems == ()


def test_nothing_is_created_before_the_first_message(file: Path) -> None:
    begin(file).close()
    assert not file.parent.exists()


def test_the_file_and_its_folder_are_for_this_user_alone(file: Path) -> None:
    begin(file, "one")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_every_line_is_an_object_with_an_id_and_a_parent_and_the_first_is_the_header(file: Path) -> None:
    begin(file, "one", "two")
    header, first, second = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert header == {"type": "session", "version": 1, **HEADER.as_dict()}
    assert (first["parent"], second["parent"]) == ("s1", first["id"])


def test_a_closed_transcript_opens_its_file_again(file: Path) -> None:
    transcript = begin(file, "one")
    transcript.close()
    transcript.append(user("two"))
    transcript.sync()
    assert texts(file) == ["one", "two"]


def test_a_session_that_is_continued_again_and_again_keeps_everything(file: Path) -> None:
    """Record ids of different writers never meet, not even within one process."""
    begin(file, "0").close()
    for number in range(1, 40):
        transcript = go_on(file)
        transcript.append(user(str(number)))
        transcript.close()
        del transcript
    assert texts(file) == [str(number) for number in range(40)]


# --- two writers ---------------------------------------------------------------------------------------------------


def test_two_writers_make_two_branches_and_the_newest_record_tells_which_is_loaded(file: Path) -> None:
    begin(file, "base").close()
    left, right = go_on(file), go_on(file)
    left.append(user("left 1"))
    right.append(user("right 1"))
    left.append(user("left 2"))
    assert texts(file) == ["base", "left 1", "left 2"]
    right.append(user("right 2"))
    loaded = load(file)
    assert [m.text for m in loaded.messages] == ["base", "right 1", "right 2"]
    assert loaded.problems == ()


def test_writers_at_the_same_time_never_tear_each_others_lines(file: Path) -> None:
    begin(file, "base").close()
    writers = [go_on(file) for _ in range(4)]

    def write(number: int) -> None:
        for count in range(25):
            writers[number].append(user(f"{number}:{count}" + "x" * 5_000))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = file.read_bytes().splitlines()
    assert len(lines) == 2 + 4 * 25
    assert all(json.loads(line) for line in lines)
    assert len(load(file).messages) == 26


def test_a_file_that_another_process_holds_is_waited_for_and_then_named(file: Path) -> None:
    begin(file, "one").close()
    patient = go_on(file)
    hurried = Transcript.resumed(file, load(file), Timeouts(lock=0.05, lock_poll=0.005))
    with file.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(
            MarvinError, match=r"s1\.jsonl is locked by another process. Try again when that process has finished"
        ):
            hurried.append(user("never"))
        threading.Timer(0.1, lambda: fcntl.flock(holder, fcntl.LOCK_UN)).start()
        patient.append(user("two"))
    assert texts(file) == ["one", "two"]


# --- damage --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_torn_at_any_byte_loses_only_what_was_torn_and_can_be_gone_on_with(file: Path) -> None:
    begin(file, "one", "two", "three").close()
    whole = file.read_bytes()
    ends = [n + 1 for n, byte in enumerate(whole) if byte == 0x0A]
    for size in range(len(whole) + 1):
        file.write_bytes(whole[:size])
        if size < ends[0] - 1:
            with pytest.raises(SessionError, match="no header"):
                load(file)
            continue
        complete = sum(size >= end - 1 for end in ends) - 1
        expected = ["one", "two", "three"][:complete]
        loaded = load(file)
        assert [m.text for m in loaded.messages] == expected, size
        assert bool(loaded.problems) == (size not in ends and size + 1 not in ends), size
        transcript = go_on(file)
        transcript.append(user("next"))
        transcript.close()
        assert texts(file) == [*expected, "next"], size


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"null", b"[]", b"5", b'"x"', b"{}", b'{"type":"message"}', b"\xff\xfe", b"\0"]
)
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_bad_line_costs_that_line_only_and_is_named(file: Path, junk: bytes, lost: int) -> None:
    begin(file, "one", "two", "three").close()
    lines = file.read_bytes().splitlines()
    lines[lost] = junk
    file.write_bytes(b"\n".join(lines) + b"\n")
    loaded = load(file)
    assert [m.text for m in loaded.messages] == [t for n, t in enumerate(["one", "two", "three"], 1) if n != lost]
    if junk:
        assert f"line {lost + 1} of s1.jsonl was skipped" in loaded.problems[0]
    if lost < 3:
        assert "was lost" in loaded.problems[-1]


def test_a_record_that_is_no_message_any_more_is_skipped_and_named(file: Path) -> None:
    begin(file, "one", "two", "three").close()
    file.write_bytes(file.read_bytes().replace(b'"text":"two"', b'"text":2'))
    loaded = load(file)
    assert [m.text for m in loaded.messages] == ["one", "three"]
    assert "not text" in loaded.problems[0]


@pytest.mark.parametrize("parent", ["missing", None, 5, [], {}])
def test_a_broken_link_to_the_parent_leads_to_the_record_above(file: Path, parent: Any) -> None:
    begin(file, "one", "two", "three").close()
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    lines[2]["parent"] = parent
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = load(file)
    assert [m.text for m in loaded.messages] == ["one", "two", "three"]
    assert len(loaded.problems) == 1


def test_a_record_that_is_its_own_ancestor_ends_the_way_back(file: Path) -> None:
    begin(file, "one", "two", "three").close()
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    lines[2]["parent"] = lines[3]["id"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = load(file)
    assert [m.text for m in loaded.messages] == ["two", "three"]
    assert "its own ancestor" in loaded.problems[0]


def test_a_last_line_without_its_newline_is_read_and_not_run_into(file: Path) -> None:
    begin(file, "one", "two").close()
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    transcript = go_on(file)
    transcript.append(user("three"))
    assert texts(file) == ["one", "two", "three"]


@given(st.binary(max_size=200))
def test_any_bytes_after_the_header_are_skipped(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("any") / "s1.jsonl"
    begin(file, "one").close()
    file.write_bytes(file.read_bytes() + data)
    assert texts(file)[0] == "one"


# --- full disk, killed process -------------------------------------------------------------------------------------

FULL_DISK = """
    import resource, sys
    from pathlib import Path
    from marvin_core.api.errors import SessionError
    from marvin_core.api.messages import user
    from marvin_core.sessions.records import Header
    from marvin_core.sessions.reader import load
    from marvin_core.sessions.transcript import Transcript
    from marvin_core.api.timeouts import Timeouts

    path = Path(sys.argv[1])
    header = Header(id="s1", title="t", time=0.0, provider="p", model="m", working_dir="/w")
    transcript = Transcript(path, header, Timeouts())
    transcript.append(user("one"))
    sys.dont_write_bytecode = True  # it would be cut off, too, and stay so
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 300, resource.RLIM_INFINITY))
    transcript.append(user("two"))
    for text in ("x" * 1_000, "y" * 1_000):
        try:
            transcript.append(user(text))
        except SessionError as error:
            print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    transcript.append(user("three"))
    loaded = load(path)
    print([message.text for message in loaded.messages], loaded.problems)
"""


def child(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        check=False,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_write_that_the_disk_takes_in_part_is_cut_back(file: Path) -> None:
    first, second, rest = child(FULL_DISK, str(file)).splitlines()
    assert first == second
    assert "s1.jsonl: the disk is full. Free space" in first
    assert rest == "['one', 'two', 'three'] ()"


WRITER = """
    import sys
    from pathlib import Path
    from marvin_core.api.messages import user
    from marvin_core.sessions.records import Header
    from marvin_core.sessions.transcript import Transcript
    from marvin_core.api.timeouts import Timeouts

    header = Header(id="s1", title="t", time=0.0, provider="p", model="m", working_dir="/w")
    transcript = Transcript(Path(sys.argv[1]), header, Timeouts())
    for number in range(1_000_000):
        transcript.append(user(f"{number} " + "x" * 20_000))
        print(number, flush=True)
"""


@pytest.mark.parametrize("wait_for", [3, 57])
def test_a_killed_process_loses_at_most_the_line_it_was_writing(file: Path, wait_for: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(file)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        written = [int(process.stdout.readline()) for _ in range(wait_for)]
        process.send_signal(signal.SIGKILL)
        written += map(int, process.stdout.read().splitlines())
    loaded = [int(text.partition(" ")[0]) for text in texts(file)]
    assert loaded == list(range(len(loaded)))
    assert len(written) <= len(loaded) <= len(written) + 1


@pytest.mark.parametrize("place", ["folder", "file"])
def test_a_place_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path, place: str) -> None:
    path = tmp_path / "sessions" / "s1.jsonl"
    if place == "folder":
        path.parent.write_text("a file where the folder should be")
    else:
        path.mkdir(parents=True)
    with pytest.raises(SessionError, match=r"s1\.jsonl.*(Free space or make the folder writable)"):
        begin(path, "one")


# --- healing -------------------------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "c", "d"])
CALLS = st.builds(ToolCall, id=IDS, name=st.just("look"), arguments=st.just("{}"))
OUTPUTS = st.builds(ToolOutput, call_id=IDS, name=st.just("look"), content=st.just((Text(text="out"),)))
ANSWERS = st.lists(CALLS, max_size=3, unique_by=lambda call: call.id).map(
    lambda calls: Message(role="assistant", content=(Text(text="t"), *calls))
)
CONVERSATIONS = st.lists(st.one_of(st.just(user("hi")), ANSWERS, st.lists(OUTPUTS, max_size=4).map(tool)), max_size=8)


@given(CONVERSATIONS)
def test_a_healed_conversation_has_exactly_one_output_for_each_call(messages: list[Message]) -> None:
    """I15: no interrupted session is ever refused by a provider."""
    healed, count = heal(messages)
    for number, message in enumerate(healed):
        if message.calls:
            following = healed[number + 1]
            assert following.role == "tool"
            assert [output.call_id for output in following.outputs] == [call.id for call in message.calls]
        if message.role == "tool":
            assert healed[number - 1].calls
    assert [m for m in healed if m.role != "tool"] == [m for m in messages if m.role != "tool"]
    made = [output for m in healed for output in m.outputs if output.text == INTERRUPTED]
    assert len(made) == count
    real = Counter(output for m in messages for output in m.outputs)
    kept = Counter(output for m in healed for output in m.outputs if output.text != INTERRUPTED)
    assert kept <= real
    assert heal(healed) == (healed, 0)


def test_outputs_that_came_are_kept_and_the_others_say_that_they_were_interrupted() -> None:
    """I15: half of a round was done when the process died."""
    asked = Message(role="assistant", content=tuple(ToolCall(id=i, name="look", arguments="{}") for i in ("a", "b")))
    done = ToolOutput(call_id="b", name="look", content=(Text(text="seen"),))
    healed, count = heal([user("go"), asked, tool([done]), user("and?")])
    assert count == 1
    assert healed[2].outputs[1] == done
    assert healed[2].outputs[0].is_error
    assert "interrupted" in healed[2].outputs[0].text
    assert healed[3].text == "and?"


# --- finding -------------------------------------------------------------------------------------------------------


def stored(folder: Path, number: int, working_dir: str, title: str = "a chat", depth: int = 0) -> str:
    identity = new_session_id(1_700_000_000 + number, title)
    header = Header(id=identity, title=title, time=0.0, provider="p", model="m", working_dir=working_dir, depth=depth)
    transcript = Transcript(folder / f"{identity}.jsonl", header, TIMEOUTS)
    transcript.append(user("hi"))
    transcript.close()
    return identity


def written_last(folder: Path, *ids: str) -> None:
    """Set the times of the files, one second after the other."""
    for number, identity in enumerate(ids):
        os.utime(folder / f"{identity}.jsonl", (number, number))


def test_a_session_id_is_the_time_and_the_beginning_of_the_title() -> None:
    assert new_session_id(0.25, "Fix the  Größe, of a_b/c, please & now!") == "19700101-000000-250-fix-the-gr-e-of-a"
    assert new_session_id(0, "???") == "19700101-000000-000-session"
    assert len(new_session_id(0, "w" * 500)) <= 60


def test_sessions_are_listed_by_when_they_were_written_last(tmp_path: Path) -> None:
    ids = [stored(tmp_path, number, "/w") for number in (3, 1, 2)]
    written_last(tmp_path, *ids)
    assert [path.stem for path in sessions(tmp_path)] == ids[::-1]
    assert sessions(tmp_path / "none") == []


def test_a_session_is_found_by_its_id_or_an_unmistakable_beginning(tmp_path: Path) -> None:
    first, second = stored(tmp_path, 0, "/w", "alpha"), stored(tmp_path, 86_400, "/w", "beta")
    assert find(tmp_path, first).stem == first
    assert find(tmp_path, second[:12]).stem == second
    with pytest.raises(SessionError, match=rf"matches 2 sessions: {second}, {first}\. Give more characters of the id"):
        find(tmp_path, "2023")
    with pytest.raises(SessionError, match=r"There is no session 'nope'.*marvin sessions"):
        find(tmp_path, "nope")


def test_an_id_that_another_one_begins_with_is_found_itself(tmp_path: Path) -> None:
    longer = stored(tmp_path, 0, "/w", "one two")
    shorter = stored(tmp_path, 0, "/w", "one")
    assert longer.startswith(shorter)
    assert find(tmp_path, shorter).stem == shorter


def test_the_newest_session_of_a_folder_is_the_one_to_continue(tmp_path: Path) -> None:
    wanted = stored(tmp_path, 1, "/here")
    later, elsewhere = stored(tmp_path, 2, "/here"), stored(tmp_path, 3, "/there")
    written_last(tmp_path, later, wanted, elsewhere)
    assert newest_of(tmp_path, "/here").stem == wanted
    written_last(tmp_path, wanted, later, elsewhere)
    assert newest_of(tmp_path, "/here").stem == later
    with pytest.raises(SessionError, match="There is no session in /nowhere to continue"):
        newest_of(tmp_path, "/nowhere")


def test_a_session_of_an_agent_is_not_gone_on_with_by_itself(tmp_path: Path) -> None:
    """It is written last where whoever started it was killed."""
    own, of_agent = stored(tmp_path, 1, "/here"), stored(tmp_path, 2, "/here", depth=1)
    written_last(tmp_path, own, of_agent)
    assert newest_of(tmp_path, "/here").stem == own
    assert find(tmp_path, of_agent).stem == of_agent


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{", b"[]", b"5", b"null", b'{"type":"message"}', b'{"type":"session"}', b"\xff"]
)
def test_a_file_that_is_no_session_is_passed_over(tmp_path: Path, content: bytes) -> None:
    wanted = stored(tmp_path, 1, "/w")
    stranger = tmp_path / "zzz.jsonl"
    stranger.write_bytes(content)
    assert read_header(stranger) is None
    assert newest_of(tmp_path, "/w").stem == wanted
    with pytest.raises(SessionError, match="not a session file"):
        load(stranger)


def test_a_session_that_does_not_exist_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match=r"gone\.jsonl cannot be read: No such file"):
        load(tmp_path / "gone.jsonl")
    assert read_header(tmp_path / "gone.jsonl") is None


def test_a_header_of_a_later_version_is_read_as_far_as_it_is_known(file: Path) -> None:
    begin(file, "one").close()
    file.write_bytes(file.read_bytes().replace(b'"version":1', b'"version":9,"mood":"gloomy"'))
    assert load(file).header == HEADER


def test_a_session_takes_no_descriptors_with_it(file: Path) -> None:
    before = len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))
    begin(file, "one").close()
    load(file)
    assert len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")) == before


# --- another title, and other branches -----------------------------------------------------------------------------


def test_a_new_title_is_added_and_nothing_else_changes(file: Path) -> None:
    begin(file, "one", "two").close()
    before = file.read_bytes()
    writer = go_on(file)
    writer.change_header(title="Zwei\u2028")
    writer.close()
    assert file.read_bytes().startswith(before)
    assert load(file).header == HEADER.replace(title="Zwei\u2028")
    assert texts(file) == ["one", "two"]
    go_on(file).append(user("three"))
    assert texts(file) == ["one", "two", "three"]
    assert load(file).header.title == "Zwei\u2028"


def test_a_session_may_be_renamed_while_it_is_written(file: Path) -> None:
    transcript = begin(file, "one")
    go_on(file).change_header(title="Other")
    transcript.append(user("two"))
    assert texts(file) == ["one", "two"]
    assert (load(file).header.title, load(file).problems) == ("Other", ())


def test_a_step_back_makes_a_branch_beside_the_last_message(file: Path) -> None:
    transcript = begin(file, "one", "two")
    transcript.append_state({"pack": {"n": 1}})
    left = transcript.leaf
    transcript.step_back()
    transcript.append(user("three"))
    assert texts(file) == ["one", "three"]
    assert load(file).state == {}
    other = load(file, left)
    assert ([m.text for m in other.messages], other.state) == (["one", "two"], {"pack": {"n": 1}})


def test_a_step_back_after_loading(file: Path) -> None:
    transcript = begin(file, "one", "two")
    transcript.append_state({"pack": {"n": 1}})
    again = go_on(file)
    again.step_back()
    again.append(user("three"))
    assert texts(file) == ["one", "three"]


@pytest.mark.parametrize("field", ["title", "time", "working_dir", "parent"])
def test_a_header_with_something_else_in_a_field_is_none(file: Path, field: str) -> None:
    begin(file, "one").close()
    lines = file.read_text("utf-8").splitlines(keepends=True)
    record = json.loads(lines[0])
    record[field] = ["x"]
    file.write_text(json.dumps(record) + "\n" + lines[1], "utf-8")
    assert read_header(file) is None
    with pytest.raises(SessionError, match="no header"):
        load(file)
