"""Unified diffs of diff, git and models; the line counts of models are often wrong."""

from __future__ import annotations

import re

from .patch import FilePatch, Hunk, PatchError

RANGES = re.compile(r"@@+ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
MARK = r"(?:--- \S.*\n\+\+\+ \S|diff --git |@@)"
"""The prefixes of marker lines of a diff."""
_SIGNS = (" ", "+", "-")
_MODE = re.compile(r"(new file|deleted file|new) mode (\d{6})")
_BACKUPS = (".orig", ".old", ".bak", "~")
_NOTHING = "/dev/null"
_NO_NEWLINE = "\\"


def read_unified(text: str, path: str = "") -> list[FilePatch]:
    """The patches of all files, in order.

    Args:
        path: the file of hunks without a header.

    Raises:
        PatchError: a binary patch, or hunks without a file.
    """
    reader = _Reader(text, path)
    while reader.more:
        reader.step()
    return reader.done()


class _File:
    """The parsed parts of one file."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        self.mode = ""
        self.is_renamed = False
        self.hunks: list[Hunk] = []

    def patch(self) -> FilePatch:
        path = self.new if self.old in ("", _NOTHING) else self.old
        if not path:
            raise PatchError("The diff has no file name. Give path, or the lines '--- a/PATH' and '+++ b/PATH'.")
        if self.old == _NOTHING:
            content = "".join(hunk.new for hunk in self.hunks)
            return FilePatch(path=path, kind="add", content=content, is_new=True, notes=self._notes("100644"))
        if self.new == _NOTHING:
            return FilePatch(path=path, kind="delete", hunks=tuple(self.hunks))
        moved = self.new if self.is_renamed and self.new != path else ""
        if not moved:
            path = _one_name(path, self.new)
        if not self.hunks and not moved:
            what = "changes only the mode of" if self.mode else "changes nothing in"
            raise PatchError(f"The diff {what} {path!r}. Give its hunks below '@@'.")
        return FilePatch(path=path, hunks=tuple(self.hunks), move_to=moved, notes=self._notes())

    def _notes(self, usual: str = "") -> tuple[str, ...]:
        if self.mode in ("", usual):
            return ()
        return (f"The mode {self.mode[-3:]} in the diff was not set: use chmod for that.",)


class _Reader:
    def __init__(self, text: str, path: str) -> None:
        self._lines = text.split("\n")
        self._at = 0
        self._files: list[_File] = []
        self._path = path
        self._named = ""  # the file that git names above what it says of it

    @property
    def more(self) -> bool:
        """Whether there are lines left."""
        return self._at < len(self._lines)

    def done(self) -> list[FilePatch]:
        """All parsed patches."""
        if not self._files:
            raise PatchError("The diff has no hunks. Give lines that begin with '-', '+' or a space below '@@'.")
        return [file.patch() for file in self._files]

    def step(self) -> None:
        """Parse the part that begins in this line."""
        line = self._lines[self._at]
        if self._is_header(self._at):
            self._header()
        elif line.startswith("@@"):
            self._hunk()
        else:
            self._of_git(line)
            self._at += 1

    def _of_git(self, line: str) -> None:
        """The headers of git above the hunks, or instead of them.

        https://git-scm.com/docs/git-diff#generate_patch_text_with_p
        """
        if line.startswith("diff --git "):
            self._named = _named_twice(line.removeprefix("diff --git ").rstrip("\r"))
        elif line.startswith("rename from "):
            self._files.append(_File(_name(line[12:]), ""))
            self._files[-1].is_renamed = True
        elif line.startswith("rename to ") and self._files:
            self._files[-1].new = _name(line[10:])
        elif line.startswith("copy from "):
            raise PatchError("The diff copies a file, which is not supported. Give the new file with all its lines.")
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise PatchError("The diff is for binary files, which a patch cannot change.")
        elif (mode := _MODE.match(line)) and self._named:
            self._take_mode(mode[1], mode[2])

    def _take_mode(self, what: str, mode: str) -> None:
        if not mode.startswith("100"):
            raise PatchError(f"The diff is for {self._named!r}, which is a link or a submodule and not a file.")
        names = {"new file": (_NOTHING, self._named), "deleted file": (self._named, _NOTHING)}
        self._files.append(_File(*names.get(what, (self._named, self._named))))
        self._files[-1].mode = "" if what == "deleted file" else mode

    def _begins(self, at: int) -> bool:
        """Whether a line begins another hunk or another file."""
        return self._lines[at].startswith(("@@", "diff --git ")) or self._is_header(at)

    def _is_header(self, at: int) -> bool:
        return (
            at + 1 < len(self._lines) and self._lines[at].startswith("--- ") and self._lines[at + 1].startswith("+++ ")
        )

    def _header(self) -> None:
        old, new = _name(self._lines[self._at][4:]), _name(self._lines[self._at + 1][4:])
        if (old.startswith("a/") or old == _NOTHING) and (new.startswith("b/") or new == _NOTHING):
            old, new = old.removeprefix("a/"), new.removeprefix("b/")
        self._at += 2
        before = self._files[-1] if self._files else None
        if before is None or before.hunks or (before.old, before.new) != (old, new):  # else git has named it above
            self._files.append(_File(old, new))

    def _hunk(self) -> None:
        if not self._files:
            self._files.append(_File(self._path, self._path))
        ranges = RANGES.match(self._lines[self._at])
        olds = int(ranges[2] or 1) if ranges else 0
        news = int(ranges[4] or 1) if ranges else 0
        self._at += 1
        body = self._body(olds, news)
        if not body and self.more and self._lines[self._at].strip() and not self._begins(self._at):
            raise PatchError(
                f"Line {self._at + 1} of the diff, {self._lines[self._at].strip()[:80]!r}, is the first one below '@@' "
                "and begins neither with '-' nor '+' nor a space."
            )
        start = int(ranges[1]) if ranges else 0
        has_old = any(line[0] in " -" for line in body)
        self._files[-1].hunks.append(_made(body, start if has_old else start + 1))

    def _body(self, olds: int, news: int) -> list[str]:
        """The lines of a hunk: as many as its header counts, and lines after them that continue it."""
        body: list[str] = []
        while self.more:
            line = self._lines[self._at]
            counted = olds > 0 or news > 0
            if line.startswith(("@@", "diff --git ")) or (not counted and self._ends(line)):
                break
            if counted and self._is_header(self._at) and (olds <= 0 or news <= 0):
                break
            if line[:1] not in (*_SIGNS, _NO_NEWLINE):
                if line.rstrip("\r") and not counted:
                    break
                line = f" {line}"
            olds -= line[0] in " -"
            news -= line[0] in " +"
            body.append(line)
            self._at += 1
        while body and not body[-1].strip() and (olds < 0 or news < 0):
            olds, news = olds + 1, news + 1
            body.pop()  # an empty line after the diff does not belong to it
        return body

    def _ends(self, line: str) -> bool:
        return (
            self._is_header(self._at)
            or line in ("-- ", "--")
            or (not line.rstrip("\r") and self._at + 1 == len(self._lines))
        )


def _made(body: list[str], line: int) -> Hunk:
    old: list[str] = []
    new: list[str] = []
    open_old = open_new = False
    last = " "
    for entry in body:
        sign, content = entry[0], entry[1:]
        if sign == _NO_NEWLINE:
            open_old, open_new = open_old or last in " -", open_new or last in " +"
            continue
        last = sign
        if sign in " -":
            old.append(content)
        if sign in " +":
            new.append(content)
    text = "".join(f"{entry}\n" for entry in new)
    return Hunk(
        old="".join(f"{entry}\n" for entry in old),
        new=text.removesuffix("\n") if open_new else text,
        by_lines=True,
        line=line,
        at_end=open_old or open_new,
        in_order=True,
        open_end=open_new,
        closes_file=open_old and not open_new,
    )


def _one_name(old: str, new: str) -> str:
    """The file of a diff whose two names mean the same file: no renaming, although they differ. Prefixes such as "old/"
    and "new/", and extensions of backups, are removed.
    """
    if new in ("", old) or any(old == new + ending for ending in _BACKUPS):
        return new or old
    bare = old.partition("/")[2]
    if bare and bare in (new, new.partition("/")[2]):
        return bare
    raise PatchError(
        f"The diff names two files, {old!r} and {new!r}. Name the changed file in both lines; to move a file, write "
        "'rename from' and 'rename to' above them."
    )


def _named_twice(names: str) -> str:
    """The path in "a/PATH b/PATH"; empty if the two differ."""
    half = len(names) // 2
    old, new = _name(names[:half]), _name(names[half + 1 :])
    return new.removeprefix("b/") if old.removeprefix("a/") == new.removeprefix("b/") else ""


def _name(header: str) -> str:
    """The path in a header, without the timestamp after it."""
    name = header.partition("\t")[0].strip()
    if len(name) > 1 and name[0] == name[-1] == '"':  # git writes what is not ASCII as bytes, in octal
        try:
            return name[1:-1].encode("latin-1").decode("unicode_escape").encode("latin-1").decode("utf-8")
        except UnicodeError:
            return name[1:-1]
    return name
