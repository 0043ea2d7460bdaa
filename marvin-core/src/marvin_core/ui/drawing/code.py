"""Code with its colours, by the library pygments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...util.terminal_text import disarm
from ..rendering import Paint, Role
from .inline import lines_of, painted

_LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "bash"),
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("javascript", "js", "jsx", "mjs"), "javascript"),
    **dict.fromkeys(("typescript", "ts", "tsx"), "typescript"),
    **dict.fromkeys(("json", "jsonc", "json5"), "json"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("rust", "rs"), "rust"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cpp", "c++", "cc", "cxx", "hpp"), "cpp"),
    **dict.fromkeys(("csharp", "cs", "c#"), "csharp"),
    **dict.fromkeys(("ruby", "rb"), "ruby"),
    **dict.fromkeys(("kotlin", "kt"), "kotlin"),
    **dict.fromkeys(("html", "htm"), "html"),
    **dict.fromkeys(("diff", "patch"), "diff"),
    **dict.fromkeys(("ini", "cfg", "conf"), "ini"),
    **dict.fromkeys(("docker", "dockerfile"), "docker"),
    **dict.fromkeys(("make", "makefile"), "make"),
    **{name: name for name in ("go", "java", "sql", "toml", "xml", "css", "lua", "php", "swift", "r", "scala")},
}
"""The highlighted languages, by the names that models use. The list is closed, since the behaviour of other lexers on
hostile text has not been checked."""
_WIDEST = 500
"""The maximum length of a line in characters; code with a longer one stays plain, since the lexers use expressions."""
_ROLES: Sequence[tuple[str, Role]] = (
    ("Comment", "comment"),
    ("Keyword", "keyword"),
    ("Name.Tag", "keyword"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Name.Function", "function"),
    ("Name.Class", "function"),
    ("Name.Decorator", "function"),
    ("Name.Attribute", "function"),
    ("Generic.Inserted", "added"),
    ("Generic.Deleted", "removed"),
    ("Generic.Subheading", "place"),
)


def prepare() -> None:
    """Import the highlighter; called in a thread while waiting for the first answer."""
    _lexer("python")


def code_rows(lines: Sequence[str], before: Sequence[str], language: str, paint: Paint) -> list[str]:
    """Highlighted lines of code, otherwise unchanged; `before` are the previous lines of the block."""
    words = language.lower().split(maxsplit=1)
    name = _LANGUAGES.get(words[0].strip("{}.")) if words else None
    if not paint.color or name is None or any(len(line) > _WIDEST for line in (*before, *lines)):
        return [paint("code", line) if paint.color else line for line in lines]
    tokens = _lexer(name).get_tokens("\n".join((*before, *lines)))
    rows = lines_of([(_roles(token) if text.strip() else (), disarm(text)) for token, text in tokens])
    rows = rows[len(before) :]
    if ["".join(text for _, text in row) for row in rows] != list(lines):
        return list(lines)  # whatever the library returns, the code must not change
    return [painted(row, paint) for row in rows]


@cache
def _lexer(name: str) -> Any:  # the library creates its classes at run time
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]

    return get_lexer_by_name(name, stripnl=False, ensurenl=False)


@cache
def _roles(token: object) -> tuple[Role, ...]:
    name = str(token).removeprefix("Token.")
    return next(((role,) for begin, role in _ROLES if name == begin or name.startswith(f"{begin}.")), ())
