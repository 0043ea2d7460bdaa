"""Command lines that hide a command in layers of shell: quotes, expansions, here-documents, programs, encodings.

A layer takes code that the shell can read and gives code that starts the same commands, by another way. Not each
text works in each shell, which is no harm: what counts is what a real shell starts.
"""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

from tests.support.shell_words import quoted, spelled

Layer = Callable[[Random, str], str]

_LAYERS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("shell_layers.toml").read_text("utf-8"))
_SOURCES = ("printf '%s\\n' CODE", "echo CODE", "cat <<< CODE", "{ echo CODE; }", "printf %b CODE")
_PIPES = ("|", "|\n", "| # it's\n", "|&", "| cat |", "| tee s |", "| timeout 9")
_EXPANSIONS = ("x=CODE; : ${x@P}", "PS4=CODE; set -x; :", "compgen -W CODE", "eval : CODE")
_DECODERS = (
    "base64 -d <<< CODE | bash",
    'eval "$(echo CODE | base64 -d)"',
    "bash <(base64 -d <<< CODE)",
    'bash -c "$(base64 --decode <<< CODE)"',
    "echo CODE | openssl base64 -d -A | bash",
    "v=$(base64 -d <<< CODE) bash -c 'eval \"$v\"'",
    ". <(echo CODE | base64 -d)",
)


def started(random: Random, words: Sequence[str], *, plain: bool = False) -> str:
    """The command of these words, spelled anyhow, perhaps behind programs that start others (nothing else if plain)."""
    starters = [one for one in _LAYERS["starters"] if one.split()[0].isalpha() or not plain]
    code = spelled(random, words)
    for _ in range(random.randint(0, 2)):
        code = f"{random.choice(starters)} {code}"
    return code


def hidden(random: Random, depth: int, code: str, layers: Sequence[Layer] | None = None) -> str:
    """The code below so many layers, of any kind unless some are named."""
    for _ in range(depth):
        code = random.choice(layers or EVERY)(random, code)
    return code


def each(words: str) -> Iterator[str]:
    """The command of plain words in each of the layers once, spelled in a few ways."""
    for starter in _LAYERS["starters"]:
        yield f"{starter} {words}"
    for options in _LAYERS["code_options"]:
        yield from (f"{shell} {options} '{words}'" for shell in ("bash", "sh"))
    for reader in _LAYERS["readers"]:
        yield from (f"{reader} <<'E'\n{words}\nE", f"{reader} <<< '{words}'", f"echo {words} | {reader}")
    for decoy in _LAYERS["decoys"]:
        yield f"{decoy}\n{words}"
    yield from _each("brackets", words)
    yield from _each("read_otherwise", words, lambda text: f"dash <<'END'\n{text}\nEND")
    for place in ("substitutions", "plain_places"):
        for form in (f"$({words}\n)", f"`{words}\n`", f"<({words}\n)", f"`echo \\`{words}\\``"):
            yield from _each(place, form)
    escaped = words.replace(" ", "\\ ")
    for form in (f"'a[$({words})0]'", f'"a[\\`{words}\\`0]"', f"a[\\$\\({escaped}\\)0]", f"$'a[\\x24({words})0]'"):
        yield from _each("second_readings", form)
    for kind in ("code_words", "possible_words"):
        for form in (f"'{words}'", escaped, f'"$(echo {words})"'):
            yield from _each(kind, form)


def _each(name: str, code: str, around: Callable[[str], str] = str) -> Iterator[str]:
    return (around(text.replace("CODE", code)) for text in _LAYERS[name])


def _shell(random: Random, code: str) -> str:
    command = f"{_one(random, 'shells')} {_one(random, 'code_options')} {quoted(random, code)}"
    for _ in range(random.randint(0, 2)):
        command = f"{_one(random, 'starters')} {command}"
    return command


def _read_otherwise(random: Random, code: str) -> str:
    """Code that a shell of POSIX alone starts, while bash takes it for a part of something else."""
    return f"{random.choice(('dash', 'sh'))} -c {quoted(random, _filled(random, 'read_otherwise', code))}"


def _in_bash(random: Random, code: str) -> str:
    if random.random() < 0.5:
        return f"bash {_one(random, 'code_options')} {quoted(random, code)}"
    return f"bash <<'END{len(code)}'\n{code}\nEND{len(code)}"


def _found(random: Random, code: str) -> str:
    action = random.choice(("-exec", "-execdir", "-false -o -exec", "-exec env"))
    end = random.choice(("\\;", "';'", "{} +"))
    place = random.choice((".", "-L .", "-H . -xdev", ""))
    return f"find {place} -maxdepth 0 {action} bash -c {quoted(random, code)} {end}"


def _bracketed(random: Random, code: str) -> str:
    return _filled(random, "brackets", code)


def _substituted(random: Random, code: str) -> str:
    return _filled(random, "substitutions", substitution(random, code))


def _in_plain_places(random: Random, code: str) -> str:
    return _filled(random, "plain_places", f"$( {code}\n)")


def substitution(random: Random, code: str) -> str:
    """The code as a part of a word."""
    kind = random.randrange(5)
    if kind == 0:
        escaped = code.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$")
        return f"`{escaped}\n`"
    if kind == 1:
        return f"$(  {code}\n)" if random.random() < 0.8 else f"<({code}\n)"
    return f"$( {code}\n)"  # without the blank, code in brackets would begin like arithmetic


def _behind(random: Random, code: str) -> str:
    return f"{_one(random, 'decoys')}\n{code}"


def _word(random: Random, code: str) -> str:
    return _filled(random, "code_words", quoted(random, code))


def _second(random: Random, code: str) -> str:
    return _filled(random, "second_readings", quoted(random, f"a[$({code}\n)0]"))


def _document(random: Random, code: str) -> str:
    end = f"E{random.randrange(10_000)}"
    reader = _one(random, "readers").replace("\n", ";")
    if random.random() < 0.6:
        mark = random.choice((f"'{end}'", f"\\{end}", f'"{end}"', f"{end[0]}'{end[1:]}'", f" ''{end}"))
        return f"{reader} <<{mark}\n{code}\n{end}"
    escaped = code.replace("\\", "\\\\").replace("`", "\\`").replace("$", "\\$")
    return f"{reader} <<{end}\n{escaped}\n{end}"


def _expanded(random: Random, code: str) -> str:
    return random.choice(_EXPANSIONS).replace("CODE", quoted(random, f"$({code}\n)"))


def _made(random: Random, code: str) -> str:
    return _filled(random, "possible_words", quoted(random, code))


def _piped(random: Random, code: str) -> str:
    source = random.choice(_SOURCES).replace("CODE", quoted(random, code))
    return f"{source} {random.choice(_PIPES)} {_one(random, 'readers')}"


def _encoded(random: Random, code: str) -> str:
    text = base64.b64encode(code.encode(errors="replace")).decode()
    return random.choice(_DECODERS).replace("CODE", text)


def _filled(random: Random, name: str, code: str) -> str:
    return random.choice(_LAYERS[name]).replace("CODE", code)


def _one(random: Random, name: str) -> str:
    return random.choice(_LAYERS[name])


PLAIN: tuple[Layer, ...] = (_in_bash, _found, _bracketed, _in_plain_places)
"""Layers that hide nothing from who can read."""
CERTAIN: tuple[Layer, ...] = (*PLAIN, _shell, _document, _substituted, _substituted, _behind, _word, _read_otherwise)
"""Layers whose text holds all that is started, and what starts it."""
POSSIBLE: tuple[Layer, ...] = (_second, _expanded, _made, _made, _piped, _encoded)
"""Layers that make a name or code on the way."""
READABLE: tuple[Layer, ...] = (*CERTAIN, _piped, _encoded)
"""Layers whose text shows that code is run, if not which."""
EVERY: tuple[Layer, ...] = CERTAIN + POSSIBLE
