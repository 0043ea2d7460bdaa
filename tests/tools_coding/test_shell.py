"""run_command and jobs: what the model reads of a command, and what it can do about what goes on."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Tool, ToolContext, ToolError, ToolResult, ToolSpec
from marvin_core.tools.schema import describe
from marvin_tools_coding.git import committing, history, inspecting, switching
from marvin_tools_coding.shell.commands import run_command
from marvin_tools_coding.shell.jobs import jobs
from tests.support.examples import examples

from .support_shell import Folder, text

SHELL = shutil.which("bash") or "sh"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "project").mkdir()
    return Folder(tmp_path / "project")


def test_output_and_exit_code(folder: Folder) -> None:
    """Both streams in the order they were written, and the exit code; a failing command is no tool error."""
    begin = time.monotonic()
    result = folder.run(lambda: run_command.function(folder.context, command="echo a; echo b >&2; echo c; exit 3"))
    assert isinstance(result, ToolResult)
    assert result.content == "a\nb\nc\n[exit code 3]"
    assert not result.is_error
    assert result.details is not None
    assert result.details["exit_code"] == 3
    assert 0 < result.details["elapsed"] <= time.monotonic() - begin


def test_it_is_bash_in_the_working_directory(folder: Folder) -> None:
    """Commands written for bash work, and start in the sandbox root."""
    assert folder.call(run_command, command="[[ x == x ]] && pwd") == f"{folder.root}\n[exit code 0]"


def test_bash_is_not_needed(folder: Folder, tmp_path: Path) -> None:
    """Where there is no bash the command runs in sh."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    bare = Folder(folder.root, PATH=str(tmp_path / "bin"))
    assert bare.call(run_command, command="echo ${BASH_VERSION:-none}") == "none\n[exit code 0]"


def test_silence_and_signals_are_told(folder: Folder) -> None:
    """A command that prints nothing, and one that is killed, are told as that."""
    assert folder.call(run_command, command="true") == "(no output)\n[exit code 0]"
    assert folder.call(run_command, command="kill -SEGV $$") == "(no output)\n[ended by signal 11 (Segmentation fault)]"


def test_long_output_keeps_head_and_tail(folder: Folder) -> None:
    """Of 1 MB the model sees 50 KB: whole lines from head and tail, and how much is missing between them."""
    got = folder.call(run_command, command="seq 1 200000; exit 1")
    assert len(got) < 51_000
    lines = got.splitlines()
    note = next(line for line in lines if "omitted" in line)
    assert lines[:2] == ["1", "2"]
    assert lines[-2:] == ["200000", "[exit code 1]"]
    whole = [line for line in lines[:-1] if line != note]
    assert set(whole) <= {str(n) for n in range(1, 200_001)}
    size = sum(len(str(n)) + 1 for n in range(1, 200_001))
    omitted = int(note.removeprefix("[... ").partition(" ")[0].replace(",", ""))
    assert omitted == size - sum(len(line) + 1 for line in whole)


def test_one_endless_line_is_cut_too(folder: Folder) -> None:
    """A long line without an end is cut in its middle, characters whole or replaced."""
    got = folder.call(run_command, command="yes ä | tr -d '\\n' | head -c 300001")
    assert "250,001 bytes omitted" in got
    assert len(got.encode()) < 50_500
    assert got.startswith("ää")


def test_terminal_codes_and_broken_bytes(folder: Folder) -> None:
    """Colours, titles and control characters are removed; bytes that are no UTF-8 are marked."""
    command = r"printf '\033[1;31mred\033[0m \033]0;title\007\033(Bplain\b \377 tab\tend\r\n'"
    assert folder.call(run_command, command=command) == "red plain \ufffd tab\tend\n[exit code 0]"


def test_time_out_says_so_and_keeps_the_output(folder: Folder) -> None:
    """I25: a command that takes too long is ended; the model reads what it printed and what to do."""
    result = folder.run(lambda: run_command.function(folder.context, command="echo so far; sleep 300", timeout=2))
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert text(result).startswith("so far\n[Command timed out after 2 s. ")


def test_the_time_out_of_dispatch_follows_the_argument() -> None:
    """Dispatch waits as long as the call asks for."""
    assert callable(run_command.timeout)
    assert run_command.timeout({"command": "x"}) == 60
    assert run_command.timeout({"command": "x", "timeout": "7"}) == 7


def test_no_input_and_no_empty_command(folder: Folder) -> None:
    """A command that reads gets end of file at once; an empty one is refused with an example."""
    assert folder.call(run_command, command="cat; read x || echo none", timeout=300) == "none\n[exit code 0]"
    assert "command=" in folder.error(run_command, command="  \n")


def test_a_command_longer_than_one_argument(folder: Folder) -> None:
    """A script of any length runs as a short one does: without input, variables and arguments of Marvin's."""
    script = f"cat > f <<'END'\n{'x' * 300_000}\nEND\nwc -c < f; cat; echo $# ${{command:-none}} $0; exit 7"
    assert folder.call(run_command, command=script) == "300001\n0 none bash\n[exit code 7]".replace("bash", SHELL)
    job = folder.call(run_command, command="true; #" + "x" * 300_000, background=True)
    assert job.startswith("[job 1 ")


@given(length=st.integers(99_900, 132_000), character=st.sampled_from("xä😀\n"))
@examples(12)
def test_no_length_is_refused(tmp_path_factory: pytest.TempPathFactory, length: int, character: str) -> None:
    """On both sides of what is handed over as an argument, and of what the system takes as one."""
    (project := tmp_path_factory.mktemp("long") / "project").mkdir()
    assert Folder(project).call(run_command, command="echo begun #" + character * length).startswith("begun")


def test_it_runs_in_a_folder_below(folder: Folder, tmp_path: Path) -> None:
    """`cwd` is a folder of the working directory; others are refused before anything runs."""
    (folder.root / "a b" / "c").mkdir(parents=True)
    (folder.root / "link").symlink_to("a b")
    (folder.root / "out").symlink_to(tmp_path)
    (folder.root / "file").touch()
    for cwd in ("a b/c", "link/c", "./a b//c/"):
        assert folder.call(run_command, command="pwd", cwd=cwd) == f"{folder.root}/a b/c\n[exit code 0]"
    assert folder.call(run_command, command="pwd -P", cwd="link") == f"{folder.root}/a b\n[exit code 0]"
    for cwd in ("..", "out", "/", "file", "missing", "a b/../.."):
        folder.error(run_command, command="touch ran", cwd=cwd)
        folder.error(run_command, command="touch ran", cwd=cwd, background=True)
    assert not list(tmp_path.rglob("ran"))


def test_all_of_a_long_output_can_be_read(folder: Folder) -> None:
    """What is left out of the middle is in a file that the text names, which nobody else can read."""
    got = folder.call(run_command, command="seq 1 200000; exit 1")
    note = next(line for line in got.splitlines() if "omitted" in line)
    name = note.partition("All of it is in ")[2].partition(":")[0]
    kept = folder.root / name if (folder.root / name).exists() else Path(name)
    assert kept.read_text() == "".join(f"{n}\n" for n in range(1, 200_001))
    assert kept.stat().st_mode & 0o777 == 0o600
    before = set(kept.parent.iterdir())
    folder.call(run_command, command="seq 1 100")
    assert set(kept.parent.iterdir()) == before, "a short output needs no file"


def test_what_overwrites_itself_is_shown_once(folder: Folder) -> None:
    """Of a bar of progress the last state is shown; Windows line ends stay lines."""
    command = r"for i in $(seq 1 2000); do printf '\r%s%%' $i; done; printf '\n'; printf 'a\r\nb\r\n'"
    assert folder.call(run_command, command=command) == "2000%\na\r\nb\n[exit code 0]"


def test_output_is_told_while_it_comes(folder: Folder) -> None:
    """Whole lines, as a terminal shows them, before the command has ended."""

    async def use() -> str:
        running = asyncio.ensure_future(
            run_command.function(
                folder.context,
                command="printf 'one\\n10%%\\r20%%\\rhalf' > f; cat f; while [ ! -e go ]; do sleep 0.01; done; echo",
            )
        )
        await folder.told_something.wait()
        (folder.root / "go").touch()
        return text(await running)

    assert folder.run(use) == "one\nhalf\n[exit code 0]"
    assert folder.told[0] == "one\n20%"


def test_a_job_from_the_beginning(folder: Folder) -> None:
    """`background` returns at once; the list tells how the job ended, and each look shows what is new."""

    async def use() -> None:
        (folder.root / "sub").mkdir()
        script = "pwd; echo up; while [ ! -e go ]; do sleep 0.01; done; echo by; printf e >&2; exit 3"
        started = text(await run_command.function(folder.context, command=script, cwd="sub", background=True))
        assert started.startswith("[job 1 runs in the background; jobs(action='output', job_id='1')")
        look = await jobs.function(folder.context, action="output", job_id="1", until="up")
        assert text(look).startswith(f"{folder.root}/sub\nup\n[job 1, running; ")
        again = text(await jobs.function(folder.context, action="output", job_id="1"))
        assert again.startswith("(no new output since the last call)\n[job 1, running; ")
        in_vain = text(await jobs.function(folder.context, action="output", job_id="1", wait=1, until="up"))
        assert in_vain.endswith("[Waited 1 s for 'up' without success.]")
        (folder.root / "sub" / "go").touch()
        ended = text(await jobs.function(folder.context, job_id="1", wait=50))
        assert ended.startswith("by\ne\n[job 1, ended, exit code 3; ")
        assert text(await jobs.function(folder.context)).startswith("1  ended, exit code 3  pid ")

    folder.run(use)


def test_a_job_that_ends_otherwise(folder: Folder) -> None:
    """A signal is told as one; a text that never comes ends the wait with the job; a job that fails at once says so."""

    async def use() -> None:
        await run_command.function(folder.context, command="kill -9 $$", background=True)
        ended = text(await jobs.function(folder.context, action="output", job_id="1", wait=50, until="never"))
        assert "[job 1, ended by signal 9 (Killed); 0 bytes" in ended
        assert ended.endswith("[It ended, and its new output does not contain 'never'.]")
        await run_command.function(folder.context, command="sleep 300", background=True)
        assert "ended" in text(await jobs.function(folder.context, action="stop", job_id="2"))
        assert "2  ended by signal 15 (Terminated)" in text(await jobs.function(folder.context))
        with pytest.raises(ToolError, match="wait=-1 is out of range"):
            await jobs.function(folder.context, action="output", job_id="2", wait=-1)

    folder.run(use)


def test_a_line_that_was_seen_half_is_shown_as_a_whole(folder: Folder) -> None:
    """A prompt is seen before its line ends, and the line is not torn in two looks."""

    async def use() -> None:
        script = "printf half; while [ ! -e go ]; do sleep 0.01; done; echo ' and half'; sleep 300"
        await run_command.function(folder.context, command=script, background=True)
        first = text(await jobs.function(folder.context, action="output", job_id="1", until="half"))
        assert first.startswith("half\n[")
        (folder.root / "go").touch()
        second = text(await jobs.function(folder.context, action="output", job_id="1", until="and"))
        assert second.startswith("half and half\n[")

    folder.run(use)


def test_a_server_in_the_background(folder: Folder) -> None:
    """A background process becomes a job that the model can list, read and stop by what the texts say."""

    async def use() -> None:
        started = text(await run_command.function(folder.context, command="(echo up; exec sleep 300) & echo started"))
        assert "job 1 continues in the background: jobs(action='output', job_id='1')" in started
        assert text(await jobs.function(folder.context)).startswith("1  running  pid ")
        output = text(await jobs.function(folder.context, action="output", job_id="1"))
        assert set(output.splitlines()[:2]) == {"up", "started"}
        assert output.splitlines()[2].startswith("[job 1, running; 11 bytes in ")
        with pytest.raises(ToolError, match=r"no job '2'[^$]*1  running"):
            await jobs.function(folder.context, action="output", job_id="2")
        assert text(await jobs.function(folder.context, action="stop", job_id="1")).startswith("Job 1 has ended")
        assert text(await jobs.function(folder.context)).startswith("1  ended")

    folder.run(use)


def test_the_end_of_a_long_log(folder: Folder) -> None:
    """Of a job's output the last lines are shown, as many as asked for, and 50 KB at most."""

    async def use() -> None:
        await run_command.function(
            folder.context, command="(while [ ! -e go ]; do sleep 0.01; done; seq 1 100000; sleep 300) &"
        )
        (folder.root / "go").touch()
        output = ""
        while "100000" not in output:
            await asyncio.sleep(0)
            output += text(await jobs.function(folder.context, action="output", job_id="1", tail=2))
        assert output.splitlines()[-3:-1] == ["99999", "100000"]
        half = "head -c 40000 /dev/zero | tr '\\0' k; yes '' | head -5000 | sed 's/$/after/'"
        await run_command.function(folder.context, command=half, background=True)
        cut = text(await jobs.function(folder.context, action="output", job_id="2", tail=2000, wait=50))
        assert "kk" not in cut, "half a line could be half a secret"
        assert cut.count("after\n") == 2000
        assert cut.startswith("[older output is left out; ")

    folder.run(use)


def test_what_takes_the_place_of_a_log_is_not_read(folder: Folder) -> None:
    """I4: Marvin reads what it wrote. What a command puts there may lead to what the command itself cannot see."""
    secret = folder.root.parent / "home" / "key"
    secret.write_text("of the user")

    async def use() -> None:
        await run_command.function(folder.context, command="sleep 300 & echo mine")
        log = folder.processes.job_list()[0].log
        log.unlink()
        log.symlink_to(secret)
        output = text(await jobs.function(folder.context, action="output", job_id="1"))
        assert output.startswith("mine\n[job 1, running; 5 bytes")

    folder.run(use)


def test_jobs_says_what_is_missing(folder: Folder) -> None:
    """I10: without jobs, and without the id that an action needs, the text says what to do."""
    assert "starts one" in folder.call(jobs)
    assert "needs a job_id" in folder.error(jobs, action="stop")
    assert "no job '9'" in folder.error(jobs, action="stop", job_id="9")


def shown(spec: ToolSpec) -> dict[str, Any]:
    """What a model is shown of a tool."""
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def test_the_schemas_are_small() -> None:
    """The schemas of shell and git cost the model little."""
    looks: list[Tool] = [inspecting.git_status, inspecting.git_diff, inspecting.git_log, inspecting.git_branch]
    others: list[Tool] = [history.git_show, history.git_blame, committing.git_commit, switching.git_checkout]
    tools: list[Tool] = [run_command, jobs, *looks, *others]
    specs = [describe(tool) for tool in tools]
    size = sum(len(json.dumps(shown(s), separators=(",", ":"))) for s in specs)
    assert size < 470 * len(tools)
    assert run_command.confirm
    assert ToolContext.__name__ not in json.dumps([s.parameters for s in specs])
