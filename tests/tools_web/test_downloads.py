"""Downloads: whole or not at all, never over another file, never outside of the folder."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import MarvinError
from marvin_core.testing import Answer, HttpReplay, ToolRunner, cut_after, hang_after, raw
from marvin_tools_web.downloads import filenames, part_files

URL = "https://files.example/a/report.pdf"


def files(tools: ToolRunner) -> dict[str, bytes]:
    folder = tools.home / "Downloads"
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.exists() else {}


def test_a_file_is_saved_with_its_name_type_and_size(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, body=b"%PDF" * 500, headers={"content-type": "application/pdf; x=y"})
    outcome = marvin_tools.call("download_file", url=URL)
    assert outcome.text == "Saved ~/Downloads/report.pdf (2.0 kB, application/pdf)."
    assert files(marvin_tools) == {"report.pdf": b"%PDF" * 500}
    assert outcome.details is not None
    assert outcome.details["path"] == str(marvin_tools.home / "Downloads" / "report.pdf")


def test_nothing_is_overwritten(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, body=b"one", times=1)
    marvin_http.on("GET", URL, body=b"two", times=1)
    marvin_http.on("GET", URL, body=b"three")
    names = [marvin_tools.call("download_file", url=URL).text.split(" (")[0] for _ in range(2)]
    marvin_tools.call("download_file", url=URL, filename="x.tar.gz")
    marvin_tools.call("download_file", url=URL, filename="x.tar.gz")
    assert names == ["Saved ~/Downloads/report.pdf", "Saved ~/Downloads/report"]
    assert files(marvin_tools) == {
        "report (1).pdf": b"two",
        "report.pdf": b"one",
        "x (1).tar.gz": b"three",
        "x.tar.gz": b"three",
    }


def test_a_download_is_taken_back(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, body=b"one")
    marvin_tools.call("download_file", url=URL)
    marvin_tools.call("download_file", url=URL)
    assert marvin_tools.take_back(1)
    assert files(marvin_tools) == {"report.pdf": b"one"}
    (marvin_tools.home / "Downloads" / "report.pdf").unlink()
    assert marvin_tools.take_back(1)
    assert files(marvin_tools) == {}


def test_a_download_that_somebody_changed_stays(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, tmp_path: Path
) -> None:
    """Nor is another file removed that a link in its place leads to."""
    marvin_http.on("GET", URL, body=b"one")
    marvin_tools.call("download_file", url=URL)
    saved = marvin_tools.home / "Downloads" / "report.pdf"
    saved.write_bytes(b"two")
    with pytest.raises(MarvinError, match=r"report\.pdf was changed since then"):
        marvin_tools.take_back(1)
    saved.rename(tmp_path / "elsewhere")
    saved.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(MarvinError, match="was changed since then"):
        marvin_tools.take_back(1)
    assert (tmp_path / "elsewhere").read_bytes() == b"two"
    outcome = marvin_tools.call("download_file", url=URL, taken_back=[{"name": "report.pdf", "mark": ""}])
    assert "for /undo only" in outcome.text


def test_a_link_of_that_name_is_not_followed(marvin_tools: ToolRunner, marvin_http: HttpReplay, tmp_path: Path) -> None:
    (marvin_tools.home / "Downloads").mkdir()
    (marvin_tools.home / "Downloads" / "report.pdf").symlink_to(tmp_path / "elsewhere")
    marvin_http.on("GET", URL, body=b"new")
    assert "report (1).pdf" in marvin_tools.call("download_file", url=URL).text
    assert not (tmp_path / "elsewhere").exists()


def test_a_large_file_reports_its_progress(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    body = bytes(range(256)) * 120_000
    marvin_http.on("GET", "https://files.example/known", body=body)
    marvin_http.on("GET", "https://files.example/unknown", body=body, chunked=True)
    known = marvin_tools.call("download_file", url="https://files.example/known")
    unknown = marvin_tools.call("download_file", url="https://files.example/unknown")
    assert files(marvin_tools) == {"known": body, "unknown": body}
    assert 5 <= len(known.progress) <= 20
    assert known.progress[0].endswith(" of 30.7 MB")
    assert 2 <= len(unknown.progress) <= 6
    assert " of " not in unknown.progress[0]


def test_a_type_of_many_words_is_told_in_short(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, body=b"x", headers={"content-type": "do as I say " * 2_000})
    assert len(marvin_tools.call("download_file", url=URL).text) < 200


def test_redirects_are_followed_and_the_servers_name_counts(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", "https://a.example/get?id=1", status=302, headers={"location": "https://cdn.example/x/9f3"})
    name = "attachment; filename=\"plain.txt\"; filename*=UTF-8''%E2%82%AC%20rates.csv"
    marvin_http.on("GET", "https://cdn.example/x/9f3", body=b"1", headers={"content-disposition": name})
    assert "~/Downloads/€ rates.csv" in marvin_tools.call("download_file", url="a.example/get?id=1").text


@pytest.mark.parametrize(
    ("disposition", "path", "kind", "name"),
    [
        ("", "/a/b.zip", "", "b.zip"),
        ("", "/a/b%20c.zip", "", "b c.zip"),
        ("", "/", "text/html", "download.html"),
        ("", "/page", "application/pdf", "page.pdf"),
        ("", "/page", "application/octet-stream", "page"),
        ("", "/%2e%2e%2f%2e%2e%2f.bashrc", "", "bashrc"),
        ('attachment; filename="../../etc/cron.d/x"', "/a", "", "x"),
        ('attachment; filename="C:\\\\Users\\\\x.exe"', "/a", "", "x.exe"),
        ("attachment; filename=report final.pdf", "/a", "", "report final.pdf"),
        ('attachment; filename=".profile"', "/a", "", "profile"),
        ('attachment; filename="a\u202efdp.exe"'.encode().decode("latin-1"), "/a", "", None),
        ("attachment; filename*=UTF-8''%00%0a..%2f", "/fallback.txt", "", "fallback.txt"),
        ("attachment; filename*=nonsense''%ff; filename=ok.txt", "/a", "", "ok.txt"),
        ("attachment; filename*=undefined''%ff; filename=ok.txt", "/a", "", "ok.txt"),
        ("attachment; filename*=idna''xn--%ff; filename=ok.txt", "/a", "", "ok.txt"),
        ("attachment; filename*=hex''%ff; filename=ok.txt", "/a", "", "ok.txt"),
        (f'attachment; filename="{"ä" * 300}.tar.gz"'.encode().decode("latin-1"), "/a", "", None),
    ],
)
def test_names_are_made_safe(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, disposition: str, path: str, kind: str, name: str | None
) -> None:
    headers = {"content-disposition": disposition} if disposition else {}
    headers.update({"content-type": kind} if kind else {})
    marvin_http.on("GET", f"https://a.example{path}", body=b"x", headers=headers)
    outcome = marvin_tools.call("download_file", url=f"https://a.example{path}")
    assert not outcome.is_error, outcome.text
    (saved,) = files(marvin_tools)
    assert name is None or saved == name
    assert len(saved.encode()) <= 200
    assert not list(marvin_tools.working_dir.iterdir())


@given(st.text())
def test_a_safe_name_is_one_that_stays_as_it_is(name: str) -> None:
    """I4: whatever a server calls its file, it is a plain name in the folder."""
    made = filenames.safe(name)
    assert filenames.safe(made) == made
    assert not made.startswith(".")
    assert not {"/", "\\", "\0"} & set(made)
    assert len(made.encode()) <= 200


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/b.txt", ".bashrc", "..", "a\\b", "x\n.txt"])
def test_a_path_is_no_name(marvin_tools: ToolRunner, name: str) -> None:
    outcome = marvin_tools.call("download_file", url=URL, filename=name)
    assert outcome.is_error
    assert "plain name without folders" in outcome.text


@pytest.mark.parametrize(
    ("answer", "timeouts"),
    [
        ({"answer": cut_after(1000, raw(b"x" * 5000, {"content-type": "text/plain"}))}, {}),
        ({"answer": hang_after(1000, raw(b"x" * 5000, {"content-type": "text/plain"}))}, {"http": 0.2}),
        ({"status": 404, "body": b"sorry"}, {}),
    ],
    ids=["broken", "silent", "missing"],
)
def test_a_download_that_fails_leaves_nothing(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, answer: dict[str, object], timeouts: dict[str, float]
) -> None:
    marvin_http.on("GET", URL, **answer)  # type: ignore[arg-type]  # the table's values have many types
    outcome = marvin_tools.session(timeouts=timeouts).call("download_file", url=URL)
    assert outcome.is_error
    assert files(marvin_tools) == {}


BODY = bytes(range(250)) * 40
SERVES_PARTS = {"accept-ranges": "bytes", "etag": '"v1"', "content-type": "a/b"}


def test_a_download_that_broke_off_is_gone_on_with(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, answer=cut_after(4000, raw(BODY, SERVES_PARTS)), times=1)
    for begin, length in ((4000, 3000), (7000, 3000)):
        ranged = {**SERVES_PARTS, "content-range": f"bytes {begin}-9999/10000"}
        answer = raw(BODY[begin:], ranged).replace(status=206)
        marvin_http.on("GET", URL, answer=cut_after(length, answer) if begin == 4000 else answer, times=1)
    outcome = marvin_tools.call("download_file", url=URL)
    assert outcome.text == "Saved ~/Downloads/report.pdf (10.0 kB, a/b)."
    assert files(marvin_tools) == {"report.pdf": BODY}
    asked = [(request.headers.get("range"), request.headers.get("if-range")) for request in marvin_http.requests]
    assert asked == [(None, None), ("bytes=4000-", '"v1"'), ("bytes=7000-", '"v1"')]


@pytest.mark.parametrize(
    "second",
    [
        raw(b"another file", SERVES_PARTS),
        raw(BODY[100:], {**SERVES_PARTS, "content-range": "bytes 100-9999/10000"}).replace(status=206),
        raw(BODY[4000:], {**SERVES_PARTS, "content-range": "nonsense"}).replace(status=206),
        raw(b"", {}).replace(status=416),
    ],
    ids=["changed", "elsewhere", "nonsense", "refused"],
)
def test_another_file_is_not_put_behind_the_first_part(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, second: Answer
) -> None:
    marvin_http.on("GET", URL, answer=cut_after(4000, raw(BODY, SERVES_PARTS)), times=1)
    marvin_http.on("GET", URL, answer=second)
    assert marvin_tools.call("download_file", url=URL).is_error
    assert files(marvin_tools) == {}


def test_a_part_that_nobody_asked_for_is_no_file(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    part = raw(BODY[:100], {**SERVES_PARTS, "content-range": "bytes 0-99/10000"}, status=206)
    marvin_http.on("GET", URL, answer=part)
    outcome = marvin_tools.call("download_file", url=URL)
    assert "sent only a part of the file" in outcome.text
    assert files(marvin_tools) == {}


@pytest.mark.parametrize("header", [{"etag": 'W/"v1"', "accept-ranges": "bytes"}, {"etag": '"v1"'}])
def test_what_cannot_be_gone_on_with_is_not_asked_again(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, header: dict[str, str]
) -> None:
    marvin_http.on("GET", URL, answer=cut_after(4000, raw(BODY, header)))
    assert marvin_tools.call("download_file", url=URL).is_error
    assert len(marvin_http.requests) == 1


def test_progress_is_told_as_a_part_of_the_whole(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, body=bytes(10_000_000))
    updates = marvin_tools.call("download_file", url=URL).updates
    assert updates[0].total == 10_000_000
    assert 0 < (updates[0].done or 0) <= 10_000_000


KILLED = """
import os, signal, sys, time
from pathlib import Path
from marvin_tools_web.downloads import part_files

part, stream = part_files.begin(Path(sys.argv[1]), "report.pdf")
stream.write(b"half")
stream.flush()
print(part.name, flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_download_left_goes_with_the_next_one(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    folder = marvin_tools.home / "Downloads"
    folder.mkdir()
    for name in ("report.part", ".report.pdf.part", ".report.pdf.0123.part", ".x.0123456789abcdef.part.txt"):
        (folder / name).write_bytes(b"not ours")
    (folder / ".a.0123456789abcdef.part").symlink_to(folder / "report.part")
    foreign = set(files(marvin_tools))
    marvin_http.on("GET", URL, body=b"whole")
    command = [sys.executable, "-c", KILLED, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        name = running.stdout.readline().strip()
        assert "~/Downloads/report.pdf" in marvin_tools.call("download_file", url=URL).text
        assert files(marvin_tools)[name] == b"half", "one that is under way stays"
        running.communicate("")
    assert running.returncode == -signal.SIGKILL
    assert "~/Downloads/report (1).pdf" in marvin_tools.call("download_file", url=URL).text
    assert set(files(marvin_tools)) == {*foreign, "report.pdf", "report (1).pdf"}


def test_part_files_are_made_while_others_sweep(tmp_path: Path) -> None:
    begun = [part_files.begin(tmp_path, f"{number}\n" * 60) for number in range(20)]
    done = threading.Event()

    def sweeping() -> None:
        while not done.is_set():
            part_files.sweep(tmp_path)

    sweeper = threading.Thread(target=sweeping)
    sweeper.start()
    try:
        begun += [part_files.begin(tmp_path, "x") for _ in range(200)]
    finally:
        done.set()
        sweeper.join()
    assert all(part.exists() for part, _ in begun)
    for _, stream in begun:
        stream.close()
    part_files.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_long_refusal_is_told_in_short(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    there = f"https://files.example/{'x' * 20_000}"
    marvin_http.on("GET", URL, status=302, headers={"location": there})
    marvin_http.on("GET", there, status=429, headers={"retry-after": "9" * 40_000})
    outcome = marvin_tools.call("download_file", url=URL)
    assert "429" in outcome.text
    assert "too many requests" in outcome.text
    assert len(outcome.text) < 600


def test_a_folder_that_takes_nothing_is_named(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    (marvin_tools.home / "Downloads").write_text("a file where the folder should be")
    marvin_http.on("GET", URL, body=b"x")
    outcome = marvin_tools.call("download_file", url=URL)
    assert outcome.is_error
    assert "~/Downloads cannot be written to" in outcome.text


def test_more_than_there_is_room_for_is_not_begun(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    huge = raw(b"x", {"content-type": "a/b", "content-length": str(10**18)}).replace(framing="close")
    marvin_http.on("GET", URL, answer=huge)
    outcome = marvin_tools.call("download_file", url=URL)
    assert "are free. Ask the user to free space" in outcome.text
    assert files(marvin_tools) == {}


def test_a_file_is_saved_as_it_comes(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """A server may compress what nobody wanted compressed: undone, two kilobytes could fill the disk."""
    packed = gzip.compress(gzip.compress(bytes(20_000_000)))
    headers = {"content-encoding": "gzip, gzip", "content-type": "application/pdf"}
    marvin_http.on("GET", URL, body=packed, headers=headers)
    outcome = marvin_tools.call("download_file", url=URL)
    assert files(marvin_tools) == {"report.pdf": packed}
    assert "The server sent it compressed (gzip, gzip), and it is saved that way." in outcome.text


def test_a_download_has_a_limit(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    config = marvin_tools.home / ".config" / "marvin" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("limits: {download: 100000}\n")
    marvin_http.on("GET", "https://files.example/small", body=b"x" * 100_000, chunked=True)
    marvin_http.on("GET", "https://files.example/large", body=b"x" * 100_001, chunked=True)
    assert not marvin_tools.call("download_file", url="https://files.example/small").is_error
    outcome = marvin_tools.call("download_file", url="https://files.example/large")
    assert "more than 100,000 bytes" in outcome.text
    assert "limits.download" in outcome.text
    assert list(files(marvin_tools)) == ["small"]


@pytest.mark.parametrize(
    "header",
    ['filename="' * 10_000, "filename" + " " * 90_000 + "=", "filename*=a'" * 8_000, 'filename="' + "\\" * 90_000],
)
def test_headers_are_read_in_a_moment(header: str) -> None:
    request = httpx.Request("GET", URL)
    response = httpx.Response(200, headers={"content-disposition": header}, request=request)
    started = time.process_time()
    filenames.of_response(response)
    filenames.safe("ä" * 5_000_000 + ".tar.gz")
    assert time.process_time() - started < 5
