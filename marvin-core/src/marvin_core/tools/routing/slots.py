"""Values in requests: numbers, paths, addresses, durations, clock times, quoted and free text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from ...api.record import Record
from .words import normalized

Kind: TypeAlias = Literal[
    "number",
    "integer",
    "duration",
    "time",
    "path",
    "glob",
    "url",
    "email",
    "expression",
    "identifier",
    "repository",
    "unit",
    "word",
    "name",
    "place",
    "text",
    "quoted",
]
"""The kinds of values that a slot accepts:

- number, integer: `3.5`, `1,000`, `-2`, and the words one to twelve
- duration: `90s`, `5 minutes`, `1h30m`, `half an hour`; the value is in seconds
- time: `9am`, `17:30`, `noon`; the value is in the form HH:MM of 24 hours
- path: a word with a slash or an ending such as `.py`, a quoted text, or a name such as Makefile
- glob: a word with a star, as `*.py`
- url: a word that begins with http:// or https://, or the name of a site, as `www.example.org` or `example.com/about`
- email: an e-mail address, as `anna@example.org`
- expression: an arithmetic expression, as `(2+3)*4` or `2^10`, but not a date
- identifier: a name of program code, as `parse_date`, `HttpClient` or `API_BASE`
- repository: the owner and the name of a repository, as `pallets/flask`
- unit: the name or sign of a common unit or currency, as `km/h`, `miles per hour`, `°F` or `EUR`
- word: one word of any kind
- name: up to four words, without an article at the beginning and without words about time
- place: a name, or coordinates in degrees, latitude first: `48.85, 2.35` has the value `48.85,2.35`
- text: up to twelve words
- quoted: a quoted text
"""
KINDS: tuple[str, ...] = get_args(Kind)
TYPED = frozenset(KINDS) - {"word", "name", "place", "text"}
"""The kinds that are recognised by their form, and not only by the words around them."""

_LONGEST: Mapping[str, int] = {"duration": 8, "time": 2, "unit": 3, "name": 4, "place": 5, "text": 12, "expression": 24}
"""The maximum number of tokens; one for all other kinds."""
JOINING = frozenset(", ; : . ! ? and or but then also after before".split())
"""Words between two requests, at which free text ends unless it is quoted."""
_NEGATIONS = frozenset(
    "no not never don't dont doesn't didn't won't can't cannot shouldn't mustn't isn't aren't without except"
    " nothing none neither nor instead avoid".split()
)
ABOUT_TIME = frozenset(
    "today tomorrow yesterday tonight now later soon next last ago until since during week weekend month year"
    " monday tuesday wednesday thursday friday saturday sunday morning afternoon evening noon midnight".split()
)
_TO_BE = frozenset({"am", "are", "is", "was", "were"})
_PRONOUNS = frozenset({"here", "i", "it", "me", "there", "they", "we", "you"})
_ARTICLES = frozenset("a an any her his its my our some that the their these this those your".split())
_FILES_WITHOUT_ENDING = frozenset("makefile dockerfile readme license licence changelog jenkinsfile gemfile".split())
_NUMBER_WORDS = {
    word: number
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
_SECONDS: Mapping[str, int] = {
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("m", "min", "minute"), 60),
    **dict.fromkeys(("h", "hr", "hour"), 3600),
    **dict.fromkeys(("d", "day"), 86_400),
    **dict.fromkeys(("w", "week"), 604_800),
}
_UNITS = frozenset(
    "m meter metre km kilometer kilometre cm centimeter centimetre mm millimeter millimetre mile mi yd yard ft foot"
    " feet inch inche in light-year g gram kg kilogram kilo mg milligram t ton tonne lb lbs pound oz ounce stone l"
    " liter litre ml milliliter millilitre cl dl gal gallon pint quart cup tbsp tablespoon tsp teaspoon c f k °c °f"
    " celsius fahrenheit kelvin degree s sec second min minute h hr hour day week month year ms kmh mph kph knot"
    " acre hectare ha bit byte kb mb gb tb kib mib gib tib j joule kj cal calorie kcal kwh wh w watt kw hp pa bar"
    " psi atm n newton v volt hz khz mhz ghz deg rad radian percent"
    " usd eur gbp chf jpy cny inr cad aud nzd sek nok dkk pln czk huf try brl mxn zar krw sgd hkd thb"
    " dollar euro franc yen yuan rupee krona krone peso rand won".split()
)
"""Units and currencies, by their normal form."""
_BEFORE_UNITS = frozenset("degree square cubic us british american canadian australian swiss".split())
_PLURALS_OF_SHORT_UNITS = {"secs": "sec", "mins": "min", "hrs": "hr"}

_DIGITS = 300
"""The maximum length of a number in characters; longer ones are not plausible."""
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_TOKEN = re.compile(
    rf"""
      (?P<quoted>"[^"\n]+"|`[^`\n]+`|“[^”\n]+”|«[^»\n]+»|(?<!\w)'[^'\n]+'(?!\w))
    | (?P<url>https?://[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}}])
    | (?P<email>[\w.+-]*\w@[^\W\d_][\w-]*(?:\.[\w-]+)*\.[^\W\d_]{{2,}}(?![\w@:/-]))
    | (?P<time>\d{{1,2}}:\d{{2}}(?![\d:])(?:\s?[ap]\.?m\b\.?)?|\d{{1,2}}\s?[ap]\.?m\b)
    | (?P<duration>(?:\d+[dhms]){{2,}}(?!\w)|\d+h\d+(?!\w))
    | (?P<glued>(?:(?<!\S)[-+−])?{_NUMBER}(?!(?:st|nd|rd|th)\b)(?=°?[^\W\d_]{{1,3}}(?:/[^\W\d_]{{1,3}})?(?![\w./])))
    | (?P<glob>[\w./~@+{{}},!\[\]-]*\*[\w./~@+{{}},!*?\[\]-]*)
    | (?P<path>[\w.~@+-]*/(?:[\w.~@+/-]*[\w~/])?|\.[^\W\d_][\w.-]*\w|~(?!\S)
        |[\w@+-]+(?:\.[\w@+-]+)*\.[^\W\d_]\w{{0,7}}(?!\w))
    | (?P<number>(?:(?<!\S)[-+−])?{_NUMBER}(?!\w))
    | (?P<word>°?\w(?:(?:[\w'’~^-]|\.\.|\.(?=\d))*\w)?(?:/[^\W\d_]+)?)
    | (?P<mark>\S)
    """,
    re.VERBOSE,
)
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?:\s?([ap])\.?m\.?)?", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(?=\D)(?:\w*[^\W_]_\w+|_+[^\W_]\w*|[^\W_]*[a-z\d][A-Z][^\W_]*)")
_PRODUCTS = frozenset(
    "airpods chatgpt deepmind duckduckgo ebay facetime github gitlab imessage ipad iphone javascript linkedin macbook"
    " macos openai paypal photoshop playstation powerpoint spacex stackoverflow tiktok typescript whatsapp wordpress"
    " youtube".split()
)
"""Names of products that are written like identifiers."""
_SITE = re.compile(
    r"www\.[\w-]+(?:\.[\w-]+)+(?:/\S*)?|(?:[a-z\d-]+\.)+(?:com|net|edu|gov|io|dev|info|co\.uk)(?:/\S*)?"
    r"|(?:[a-z\d-]+\.)+org/\S*",
    re.IGNORECASE,
)
"""Addresses of pages without https://; `notes.org` is more likely a file."""
_REPOSITORY = re.compile(r"[^\W_][\w-]*/[\w-]*\w", re.ASCII)
_FOLDERS = frozenset(
    "and app bin build config data dist doc docs etc home include input lib log logs output script scripts source src"
    " test tests tmp usr util utils var".split()
)
"""Common names of folders, which are no owners of repositories."""
_COORDINATES = re.compile(r"([-+−]?\d{1,2}\.\d+)\s*,\s*([-+−]?\d{1,3}\.\d+)")
_CALCULATION = re.compile(rf"(?:[-+(]\s*)*{_NUMBER}%?(?:[)\s]*(?:\*\*|[-+*/^×÷−])[(\s]*-?\s*{_NUMBER}%?)+[)\s]*")
_DATE = re.compile(r"\d+([-/])\d+\1\d+|\d{1,2}/\d{1,2}")
_AMOUNT = re.compile(rf"({_NUMBER})\s*([^\W\d_]+)\s*(?:and\s+|,\s*)?")


class Token(Record):
    """A token of a request: `kind` is its form, `text` its content without quotes, `word` its normal form.

    `start` and `end` are its position, in characters.
    """

    kind: str
    text: str
    word: str
    start: int
    end: int


class Utterance:
    """A text in tokens, and the values in it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens in order, without the punctuation that ends the last sentence."""
        found = [_token(match) for match in _TOKEN.finditer(self.text)]
        while found and found[-1].text in (".", "!", "?", "…"):
            found.pop()
        return tuple(found)

    @property
    def negates(self) -> bool:
        """Whether it contains a negation outside of quotes."""
        return any(token.word in _NEGATIONS for token in self.tokens if token.kind != "quoted")

    def value(self, kind: str, first: int, end: int) -> Any:
        """The tokens from `first` up to but excluding `end`, as a value of this kind; None if they are none."""
        if not 0 < end - first <= _LONGEST.get(kind, 1):
            return None
        return _READERS[kind](self, first, end)

    def find(self, kind: str) -> Iterator[tuple[int, int, Any]]:
        """The values of a kind, from left to right, longest first, each with its first token and its end."""
        first, count = 0, len(self.tokens)
        while first < count:
            ends = range(min(count, first + _LONGEST.get(kind, 1)), first, -1)
            found = next(((end, value) for end in ends if (value := self.value(kind, first, end)) is not None), None)
            if found is not None:
                yield first, *found
            first = found[0] if found is not None else first + 1

    def part(self, first: int, end: int) -> str:
        """The text of the tokens from `first` up to `end`; for a single quoted one, without its quotes."""
        if end - first == 1:
            return self.tokens[first].text
        return self.text[self.tokens[first].start : self.tokens[end - 1].end]


def kind_of(name: str, schema: Mapping[str, Any]) -> str:
    """The kind of value for a parameter, from its type and name."""
    if schema.get("type") in ("integer", "number"):
        is_duration = re.search(r"(^|_)(seconds|duration|timeout)$", name)
        return "duration" if is_duration else str(schema["type"])
    if schema.get("format") == "email":
        return "email"
    if schema.get("format") == "uri" or re.search(r"(^|_)url$", name):
        return "url"
    patterns = {
        "path": r"(^|_)(path|file|folder|dir|directory)$",
        "glob": r"(^|_)glob(_|$)",
        "time": r"(^|_)time$",
        "unit": r"(^|_)unit$",
        "email": r"(^|_)e?_?mail(_address)?$",
        "expression": r"(^|_)(calculation|expression|formula)$",
        "name": r"(^|_)name$",
        "place": r"(^|_)(city|country|place|location|near|origin|destination)$",
    }
    return next((kind for kind, pattern in patterns.items() if re.search(pattern, name)), "text")


def _token(match: re.Match[str]) -> Token:
    kind, text = str(match.lastgroup), match.group()
    if kind == "quoted":
        text = text[1:-1]
    elif kind == "path" and _SITE.fullmatch(text):
        kind, text = "url", f"https://{text}"
    return Token(
        kind="number" if kind == "glued" else kind,
        text=text,
        word=normalized(text),
        start=match.start(),
        end=match.end(),
    )


def _number(said: Utterance, first: int, end: int) -> int | float | None:
    token = said.tokens[first]
    if token.kind == "number":
        plain = token.text.replace(",", "").replace("−", "-")
        if len(plain) > _DIGITS:
            return None
        return float(plain) if "." in plain else int(plain)
    return _NUMBER_WORDS.get(token.word)


def _integer(said: Utterance, first: int, end: int) -> int | None:
    number = _number(said, first, end)
    return number if isinstance(number, int) else None


def _duration(said: Utterance, first: int, end: int) -> int | None:
    """The seconds of `1h30m`, `5 minutes`, `an hour and ten minutes`; None for any other text, and for parts of one."""
    text = said.part(first, end).casefold()
    if text.endswith(("and", ",")) or said.tokens[first].kind == "quoted":
        return None
    text = re.sub(r"\bhalf an?\b", "0.5", text)
    text = re.sub(r"\ban?\b", "1", text)
    text = re.sub(r"[^\W\d_]+", lambda match: str(_NUMBER_WORDS.get(match.group(), match.group())), text)
    text = re.sub(r"(?<=\dh)(\d+)$", r"\1m", text)
    total, position = 0.0, 0
    while position < len(text):
        amount = _AMOUNT.match(text, position)
        if amount is None:
            return None
        unit = _PLURALS_OF_SHORT_UNITS.get(amount[2], normalized(amount[2]))
        if unit not in _SECONDS:
            return None
        total += float(amount[1].replace(",", "")) * _SECONDS[unit]
        position = amount.end()
    return round(total) if 0 < total < float("inf") else None


def _time(said: Utterance, first: int, end: int) -> str | None:
    text = said.part(first, end).casefold()
    if text in ("noon", "midnight"):
        return "12:00" if text == "noon" else "00:00"
    match = _CLOCK.fullmatch(text)
    if match is None or (match[2] is None and match[3] is None) or said.tokens[first].kind == "quoted":
        return None
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3]
    if minute > 59 or (not 1 <= hour <= 12 if half else hour > 23):
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{minute:02}"


def _path(said: Utterance, first: int, end: int) -> str | None:
    token = said.tokens[first]
    is_path = token.kind in ("path", "quoted", "email") or token.text.casefold() in _FILES_WITHOUT_ENDING
    return token.text if is_path else None


def _identifier(said: Utterance, first: int, end: int) -> str | None:
    token = said.tokens[first]
    is_name = token.kind in ("word", "quoted") and token.text.casefold() not in _PRODUCTS
    return token.text if is_name and _IDENTIFIER.fullmatch(token.text) else None


def _repository(said: Utterance, first: int, end: int) -> str | None:
    token = said.tokens[first]
    is_owned = _REPOSITORY.fullmatch(token.text) and token.text.split("/")[0].casefold() not in _FOLDERS
    return token.text if is_owned and token.kind in ("path", "quoted") else None


def _of_kinds(*kinds: str) -> Callable[[Utterance, int, int], str | None]:
    return lambda said, first, end: said.tokens[first].text if said.tokens[first].kind in kinds else None


def _word(said: Utterance, first: int, end: int) -> str | None:
    token = said.tokens[first]
    return None if token.kind == "mark" or token.word in JOINING | _NEGATIONS | _TO_BE else token.text


def _free(said: Utterance, first: int, end: int) -> str | None:
    """The text as written; a quoted part matches only as a whole."""
    tokens = said.tokens[first:end]
    if end - first == 1 and tokens[0].kind == "quoted":
        return tokens[0].text
    if any(token.kind == "quoted" or token.word in JOINING | _NEGATIONS for token in tokens):
        return None
    if all(token.word in _PRONOUNS | _TO_BE | _ARTICLES for token in tokens):
        return None
    return said.part(first, end)


def _name(said: Utterance, first: int, end: int) -> str | None:
    tokens = said.tokens[first:end]
    if any(token.kind != "quoted" and token.word in ABOUT_TIME for token in tokens):
        return None
    if any(token.kind not in ("word", "quoted", "number") for token in tokens):
        return None
    if tokens[0].kind == "word" and tokens[0].word in _ARTICLES | _PRONOUNS | _TO_BE:
        return None
    return _free(said, first, end)


def _place(said: Utterance, first: int, end: int) -> str | None:
    """A name, or coordinates on Earth in the form that services accept."""
    degrees = _COORDINATES.fullmatch(said.part(first, end))
    if degrees is not None and said.tokens[first].kind != "quoted":
        is_on_earth = all(
            abs(float(degree.replace("−", "-"))) <= most
            for degree, most in zip(degrees.groups(), (90, 180), strict=True)
        )
        return ",".join(degrees.groups()).replace("−", "-") if is_on_earth else None
    return _name(said, first, end) if end - first <= _LONGEST["name"] else None


def _expression(said: Utterance, first: int, end: int) -> str | None:
    text = said.part(first, end).rstrip("?!")
    if said.tokens[first].kind == "quoted" or not _CALCULATION.fullmatch(text) or _DATE.fullmatch(text):
        return None
    around = said.text[: said.tokens[first].start][-1:] + said.text[said.tokens[end - 1].end :][:1]
    if any(beside.isalnum() or beside in "()+-*/^×÷−%" for beside in around):  # it is a part of another token
        return None
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return None
    return text if depth == 0 else None


def _unit(said: Utterance, first: int, end: int) -> str | None:
    parts = [part for token in said.tokens[first:end] for part in re.split("/", token.word)]
    while len(parts) > 1 and parts[0] in _BEFORE_UNITS:
        del parts[0]
    if any(part not in _UNITS and part != "per" for part in parts) or "per" in (parts[0], parts[-1]):
        return None
    is_ratio = "per" in parts or "/" in said.part(first, end)
    return said.part(first, end) if is_ratio or len(parts) == 1 else None


_READERS: Mapping[str, Callable[[Utterance, int, int], Any]] = {
    "number": _number,
    "integer": _integer,
    "duration": _duration,
    "time": _time,
    "path": _path,
    "glob": _of_kinds("glob"),
    "url": _of_kinds("url"),
    "quoted": _of_kinds("quoted"),
    "word": _word,
    "name": _name,
    "place": _place,
    "email": _of_kinds("email"),
    "identifier": _identifier,
    "repository": _repository,
    "expression": _expression,
    "unit": _unit,
    "text": _free,
}
