"""The folder of the tickets: files of strangers, writers side by side, and writers that are killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from marvin_core import TicketError, TicketFolder, TicketPlace, Timeouts, run_tickets
from marvin_core.tickets.folder import Lock
from tests.support.examples import examples
from tests.support.swapping import swapped
from tests.support.tickets import Desk

# --- files of strangers ---------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that is none of the tickets."""
    path = tmp_path / "outside.md"
    path.write_text("---\nid: outside\nstatus: open\n---\n# Outside\n", encoding="utf-8")
    return path


def test_links_are_no_tickets(desk: Desk, outside: Path) -> None:
    """I4: what they lead to is neither shown nor written."""
    desk.put("one", deps="link")
    (desk.tickets / "link.md").symlink_to(outside)
    (desk.tickets / "loop.md").symlink_to("loop.md")
    before = outside.read_bytes()
    assert desk.run("ls") == "one      [open] - A ticket <- [link]"
    assert "Outside" not in desk.run("show", "one") + desk.run("query") + desk.run("dep", "tree", "one")
    for words in (["show", "link"], ["close", "link"], ["add-note", "link", "x"], ["dep", "link", "one"]):
        assert desk.fails(*words) == "Error: ticket 'link' is a link, and links are not followed"
    assert desk.fails("start", "loop") == "Error: ticket 'loop' is a link, and links are not followed"
    assert outside.read_bytes() == before


def test_a_folder_that_is_a_link_is_for_people_alone(tmp_path: Path) -> None:
    """I4: a repository could have any folder shown, and written."""
    other = Desk(tmp_path / "other")
    other.put("one")
    project = tmp_path / "project"
    project.mkdir()
    (project / ".tickets").symlink_to(other.tickets)
    desk = Desk(project)
    assert desk.run("ls") == "one      [open] - A ticket"
    desk.place.strict = True
    for words in (["ls"], ["create", "x"], ["close", "one"]):
        assert "is a link. Set TICKETS_DIR to the intended folder" in desk.fails(*words)
    assert other.files() == ["one.md"]
    desk.place.tickets_dir = str(project / ".tickets")
    assert desk.run("ls") == "one      [open] - A ticket", "somebody chose it"


def test_what_is_no_regular_file_is_passed_over(desk: Desk) -> None:
    desk.put("one")
    os.mkfifo(desk.tickets / "pipe.md")
    (desk.tickets / "folder.md").mkdir()
    (desk.tickets / ".hidden.md").write_text("---\nid: hidden\n---\n", encoding="utf-8")
    (desk.tickets / "notes.txt").write_text("---\nid: notes\n---\n", encoding="utf-8")
    assert [record["id"] for record in desk.records()] == ["one"]
    assert "not a regular file" in desk.fails("show", "pipe")
    assert "cannot be read" in desk.fails("show", "folder") or "not a regular file" in desk.fails("show", "folder")


def test_files_that_nobody_meant_to_be_tickets(desk: Desk) -> None:
    """Each is passed over in lists, can be shown, and is refused where it would be changed."""
    desk.put("good", deps="binary")
    (desk.tickets / "binary.md").write_bytes(bytes(range(256)) * 40)
    (desk.tickets / "empty.md").write_bytes(b"")
    (desk.tickets / "plain.md").write_bytes(b"# Only a title\n")
    (desk.tickets / "utf16.md").write_bytes("---\nid: x\n---\n# T\n".encode("utf-16"))
    assert [record["id"] for record in desk.records()] == ["good"]
    for name in ("binary", "empty", "plain", "utf16"):
        before = (desk.tickets / f"{name}.md").read_bytes()
        desk.run("show", name)
        assert "has no front matter" in desk.fails("close", name)
        assert (desk.tickets / f"{name}.md").read_bytes() == before


def test_names_with_line_breaks_and_other_bytes(desk: Desk) -> None:
    for name in (b"a\nb", b"\xff\xfe", "ü ✓".encode(), b"a b", b"-rf", b"$(touch x)", b"'\""):
        path = os.path.join(os.fsencode(desk.tickets), name + b".md")
        with open(path, "wb") as stream:
            stream.write(b"---\nid: " + name.replace(b"\n", b"_") + b"\nstatus: open\n---\n# T\n")
    assert len(desk.records()) == 7
    assert desk.run("close", "a\nb") == "Updated a\nb -> closed"
    assert desk.run("close", "-rf") == "Updated -rf -> closed"
    assert desk.run("close", "\udcff\udcfe") == "Updated \udcff\udcfe -> closed"


@pytest.mark.parametrize("name", ["a,b", "a]", "[a", " a", "a\nb", "a#b", "'a'", "\udcff"])
def test_no_ticket_refers_to_one_whose_name_a_list_cannot_hold(desk: Desk, name: str) -> None:
    """It would be read as another one, or as several."""
    desk.put("one")
    (desk.tickets / f"{name}.md").write_text(
        "---\nid: x\nstatus: open\ndeps: []\nlinks: []\n---\n# X\n", encoding="utf-8"
    )
    part = name.strip()
    for words in (["dep", "one", part], ["link", "one", part], ["create", "x", "--parent", part]):
        assert "has a name that no other ticket can refer to" in desk.fails(*words)
    assert desk.run("dep", part, "one")


def test_bytes_that_are_no_utf_8_stay_as_they_are(desk: Desk) -> None:
    path = desk.tickets / "old.md"
    before = "---\r\nid: old\r\nstatus: open\r\nby: Käthe\r\n---\r\n# Grüße\r\n\r\n".encode("latin-1") + b"\x00\xff\xfe"
    path.write_bytes(before)
    desk.run("close", "old")
    assert path.read_bytes() == before.replace(b"status: open", b"status: closed")
    assert desk.records()[0]["by"] == "K?the"


def test_a_ticket_of_ten_megabytes(desk: Desk) -> None:
    path = desk.put("big", "Big")
    with path.open("ab") as stream:
        stream.write(b"0123456789abcde\n" * 655_360)
    size = path.stat().st_size
    assert desk.run("ls") == "big      [open] - Big"
    desk.run("close", "big")
    assert path.stat().st_size == size + len("closed") - len("open")
    assert len(desk.run("show", "big")) > 10_000_000


def test_a_title_is_found_behind_a_long_head_and_one_that_is_too_far_is_none(desk: Desk) -> None:
    desk.put("long", "Behind", more="".join(f"field-{number}: {'x' * 100}\n" for number in range(2_000)))
    (desk.tickets / "far.md").write_text("---\nid: far\n---\n" + "text\n" * 500_000 + "# Far\n", encoding="utf-8")
    assert desk.run("ls") == "far      [] - \nlong     [open] - Behind"


def test_a_file_too_large_for_a_ticket_is_not_read(desk: Desk) -> None:
    path = desk.put("huge")
    os.truncate(path, 60_000_000)
    assert "has 60,000,000 bytes; the maximum is 50,000,000" in desk.fails("show", "huge")
    assert desk.run("ls") == ""


def test_the_mode_of_a_file_stays_and_that_of_a_new_one_is_as_usual(desk: Desk) -> None:
    path = desk.put("one")
    path.chmod(0o640)
    desk.run("close", "one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    usual = desk.root / "usual"
    usual.touch()
    assert stat.S_IMODE(desk.create("x").stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


_ON_A_FULL_DISK = """
import resource, sys
from marvin_core import TicketError, TicketPlace, run_tickets
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
for words in (["close", "one"], ["create", "x"], ["add-note", "one", "x"]):
    try:
        run_tickets(words, TicketPlace(sys.argv[1]))
    except TicketError as error:
        print(error)
"""


def test_a_disk_that_is_full_is_told_and_nothing_is_lost(desk: Desk) -> None:
    before = desk.put("one").read_bytes()
    argv = [sys.executable, "-P", "-B", "-c", _ON_A_FULL_DISK, str(desk.root)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "Error: ticket 'one' cannot be written: File too large",
        "Error: the ticket cannot be written: File too large",
        "Error: ticket 'one' cannot be written: File too large",
    ]
    assert desk.files() == ["one.md"]
    assert (desk.tickets / "one.md").read_bytes() == before


# --- writers --------------------------------------------------------------------------------------------------------

_WORK = """
import sys
from marvin_core import TicketPlace, run_tickets
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
place = TicketPlace(root)
print("begun", flush=True)
for number in range(count):
    made = next(iter(run_tickets(["create", f"{name} {number}", "--parent", "shared"], place).lines))
    run_tickets(["add-note", "shared", f"note {name}.{number}."], place)
    run_tickets(["dep", "shared", made], place)
    run_tickets(["link", "shared", made], place)
    print(made, number, flush=True)
"""


def start_writer(desk: Desk, name: str, count: int) -> subprocess.Popen[str]:
    argv = [sys.executable, "-P", "-c", _WORK, str(desk.root), name, str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def done_by(writer: subprocess.Popen[str]) -> list[tuple[str, int]]:
    """What a writer said that it had written: a ticket and a number each."""
    assert writer.stdout is not None
    lines = [line.split() for line in writer.stdout if line.endswith("\n") and line != "begun\n"]
    writer.stdout.close()
    writer.wait()
    return [(made, int(number)) for made, number in lines]


@pytest.mark.slow
def test_eight_writers_lose_nothing(desk: Desk) -> None:
    desk.put("shared")
    writers = {str(number): start_writer(desk, str(number), 4) for number in range(8)}
    done = {name: done_by(writer) for name, writer in writers.items()}
    assert [len(written) for written in done.values()] == [4] * 8
    made = {ticket for written in done.values() for ticket, _ in written}
    records = {record["id"]: record for record in desk.records()}
    assert records.keys() == made | {"shared"}
    assert {*records["shared"]["deps"]} == {*records["shared"]["links"]} == made
    assert len(records["shared"]["deps"]) == 32
    assert all(records[ticket]["links"] == ["shared"] for ticket in made)
    text = desk.text("shared")
    assert all(text.count(f"\nnote {name}.{number}.\n") == 1 for name in writers for number in range(4))
    assert desk.files() == sorted(f"{ticket}.md" for ticket in records), "nothing else is left"


def test_writers_that_are_killed_leave_whole_tickets_behind(desk: Desk) -> None:
    """And what they had said that it was done is done; the next writer makes use of what they left."""
    desk.put("shared")
    done: list[tuple[str, int]] = []
    for number in range(6):
        writer = start_writer(desk, str(number), 1_000)
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(number):
            line = writer.stdout.readline().split()
            done.append((line[0], int(line[1])))
        writer.send_signal(signal.SIGKILL)
        done += done_by(writer)
    records = {record["id"]: record for record in desk.records()}
    assert {ticket for ticket, _ in done} <= {*records["shared"]["deps"]} <= records.keys()
    for name in records:
        text = desk.text(name)
        assert text.startswith(f"---\nid: {name}\nstatus: open\n")
        assert text.endswith("\n")
    (desk.tickets / ".marvin-tmp").write_text("half of a tick", encoding="utf-8")
    desk.run("close", "shared")
    assert desk.field("shared", "status") == "closed"
    assert ".marvin-tmp" not in desk.files()


def test_a_link_in_the_place_of_what_is_being_written_leads_nowhere(desk: Desk, outside: Path) -> None:
    """I4."""
    before = outside.read_bytes()
    desk.put("one")
    (desk.tickets / ".marvin-tmp").symlink_to(outside)
    desk.run("close", "one")
    assert outside.read_bytes() == before
    assert desk.field("one", "status") == "closed"


def test_a_lock_that_is_held_too_long_is_told(desk: Desk) -> None:
    desk.put("one")
    desk.place.timeouts = Timeouts(lock=0.05)
    with TicketFolder(str(desk.tickets)) as folder:
        with folder.locked():
            assert "is locked by another process. Try again when that process has finished" in desk.fails(
                "close", "one"
            )
            assert desk.run("ls"), "who only reads need not wait"
        desk.run("close", "one")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, whose path descriptors cannot be locked")
def test_where_a_folder_cannot_be_locked_a_file_in_it_is(desk: Desk) -> None:
    """As on network file systems."""
    path = str(desk.tickets)
    first, second = (os.open(path, os.O_PATH | os.O_DIRECTORY) for _ in range(2))
    try:
        with Lock(path, first, None):
            with (
                pytest.raises(TicketError, match="is locked by another process"),
                Lock(path, second, Timeouts(lock=0.05)),
            ):
                raise AssertionError("both hold it")
        with Lock(path, second, None):
            assert desk.files() == [".lock"]
    finally:
        os.close(first)
        os.close(second)


@pytest.mark.skipif(sys.platform != "linux", reason="needs renameat2 of Linux")
def test_a_link_that_takes_turns_with_the_folder_leads_nowhere(tmp_path: Path) -> None:
    """I4: what the folder was when it was opened is what is read and written."""
    desk, other = Desk(tmp_path / "project", strict=True), Desk(tmp_path / "other")
    desk.put("one")
    other.put("one", "Outside")
    before = other.text("one")
    link = desk.root / "link"
    link.symlink_to(other.tickets)
    with swapped(desk.tickets, link):
        for number in range(300):
            try:
                shown = "\n".join(run_tickets([("show", "start", "close")[number % 3], "one"], desk.place).lines)
            except TicketError as error:
                shown = str(error)
            assert "Outside" not in shown
    assert other.text("one") == before
    assert other.files() == ["one.md"]


def test_a_writer_waits_for_another_one(desk: Desk) -> None:
    desk.put("one")
    with TicketFolder(str(desk.tickets)) as folder, folder.locked():
        writer = start_writer(desk, "other", 1)
        assert writer.stdout is not None
        writer.stdout.readline()
        folder.write("one", folder.read("one").with_field("status", "closed"))
    writer.kill()
    done_by(writer)
    assert desk.field("one", "status") == "closed"


def test_a_name_that_is_taken_is_not_taken_again(desk: Desk) -> None:
    desk.put("a")
    names = iter(["a", "a", "b"])
    with TicketFolder(str(desk.tickets)) as folder, folder.locked():
        assert folder.create(lambda: next(names), lambda name: f"---\nid: {name}\n---\n# New\n") == "b"
    assert "# A ticket" in desk.text("a")


TITLES = st.text(st.characters(codec="utf-8"), max_size=10)


class Tickets(RuleBasedStateMachine):
    """Commands in any order, against what tickets mean."""

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.desk = Desk(Path(self.folder.name) / "my-project")
        self.status: dict[str, str] = {}
        self.deps: dict[str, list[str]] = {}
        self.links: dict[str, set[str]] = {}
        self.notes: dict[str, int] = {}

    @rule(target=known, title=TITLES)
    def creates(self, title: str) -> str:
        name = self.desk.create(f"x{title}").stem
        self.status[name], self.deps[name], self.links[name], self.notes[name] = "open", [], set(), 0
        return name

    @rule(name=known, status=st.sampled_from(["open", "in_progress", "closed"]))
    def becomes(self, name: str, status: str) -> None:
        self.desk.run("status", name, status)
        self.status[name] = status

    @rule(name=known, on=known)
    def depends(self, name: str, on: str) -> None:
        is_new = self.desk.run("dep", name, on) == f"Added dependency: {name} -> {on}"
        assert is_new is (on not in self.deps[name])
        self.deps[name] += [on] * is_new

    @rule(name=known, on=known)
    def no_longer_depends(self, name: str, on: str) -> None:
        if on in self.deps[name]:
            self.desk.run("undep", name, on)
            self.deps[name].remove(on)
        else:
            assert self.desk.fails("undep", name, on) == "Dependency not found"

    @rule(names=st.lists(known, min_size=2, max_size=4))
    def linked(self, names: list[str]) -> None:
        before = sum(map(len, self.links.values()))
        for name in names:
            self.links[name] |= {*names} - {name}
        count = sum(map(len, self.links.values())) - before
        told = f"Added {count} link(s) between {len(names)} tickets" if count else "All links already exist"
        assert self.desk.run("link", *names) == told

    @rule(name=known, other=known)
    def unlinked(self, name: str, other: str) -> None:
        if other in self.links[name]:
            self.desk.run("unlink", name, other)
            self.links[name].discard(other)
            self.links[other].discard(name)
        else:
            assert self.desk.fails("unlink", name, other) == "Link not found"

    @rule(name=known, note=st.text("ab#-\n", max_size=9))
    def noted(self, name: str, note: str) -> None:
        self.desk.run("add-note", name, note)
        self.notes[name] += 1

    @invariant()
    def all_is_as_it_was_said(self) -> None:
        records = {record["id"]: record for record in self.desk.records()}
        assert {name: record["status"] for name, record in records.items()} == self.status
        assert {name: record["deps"] for name, record in records.items()} == self.deps
        assert {name: {*record["links"]} for name, record in records.items()} == self.links
        for name, count in self.notes.items():
            assert self.desk.text(name).count("\n**20") == count
            assert ("\n## Notes\n" in self.desk.text(name)) is (count > 0)
        waiting = {name for name, on in self.deps.items() if any(self.status[one] != "closed" for one in on)}
        active = {name for name, status in self.status.items() if status != "closed"}
        assert self._listed("ready") == active - waiting
        assert self._listed("blocked") == active & waiting

    def _listed(self, command: str) -> set[str]:
        return {line.split()[0] for line in filter(None, self.desk.run(command).split("\n"))}

    def teardown(self) -> None:
        self.folder.cleanup()


TestTickets = Tickets.TestCase
TestTickets.settings = examples(10, stateful_step_count=15)


def test_a_folder_that_there_is_not() -> None:
    with pytest.raises(TicketError, match="tickets directory '/nowhere/at/all' does not exist"):
        TicketFolder("/nowhere/at/all")
    assert TicketPlace("/nowhere").may_be_link
