"""Saved articles: files in the data folder, and an index that maps articles to files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from marvin_core import JsonFile, ToolContext, ToolError, in_thread, near_names, one_line

from ..downloads import filenames
from .mediawiki import Article

_FOLDER = "wikipedia"
_INDEX = "index.json"
_ENDING = ".txt"
_TITLE = 300
_ASKED = 20
"""Other titles of an article that are kept: those that redirect to it."""
_LARGEST = 20_000_000
_NAMED = 10


class SavedArticles:
    """The saved articles, during one call.

    Articles never share a file, although file names allow fewer characters than titles: AC/DC is not AC-DC, What
    is not What?, and an article of another wiki is another one. A symbolic link in the place of a file leads
    nowhere else, and `/undo` restores what was there before.
    """

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self.folder = context.folders.data / _FOLDER
        self._index: JsonFile[dict[str, Any]] = JsonFile(self.folder / _INDEX, dict, _check, timeouts=context.timeouts)

    async def save(self, asked: str, article: Article) -> Path:
        """Save an article under the title that was requested; returns the file's path.

        Raises:
            ToolError: it cannot be written.
        """
        name = await self._index.change(lambda index: _named(index, asked, article))
        content = f"{article.title}\n{article.url}\n\n{article.text}\n".encode("utf-8", "replace")
        files = await in_thread(lambda: self._context.writing(self.folder).paths)
        await in_thread(lambda: files.replace(name, content))
        return self.folder / name

    async def read(self, title: str) -> tuple[str, bytes]:
        """The title and the content of a saved article.

        Raises:
            ToolError: there is none; the text names the saved ones.
        """
        index = await self._index.read()
        for name in _meant(index, title):
            content = await in_thread(lambda name=name: self._content(name))  # type: ignore[misc]
            if content is not None:
                return str(index[name]["title"]), content
        there = await in_thread(
            lambda: [one["title"] for name, one in index.items() if self._content(name, 0) is not None]
        )
        near = near_names(title, sorted(there))
        hint = f" Saved articles: {', '.join(near or sorted(there)[:_NAMED])}." if there else ""
        raise ToolError(f"The article {one_line(title, _TITLE)!r} is not saved. Save it with wiki_full first.{hint}")

    def _content(self, name: str, most: int = _LARGEST) -> bytes | None:
        """The content of a file; None if there is no readable file."""
        if not self.folder.is_dir():
            return None
        try:
            with self._context.reading(self.folder).paths.open(name) as stream:
                return stream.read(most)
        except ToolError:
            return None


def _named(index: dict[str, Any], asked: str, article: Article) -> str:
    """The file of an article, after adding it to the index."""
    # Some file systems ignore case.
    taken = {name.casefold(): name for name in index}
    wanted = filenames.safe(f"{article.title.replace('/', '_')}{_ENDING}")
    wanted = wanted if wanted.endswith(_ENDING) else f"article{_ENDING}"
    for candidate in filenames.numbered(wanted):
        name = taken.get(candidate.casefold(), candidate)
        entry = index.get(name)
        if entry is None or entry["url"] == article.url:
            others = [] if entry is None else list(entry.get("asked", ()))
            if _key(asked) not in (_key(article.title), *others):
                others.append(_key(asked))
            index[name] = {"title": article.title, "url": article.url, "asked": others[-_ASKED:]}
            return name
    raise ToolError("Too many articles of one name are saved. Ask the user to remove some of them.")


def _meant(index: Mapping[str, Any], title: str) -> Iterator[str]:
    """The files of the articles that a title may mean, the likeliest first."""
    exact = " ".join(title.replace("_", " ").split())
    key = _key(title)
    newest = list(reversed(list(index.items())))
    yield from (name for name, one in newest if exact in (one["title"], one["url"]))
    yield from (name for name, one in newest if _key(one["title"]) == key)
    yield from (name for name, one in newest if key in one.get("asked", ()))


def _key(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()[:_TITLE]


def _check(index: Mapping[str, Any]) -> None:
    for name, entry in index.items():
        is_entry = isinstance(entry, dict) and isinstance(entry.get("asked", []), list)
        if not (is_entry and isinstance(entry.get("title"), str) and isinstance(entry.get("url"), str)):
            raise ValueError(f"{name!r} is not an article")
