"""The dictionary: dictionaryapi.dev, and WordNet if it is installed.

Source: dictionaryapi.dev, wordnet.princeton.edu/documentation/wn1wn
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from marvin_core import RequestFailed, ToolContext, ToolError, head_and_tail, output_text, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import DICTIONARY
from ..services.client import ServiceClient

_WORD = re.compile(r"[^\W\d_][\w' .-]{0,80}")
_APOSTROPHES = str.maketrans("\u2019\u2018\u02bc", "'''")
_AROUND = " .,;:!?\"'“”„«»()"
_ENTRIES = 3
_MEANINGS = 6
_DEFINITIONS = 4
_SYNONYMS = 10
_SAID = 300
_LONGEST = 5_000
_NOT_FOUND = 404
_SENSE = re.compile(r"^\d+\. ", re.MULTILINE)


@tool(access=["net"], labels=["Free Dictionary", "WordNet"], probe={"word": "bridge"})
async def dictionary_lookup(
    word: Annotated[str, "An English word"],
    include_synonyms: Annotated[bool, "Include synonyms and antonyms"] = True,
    *,
    context: ToolContext,
) -> str:
    """Look up what an English word means, and how it is pronounced."""
    asked = " ".join(word.translate(_APOSTROPHES).split()).strip(_AROUND)
    if not _WORD.fullmatch(asked):
        raise ToolError(f"{asked[:80]!r} is not a word. Give one word or a fixed phrase, as in 'give up'.")
    client = ServiceClient(context, DICTIONARY)
    try:
        text = await client.get_json(
            f"entries/en/{quote(asked, safe='')}", lambda answer: entries_in(answer, include_synonyms)
        )
        return f"{text}\n{source_line([DICTIONARY])}"
    except RequestFailed as error:
        is_missing = error.status == _NOT_FOUND
        failure = f"{DICTIONARY.title} does not have this word." if is_missing else str(error)
        offline = await _by_wordnet(asked, context, synonyms=include_synonyms)
        if offline:
            return f"{offline}\n[Source: WordNet, on this machine. Failed: {failure}]"
        if is_missing:
            raise ToolError(
                f"The dictionary has no English word {asked!r}. Check its spelling, or use web_search."
            ) from error
        raise


def entries_in(answer: Any, synonyms: bool) -> str:
    found = [_entry(one, synonyms) for one in values.objects(values.required(answer))[:_ENTRIES]]
    text = "\n\n".join(filter(None, found))
    if not text:
        raise ValueError("there are no meanings")
    return head_and_tail(text, _LONGEST)


def _entry(one: Mapping[str, Any], synonyms: bool) -> str:
    sounds = [
        values.text(one, "phonetic", limit=60),
        *(values.text(each, "text", limit=60) for each in values.objects(one, "phonetics")),
    ]
    meanings = list(_meanings(values.objects(one, "meanings")[:_MEANINGS], synonyms))
    if not meanings:
        return ""
    return "\n".join(
        [f"{values.text(one, 'word', limit=80)} {' '.join(dict.fromkeys(filter(None, sounds)))}".rstrip(), *meanings]
    )


def _meanings(meanings: Sequence[Mapping[str, Any]], synonyms: bool) -> Iterator[str]:
    for meaning in meanings:
        definitions = values.objects(meaning, "definitions")
        if not definitions:
            continue
        yield f"{values.text(meaning, 'partOfSpeech', limit=40) or 'meaning'}:"
        for number, one in enumerate(definitions[:_DEFINITIONS], 1):
            example = values.text(one, "example", limit=_SAID)
            yield f"  {number}. {values.text(one, 'definition', limit=_SAID)}" + (f' ("{example}")' if example else "")
        if len(definitions) > _DEFINITIONS:
            yield f"  [{len(definitions) - _DEFINITIONS} more]"
        for kind in ("synonyms", "antonyms") if synonyms else ():
            listed = [words for each in (meaning, *definitions) for words in _words(each, kind)]
            if listed:
                yield f"  {kind}: {', '.join(list(dict.fromkeys(listed))[:_SYNONYMS])}"


def _words(value: Mapping[str, Any], kind: str) -> list[str]:
    found = value.get(kind)
    return [word for one in found if (word := values.text(one, limit=60))] if isinstance(found, list) else []


async def _by_wordnet(word: str, context: ToolContext, *, synonyms: bool) -> str:
    """WordNet's answer; empty if it is not installed, or does not know the word."""
    if context.processes.which("wn") is None:
        return ""
    options = ["-over", *(["-synsn", "-synsv", "-synsa", "-synsr"] if synonyms else [])]
    result = await context.processes.run(["wn", word, *options])
    text = re.sub(r"\n{3,}", "\n\n", output_text(result.output, result.omitted)).strip()
    return head_and_tail(text, _LONGEST) if _SENSE.search(text) else ""
