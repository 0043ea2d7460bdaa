"""Translation by MyMemory.

Source: mymemory.translated.net/doc/spec.php
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from marvin_core import Record, RequestFailed, ToolContext, ToolError, head_and_tail, one_line, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import MYMEMORY
from ..services.client import ServiceClient
from ..services.visible_text import seen

_BYTES = 480
"""Bytes of one request; the service allows 500."""
_LONGEST = 6_000
_CODE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z]{2,4})?")
_TRANSLATED = 2_000
_SHOWN = 20_000
_USED_UP = ("MYMEMORY WARNING", "YOU USED ALL AVAILABLE FREE TRANSLATIONS")
_NAMES = {
    "albanian": "sq", "arabic": "ar", "bengali": "bn", "brazilian portuguese": "pt-BR", "bulgarian": "bg",
    "catalan": "ca", "chinese": "zh-CN", "croatian": "hr", "czech": "cs", "danish": "da", "dutch": "nl",
    "english": "en", "esperanto": "eo", "estonian": "et", "farsi": "fa", "filipino": "tl", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu",
    "icelandic": "is", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja", "korean": "ko",
    "latin": "la", "latvian": "lv", "lithuanian": "lt", "malay": "ms", "mandarin": "zh-CN", "norwegian": "no",
    "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "serbian": "sr",
    "simplified chinese": "zh-CN", "slovak": "sk", "slovenian": "sl", "spanish": "es", "swahili": "sw",
    "swedish": "sv", "tagalog": "tl", "tamil": "ta", "telugu": "te", "thai": "th", "traditional chinese": "zh-TW",
    "turkish": "tr", "ukrainian": "uk", "urdu": "ur", "vietnamese": "vi", "welsh": "cy", "zh": "zh-CN",
}  # fmt: skip
_SENTENCE = re.compile(r"[^.!?\n]{1,2000}[.!?\n]{0,20}\s{0,20}|[.!?\n]{1,200}\s{0,20}")


class _Part(Record):
    """A translated part; `source` is the detected language."""

    text: str
    source: str = ""


def _time(arguments: Mapping[str, Any]) -> float:
    """Timeout of a call in seconds: a long text takes many requests, one after the other."""
    return 60.0 + len(str(arguments.get("text", ""))[:_LONGEST]) / 20


@tool(access=["net"], labels=["MyMemory"], timeout=_time, probe={"text": "Good morning", "target_language": "de"})
async def translate_text(
    text: Annotated[str, "At most 6,000 characters"],
    target_language: Annotated[str, "A language code such as de"],
    source_language: Annotated[str, "Code, or auto"] = "auto",
    *,
    context: ToolContext,
) -> str:
    """Translate a text."""
    if not text.strip() or len(text) > _LONGEST:
        wrong = "is empty" if not text.strip() else f"has {len(text):,} characters; the limit is {_LONGEST:,}"
        raise ToolError(f"text {wrong}. Give 1 to {_LONGEST:,} characters, a part at a time.")
    target, source = _language(target_language), _language(source_language)
    if target == "autodetect":
        raise ToolError("target_language must be a language. Give its code, such as de.")
    parts = list(parts_of(text))
    done: list[_Part] = []
    rest = ""
    for number, part in enumerate(parts):
        if len(parts) > 1:
            context.progress("Translating", number, len(parts))
        try:
            done.append(await _translated(context, part, source, target) if part.strip() else _Part(text=part))
        except RequestFailed as error:
            if not any(one.text.strip() for one in done):
                raise
            left = sum(map(len, parts[number:]))
            rest = f"\n[The last {left:,} characters were not translated: {error}]"
            break
    found = next((part.source for part in done if part.source), source)
    pair = f"{found} to {target}" if found != "autodetect" else f"to {target}"
    translated = head_and_tail("".join(part.text for part in done).strip(), _SHOWN)
    return f"{translated}{rest}\n[{pair}] {source_line([MYMEMORY])}"


def _language(given: str) -> str:
    name = " ".join(given.replace("_", "-").split())
    if name.lower() in ("auto", "autodetect", ""):
        return "autodetect"
    code = _NAMES.get(name.lower(), name)
    code = code.partition("-")[0].lower() + code[code.find("-") :] if "-" in code else code.lower()
    if not _CODE.fullmatch(code):
        raise ToolError(f"{one_line(given, 60)!r} is not a language. Give its ISO 639-1 code, as in de for German.")
    return code


def parts_of(text: str) -> Iterator[str]:
    """The text in parts that are short enough for one request, split at the ends of sentences where possible."""
    part = ""
    for sentence in (found[0] for found in _SENTENCE.finditer(text)):
        if len((part + sentence).encode("utf-8", "replace")) <= _BYTES:
            part += sentence
            continue
        if part:
            yield part
        *whole, part = _slices(sentence)
        yield from whole
    if part:
        yield part


def _slices(sentence: str) -> list[str]:
    """A sentence in pieces, split between words, or anywhere in a text without spaces."""
    pieces = [""]
    for word in re.findall(r"\S{1,100}\s{0,20}|\s{1,100}", sentence):
        if len((pieces[-1] + word).encode("utf-8", "replace")) > _BYTES:
            pieces.append("")
        pieces[-1] += word
    return pieces


async def _translated(context: ToolContext, text: str, source: str, target: str) -> _Part:
    client = ServiceClient(context, MYMEMORY)
    params: dict[str, str | float | None] = {"q": text, "langpair": f"{source}|{target}", "mt": 1}
    params["key"] = context.secret("MYMEMORY_KEY", None)
    part = await client.get_json("get", part_in, params=params)
    # The service drops white space at the ends of a text.
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return part.replace(text=f"{before}{part.text.strip()}{after}")


def part_in(answer: Any) -> _Part:
    details = values.text(answer, "responseDetails", limit=200)
    found = values.inner(answer, "responseData", "translatedText")
    # The service also puts this error in the place of the translation.
    said = f"{details} {found[:200] if isinstance(found, str) else ''}".upper()
    if answer.get("quotaFinished") is True or any(sign in said for sign in _USED_UP):
        raise RequestFailed(
            "the daily limit of free translations is reached. Translate it yourself, or try again tomorrow."
        )
    status = values.whole(answer, "responseStatus")
    if status is not None and status != 200:
        raise RequestFailed(f"it refused this: {details or status}. Check the languages.", status=status)
    if not isinstance(found, str) or not found.strip():
        raise ValueError("there is no translation")
    detected = values.text(answer, "responseData", "detectedLanguage", limit=10)
    return _Part(text=seen(html.unescape(found[:_TRANSLATED])), source=detected)
