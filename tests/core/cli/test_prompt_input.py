"""The prompt of a non-interactive run: where it comes from, and what is said where there is none."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.cli.prompt_input import read_prompt
from marvin_core.config.load import load
from marvin_core.util.streams import StandardStreams
from tests.support.installing import MARVIN, Place, unprivileged

NO_PROMPT = "Use --prompt TEXT, --prompt-file PATH, or standard input."


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config/marvin").mkdir(parents=True)
    (tmp_path / ".config/marvin/config.yaml").write_text("timeouts: {stdin_idle: 0.2}\n")
    return tmp_path


def prompt(home: Path, *argv: str, stdin: int = 0) -> str:
    config, _ = load(["--non-interactive", *argv], {"HOME": str(home)}, cwd=home)
    return read_prompt(config, StandardStreams(stdin=stdin))


def from_stdin(home: Path, feed: Callable[[int], object]) -> str:
    """The prompt read from a pipe, whose other end `feed` gets in a thread."""
    read, write = os.pipe()

    def run() -> None:
        try:
            feed(write)
        except BrokenPipeError:
            return
        finally:
            os.close(write)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        return prompt(home, stdin=read)
    finally:
        os.close(read)
        thread.join()


def write_all(*pieces: bytes) -> Callable[[int], object]:
    return lambda write: [os.write(write, piece) for piece in pieces]


def test_the_flag_counts_before_the_file_and_that_before_standard_input(home: Path) -> None:
    (home / "task").write_text("from the file", encoding="utf-8")
    read, write = os.pipe()
    os.close(write)
    assert prompt(home, "--prompt", "from the flag", "--prompt-file", "task", stdin=read) == "from the flag"
    assert prompt(home, "--prompt-file", "task", stdin=read) == "from the file"
    assert prompt(home, "from", "words", stdin=read) == "from words"
    os.close(read)


def test_standard_input_in_pieces_with_a_character_cut_in_two(home: Path) -> None:
    word = "grüße\n".encode()
    assert from_stdin(home, write_all(word[:3], word[3:], b"more")) == "grüße\nmore"


@pytest.mark.parametrize("pieces", [[], [b"  \n\t\n"]])
def test_empty_standard_input(home: Path, pieces: list[bytes]) -> None:
    with pytest.raises(MarvinError) as caught:
        from_stdin(home, write_all(*pieces))
    assert str(caught.value) == f"The prompt is empty. {NO_PROMPT}"
    assert caught.value.exit_code == 1


def test_an_empty_flag_is_not_replaced_by_standard_input(home: Path) -> None:
    with pytest.raises(MarvinError, match="The prompt is empty"):
        prompt(home, "--prompt", "")


def test_closed_standard_input(home: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    with pytest.raises(MarvinError, match=r"Standard input cannot be read: .*Use --prompt TEXT\."):
        prompt(home, stdin=read)


def test_a_terminal_is_not_read(home: Path) -> None:
    parent, child = os.openpty()
    with pytest.raises(MarvinError) as caught:
        prompt(home, stdin=child)
    assert str(caught.value) == f"No prompt was given. {NO_PROMPT}"
    os.close(parent)
    os.close(child)


def test_silent_standard_input_is_given_up(home: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"half a prompt")
    with pytest.raises(MarvinError, match=r"Standard input was silent for 0\.2 s\. Close it, or use --prompt TEXT\."):
        prompt(home, stdin=read)
    os.close(read)
    os.close(write)


def test_endless_standard_input_is_given_up(home: Path) -> None:
    def feed(write: int) -> None:
        while True:
            os.write(write, b"y\n" * 32_768)

    with pytest.raises(MarvinError, match=r"holds more than 10,000,000 bytes\. Put it into a file of the project\."):
        from_stdin(home, feed)


def test_standard_input_that_is_not_utf_8(home: Path) -> None:
    with pytest.raises(MarvinError, match=r"Standard input is not UTF-8 \(byte 3\)\. Convert it first\."):
        from_stdin(home, write_all(b"caf\xe9 au lait"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "cannot be read: No such file or directory"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b"caf\xe9"), "is not UTF-8 (byte 3). Save it as UTF-8."),
        (lambda path: path.write_text("\n \n"), f"The prompt is empty. {NO_PROMPT}"),
    ],
)
def test_a_wrong_prompt_file(home: Path, make: Callable[[Path], object], said: str) -> None:
    make(home / "task")
    with pytest.raises(MarvinError) as caught:
        prompt(home, "--prompt-file", "task")
    assert said in str(caught.value)
    assert caught.value.exit_code == 1


def test_an_unreadable_prompt_file() -> None:
    with unprivileged() as folder:
        (folder / "task").write_text("x")
        (folder / "task").chmod(0)
        with pytest.raises(MarvinError, match="cannot be read: Permission denied"):
            prompt(folder, "--prompt-file", "task")


@pytest.mark.parametrize("argv", [("--prompt", ""), (), ("--prompt-file", "missing")])
def test_a_run_without_a_prompt_exits_1_and_still_tells_its_cost(tmp_path: Path, argv: tuple[str, ...]) -> None:
    """I22: MARVIN_COST is the last line whatever went wrong."""
    ended = Place(tmp_path).run([*MARVIN, "--non-interactive", *argv])
    assert (ended.code, ended.out) == (1, "")
    *told, last = ended.err.splitlines()
    assert told[0].startswith("marvin: The prompt ")
    assert last.startswith("MARVIN_COST:{")


# --- files that are none -------------------------------------------------------------------------------------------


def test_a_pipe_that_nobody_writes_to_is_no_wait_for_ever(home: Path) -> None:
    os.mkfifo(home / "pipe")
    with pytest.raises(MarvinError, match=r"The prompt file .*pipe was silent for 0.2 s. Close it"):
        prompt(home, "--prompt-file", "pipe")


def test_a_pipe_is_read_as_standard_input_is(home: Path) -> None:
    """As `--prompt-file <(command)` hands one over."""
    os.mkfifo(home / "pipe")

    def write() -> None:
        with (home / "pipe").open("w", encoding="utf-8") as stream:
            stream.write("from ")
            stream.flush()
            stream.write("the pipe\n")

    thread = threading.Thread(target=write)
    thread.start()
    config, _ = load(["--non-interactive", "--prompt-file", "pipe"], {"HOME": str(home)}, cwd=home)
    patient = config.replace(timeouts=config.timeouts.replace(stdin_idle=50.0))
    assert read_prompt(patient, StandardStreams()) == "from the pipe\n"
    thread.join()


@pytest.mark.parametrize("name", ["/dev/zero", "large"])
def test_what_has_no_end_or_is_too_large_is_refused(home: Path, name: str) -> None:
    (home / "large").write_bytes(b"a" * 10_000_001)
    with pytest.raises(MarvinError, match="holds more than 10,000,000 bytes"):
        prompt(home, "--prompt-file", name)


def test_a_socket_and_a_folder_are_told(home: Path) -> None:
    (home / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "socket"))
        for name in ("socket", "folder", "missing"):
            with pytest.raises(MarvinError, match=f"The prompt file .*{name} cannot be read: "):
                prompt(home, "--prompt-file", name)


def test_line_ends_of_a_file_are_newlines(home: Path) -> None:
    (home / "task").write_bytes(b"one\r\ntwo\rthree")
    assert prompt(home, "--prompt-file", "task") == "one\ntwo\nthree"
