"""Videos are downloaded by yt-dlp in a process of its own: whole, never over another file, from nowhere but the web."""

from __future__ import annotations

import io
import shutil
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from marvin_core.testing import Answer, LoopbackServer, RecordedRequest, ToolRunner, raw
from marvin_tools_web.downloads import video_downloader


def clip() -> bytes:
    """Two seconds of a tone."""
    target = io.BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(number * 37 % 256 for number in range(32_000)))
    return target.getvalue()


class Site(LoopbackServer):
    """A clip under two addresses, a page without any, and a link to this machine under another name."""

    asked: list[str]

    def answer_to(self, request: RecordedRequest) -> Answer:
        if request.path.startswith("/clip.wav"):
            return raw(clip(), {"content-type": "audio/x-wav"})
        if request.path == "/away":
            return raw(b"", {"location": f"http://127.0.0.1:{self.port}/clip.wav"}).replace(status=302)
        return raw(b"<html><title>Words</title><p>Nothing here.</p></html>", {"content-type": "text/html"})


@pytest.fixture
def site(marvin_home: Path) -> Iterator[Site]:
    """The site, allowed by its name and by no other address."""
    config = marvin_home / ".config/marvin/config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("allow_addresses: [localhost]\n")
    site = Site()
    yield site
    site.close()


def saved(home: Path) -> dict[str, bytes]:
    folder = home / "Downloads" / "yt-dlp"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_clip_is_saved_beside_the_one_that_is_there(
    site: Site, marvin_home: Path, marvin_workdir: Path, sandbox: Literal["off", "auto"]
) -> None:
    with ToolRunner(marvin_home, marvin_workdir, sandbox=sandbox, interactive=False) as tools:
        url = f"http://localhost:{site.port}/clip.wav"
        first = tools.call("yt_dlp_download", url=url, output_dir="talks")
        assert not first.is_error, first.text
        assert first.text.startswith("Saved 1 file from clip:\n1. ~/Downloads/yt-dlp/talks/clip [clip].wav (32.0 kB)")
        tools.call("yt_dlp_download", url=url, output_dir="talks")
        assert saved(marvin_home) == {"talks/clip [clip].wav": clip(), "talks/clip [clip] (1).wav": clip()}
        assert list(marvin_workdir.iterdir()) == []


@pytest.mark.slow
def test_it_reaches_no_address_of_this_machine(site: Site, marvin_home: Path, marvin_workdir: Path) -> None:
    with ToolRunner(marvin_home, marvin_workdir) as tools:
        outcome = tools.call("yt_dlp_download", url=f"http://localhost:{site.port}/away")
        assert outcome.is_error
        assert "cannot be downloaded" in outcome.text
        assert saved(marvin_home) == {}


@pytest.mark.slow
def test_a_page_without_a_video_is_explained(site: Site, marvin_home: Path, marvin_workdir: Path) -> None:
    with ToolRunner(marvin_home, marvin_workdir) as tools:
        outcome = tools.call("yt_dlp_download", url=f"http://localhost:{site.port}/words")
    assert outcome.is_error
    assert "Unsupported URL" in outcome.text
    assert "report this issue" not in outcome.text
    assert list(marvin_workdir.iterdir()) == []


@pytest.mark.slow
def test_the_sound_becomes_mp3(site: Site, marvin_home: Path, marvin_workdir: Path) -> None:
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    with ToolRunner(marvin_home, marvin_workdir) as tools:
        tools.call("yt_dlp_download", url=f"http://localhost:{site.port}/clip.wav", audio_only=True)
    assert list(saved(marvin_home)) == ["clip [clip].mp3"]


@pytest.mark.parametrize("folder", ["..", "/etc", "a/../../b", "~/x", ".hidden", "a\0b"])
def test_a_folder_elsewhere_is_refused(marvin_tools: ToolRunner, folder: str) -> None:
    """I4: nothing is written outside of the folder."""
    outcome = marvin_tools.call("yt_dlp_download", url="https://video.example/1", output_dir=folder)
    assert outcome.is_error
    if folder != "~/x":
        assert "is not a valid folder in ~/" in outcome.text


def test_a_link_that_leads_elsewhere_is_not_followed(marvin_home: Path, tmp_path: Path) -> None:
    from marvin_core import ToolError
    from marvin_tools_web.downloads import videos

    base, work = marvin_home / "Downloads" / "yt-dlp", tmp_path / "work"
    base.mkdir(parents=True)
    work.mkdir()
    (work / "clip.wav").write_bytes(b"x")
    (work / "link.wav").symlink_to("/etc/passwd")
    (base / "out").symlink_to(tmp_path)
    with pytest.raises(ToolError, match="a link to another folder"):
        videos.moved(work, base / "out", base)
    assert [path.name for path in videos.moved(work, base / "in", base)] == ["clip.wav"]


def test_a_reason_is_told_without_colours_and_addresses() -> None:
    text = "\x1b[0;31mERROR:\x1b[0m [x] No  such\nvideo; please report this issue on  https://github.com/x , filling"
    assert video_downloader.reason(ValueError(text)) == "[x] No such video"
