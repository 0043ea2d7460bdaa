"""run_command and jobs: what the model reads of a command, and what it can do about what goes on."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from marvin_core import Tool, ToolContext, ToolError, ToolResult
from marvin_core.tools.schema import describe
from marvin_tools_coding.git import repository as git
from marvin_tools_coding.shell import commands as shell
from marvin_tools_coding.shell.commands import jobs, run_command

from .support_shell import Folder, text


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


def test_a_command_that_is_too_long(folder: Folder) -> None:
    """I10: more than the system takes in one argument is refused with another way."""
    assert "in a file or a script" in folder.error(run_command, command="true " + "x" * 300_000)


def test_a_server_in_the_background(folder: Folder) -> None:
    """A background process becomes a job that the model can list, read and stop by what the texts say."""

    async def use() -> None:
        started = text(await run_command.function(folder.context, command="(echo up; exec sleep 300) & echo started"))
        assert "job 1 goes on in the background: jobs(action='output', job_id='1')" in started
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
            output = text(await jobs.function(folder.context, action="output", job_id="1", tail=2))
        assert output.splitlines()[:2] == ["99999", "100000"]
        longest = text(await jobs.function(folder.context, action="output", job_id="1", tail=2000))
        assert len(longest.splitlines()) == 2001
        folder.processes.job_list()[0].log.unlink()
        with pytest.raises(ToolError, match="cannot be read"):
            await jobs.function(folder.context, action="output", job_id="1")

    folder.run(use)


def test_jobs_says_what_is_missing(folder: Folder) -> None:
    """I10: without jobs, and without the id that an action needs, the text says what to do."""
    assert "makes one" in folder.call(jobs)
    assert "needs a job_id" in folder.error(jobs, action="stop")
    assert "no job '9'" in folder.error(jobs, action="stop", job_id="9")


def test_the_schemas_are_small() -> None:
    """The six schemas of shell and git cost the model little."""
    tools: list[Tool] = [shell.run_command, shell.jobs, git.git_status, git.git_diff, git.git_log, git.git_commit]
    specs = [describe(tool) for tool in tools]
    size = sum(
        len(json.dumps({"name": s.name, "description": s.description, "parameters": s.parameters})) for s in specs
    )
    assert size < 3_500
    assert shell.run_command.confirm
    assert ToolContext.__name__ not in json.dumps([s.parameters for s in specs])
