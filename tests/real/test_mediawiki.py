"""The tools for Wikipedia against a real MediaWiki, as Debian has it, with a few articles."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core.testing import ToolRunner
from tests.real.components import free_port, serving

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("mediawiki"), pytest.mark.timeout(300)]

WIKI = Path(os.environ.get("MARVIN_TEST_MEDIAWIKI", "/var/lib/mediawiki"))
ARTICLES = {
    "Tower Bridge": "'''Tower Bridge''' is a bridge in [[London]].\n\n== History ==\nBuilt from 1886 to 1894.\n",
    "Towerbridge": "#REDIRECT [[Tower Bridge]]",
    "AC/DC": "'''AC/DC''' are a band.",
    "What?": "'''What?''' is a question.",
    "東京": "'''東京'''は日本の首都。",
}


def _unused(folder: str, names: list[str]) -> list[str]:
    """What is not copied: all extensions but the one that makes plain texts, and the settings of another wiki."""
    if Path(folder) == WIKI / "extensions":
        return [name for name in names if name != "TextExtracts"]
    return [name for name in names if name in ("LocalSettings.php", "extensions-core")]


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the wiki's action interface."""
    php = shutil.which("php")
    if php is None or not (WIKI / "index.php").exists():
        pytest.skip("mediawiki is not installed (on Debian: apt-get install mediawiki php-cli php-sqlite3)")
    folder, port = tmp_path_factory.mktemp("wiki"), free_port()
    root = folder / "w"
    shutil.copytree(WIKI, root, ignore=_unused, ignore_dangling_symlinks=True)
    url = f"http://127.0.0.1:{port}"

    def run(*arguments: str, text: str = "") -> None:
        done = subprocess.run([php, *arguments], cwd=root, input=text.encode(), capture_output=True)
        assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2_000:]

    install = ("--dbtype", "sqlite", "--dbpath", str(folder), "--dbname", "wiki", "--server", url, "--scriptpath", "")
    run("maintenance/install.php", *install, "--pass", "a-long-password-1", "Towns", "admin")
    with (root / "LocalSettings.php").open("a") as settings:
        settings.write("\nwfLoadExtension( 'TextExtracts' );\n")
    for title, text in ARTICLES.items():
        run("maintenance/edit.php", title, text=text)
    run("maintenance/rebuildtextindex.php")
    with serving(
        (php, "-S", f"127.0.0.1:{port}", "-t", root),
        folder / "log",
        f"{url}/api.php?action=query&meta=siteinfo&format=json",
    ):
        yield f"{url}/api.php"


@pytest.fixture
def tools(marvin_home: Path, marvin_workdir: Path, wiki: str) -> Iterator[ToolRunner]:
    with ToolRunner(marvin_home, marvin_workdir, env={"MARVIN_URL_WIKIPEDIA": wiki}) as runner:
        yield runner


def test_articles_are_found(tools: ToolRunner) -> None:
    outcome = tools.call("wiki_search", query="tower")
    assert not outcome.is_error, outcome.text
    assert outcome.text.startswith("1. Tower Bridge (")
    assert "index.php" in outcome.text
    assert "no article about 'xqzt'" in tools.call("wiki_search", query="xqzt").text


def test_articles_are_read(tools: ToolRunner) -> None:
    text = tools.call("wiki_summary", title="Towerbridge").text
    assert text.startswith("Tower Bridge\nhttp://127.0.0.1:")
    assert "Tower Bridge is a bridge in London." in text
    assert "Built from" not in text
    assert "は日本の首都" in tools.call("wiki_summary", title="東京").text


def test_articles_are_saved_and_searched(tools: ToolRunner) -> None:
    assert "Sections: History" in tools.call("wiki_full", title="tower_Bridge").text
    found = tools.call("wiki_grep", title="Towerbridge", pattern=r"from \d+")
    assert found.is_error  # it was not asked for by that title
    found = tools.call("wiki_grep", title="Tower Bridge", pattern=r"from \d+")
    assert "History: Built from 1886 to 1894." in found.text
    for title in ("AC/DC", "What?"):
        assert not tools.call("wiki_full", title=title).is_error
        assert title in tools.call("wiki_grep", title=title, pattern=".").text


@pytest.mark.parametrize(
    "title", ["Nothing here", "Foo|Tower Bridge", "Special:Version", "<b>", "#", "File:", "x" * 299]
)
def test_titles_that_are_none(tools: ToolRunner, title: str) -> None:
    outcome = tools.call("wiki_summary", title=title)
    assert outcome.is_error
    assert "has no article" in outcome.text
