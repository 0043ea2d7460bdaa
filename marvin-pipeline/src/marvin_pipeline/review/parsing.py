"""Reading what reviewers write. They are asked for JSON and a last line with the verdict, and write as models do.

Findings are looked for one by one, so that one bad object, a list that was cut off, or prose around them does no harm.
Where there is no JSON, lists, headings and tables of Markdown are read. A review that failed and names nothing that can
be told apart is one finding as a whole: no complaint is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .findings import SEVERITIES, Finding, Review, Verdict
from .json_objects import Found, json_objects
from .markdown_findings import markdown_findings
from .reading import finding_of

TEXT_LIMIT = 200_000
"""Characters of a review that are read; of a longer one the end is read, too, where the verdict stands."""
_TAIL = 2_000
FINDINGS_LIMIT = 100
"""Findings of one review that are kept, the worst ones."""
_WHOLE_LIMIT = 4_000
_LISTS = ("findings", "issues", "problems")
_EDGE_LINES = 3
"""Lines at the end among which the verdict stands; models like to add a word."""
_AFTER = 12
"""Words that may stand behind a pass. Whoever says more there has not ended with it."""

_PASS = re.compile(r"(?:SPEC|UX|DESIGN|CODE|DOCUMENT|REVIEW)_(?:VERIFIED|PASSED)|TESTS?_VERIFIED")
_FAIL = re.compile(r"(?:SPEC|UX|DESIGN|CODE|TESTS?|DOCUMENT|REVIEW)_FAILED")
_LABEL = re.compile(r"^(?:FINAL_)?(?:VERDICT|RESULT|STATUS|CONCLUSION)_*:_*")
_TAKEN_BACK = re.compile(
    r"❌|⛔|🚫|~~|\[ \]|\b(?:but|however|except|although|though|unless|once|if|not)\b", re.IGNORECASE
)
"""What says that a pass is none, or holds under a condition."""
_DECORATION = " \t*_`#~\"'“”‘’.![]()✅❌🎉"
_SENTENCE = re.compile(r"(?<=[.!])\s+")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})[\w-]*\s*$")


def read_review(text: str) -> Review:
    """What a reviewer said. Nothing is raised, whatever it wrote; the time is linear in the length of the text."""
    text = text.strip()
    if len(text) > TEXT_LIMIT:
        text = f"{text[: TEXT_LIMIT - _TAIL]}\n{text[-_TAIL:]}"
    if not text:
        return Review(verdict="empty")
    objects = json_objects(text)
    prose = _without(text, objects)
    words = "\n".join(line for line in prose.splitlines() if not _said(line) and not _FENCE.match(line)).strip()
    findings = list(_findings(objects)) or markdown_findings(words)
    said = _verdict(prose) or _verdict_in(objects)
    if said == "failed" and not findings and words and not _lists_nothing(objects):
        # How bad it is was not said: bad enough to be mended.
        findings = [Finding(severity="high", claim=words[:_WHOLE_LIMIT])]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    verdict: Verdict = "passed" if said == "passed" else "failed" if findings else "unclear"
    return Review(verdict=verdict, findings=tuple(findings[:FINDINGS_LIMIT]), text=text)


def _findings(objects: Iterable[Found]) -> Iterable[Finding]:
    for found in objects:
        finding = finding_of(found.value)
        if finding is not None:
            yield finding


def _lists_nothing(objects: Iterable[Found]) -> bool:
    """Whether the list of findings is there and empty; then the words around it are no finding, whatever they say."""
    return any(found.value.get(key) == [] for found in objects for key in _LISTS)


def _verdict_in(objects: Iterable[Found]) -> str:
    """The verdict that stands in the JSON itself."""
    for found in objects:
        for key in ("verdict", "result", "status"):
            value = found.value.get(key)
            if isinstance(value, str) and (said := _said(value)):
                return said
    return ""


def _verdict(prose: str) -> str:
    """passed, failed, or nothing: the keyword counts on a line of its own, or as the last sentence of the last line.

    A keyword in a sentence is talk about it, and one that much is said behind is no end. Where both verdicts stand
    there, it failed.
    """
    lines = [line for line in prose.splitlines() if line.strip() and not _FENCE.match(line)]
    if any(_said(line) == "failed" for line in lines):
        return "failed"
    if not lines:
        return ""
    last = _said(_SENTENCE.split(lines[-1].strip())[-1])
    edges = {0, *range(max(0, len(lines) - _EDGE_LINES), len(lines))}
    passes = any(_said(lines[at]) == "passed" and _is_end(lines[at + 1 :]) for at in edges)
    return last or ("passed" if passes else "")


def _is_end(after: Iterable[str]) -> bool:
    """Whether what stands behind a verdict takes nothing of it back."""
    words = " ".join(line for line in after if not _said(line))
    return len(words.split()) <= _AFTER and not _TAKEN_BACK.search(words)


def _said(line: str) -> str:
    if len(line) > 100:
        return ""
    word = re.sub(r"[\s_-]+", "_", line.strip(_DECORATION).upper())
    word = _LABEL.sub("", word.replace("*", "").replace("`", "")).strip("_.!")
    if _PASS.fullmatch(word):
        return "" if _TAKEN_BACK.search(line) else "passed"
    return "failed" if _FAIL.fullmatch(word) else ""


def _without(text: str, objects: Iterable[Found]) -> str:
    """The text around the JSON: what a document says inside a quote is no verdict."""
    parts, at = [], 0
    for found in sorted(objects, key=lambda each: each.start):
        if found.start >= at:
            parts.append(text[at : found.start])
            at = found.end
    return "\n".join([*parts, text[at:]])
