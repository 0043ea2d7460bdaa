"""Parses reviews. Reviewers are asked for JSON and a final verdict line, but models write in many formats.

Findings are parsed one by one, so that a malformed object, a truncated list or prose between them does no harm.
Without JSON, Markdown lists, headings and tables are parsed. A failed review without separable findings becomes one
finding as a whole: no complaint is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .findings import SEVERITIES, Finding, Review, Verdict
from .json_objects import Found, json_objects
from .markdown_findings import markdown_findings
from .reading import finding_of

TEXT_LIMIT = 200_000
"""Characters of a review that are parsed; of a longer one also the end, with the verdict."""
_TAIL = 2_000
FINDINGS_LIMIT = 100
"""Findings of one review that are kept, the worst ones."""
_WHOLE_LIMIT = 4_000
_LISTS = ("findings", "issues", "problems")
_EDGE_LINES = 3
"""Lines at the end in which the verdict may stand; models like to add a remark."""
_AFTER = 12
"""Words that may follow a pass. With more of them it is not the end of the review."""

_PASS = re.compile(r"(?:SPEC|UX|DESIGN|CODE|DOCUMENT|REVIEW)_(?:VERIFIED|PASSED)|TESTS?_VERIFIED")
_FAIL = re.compile(r"(?:SPEC|UX|DESIGN|CODE|TESTS?|DOCUMENT|REVIEW)_FAILED")
_LABEL = re.compile(r"^(?:FINAL_)?(?:VERDICT|RESULT|STATUS|CONCLUSION)_*:_*")
_TAKEN_BACK = re.compile(
    r"❌|⛔|🚫|~~|\[ \]|\b(?:but|however|except|although|though|unless|once|if|not)\b", re.IGNORECASE
)
"""Words that revoke a pass, or make it conditional."""
_DECORATION = " \t*_`#~\"'“”‘’.![]()✅❌🎉"
_SENTENCE = re.compile(r"(?<=[.!])\s+")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})[\w-]*\s*$")


def read_review(text: str) -> Review:
    """A parsed review. Never raises; takes linear time."""
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
        # Without a severity it counts as severe.
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
    """Whether there is an empty list of findings; then the text around it contains none."""
    return any(found.value.get(key) == [] for found in objects for key in _LISTS)


def _verdict_in(objects: Iterable[Found]) -> str:
    """The verdict in the JSON itself."""
    for found in objects:
        for key in ("verdict", "result", "status"):
            value = found.value.get(key)
            if isinstance(value, str) and (said := _said(value)):
                return said
    return ""


def _verdict(prose: str) -> str:
    """passed, failed, or nothing: the keyword counts on a line of its own, or as the last sentence of the last line.

    A keyword inside a sentence, or followed by much text, does not count. If both verdicts stand
    there, the review failed.
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
    """Whether the text after a verdict does not revoke it."""
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
    """The text without the JSON: a quotation from the document is not a verdict."""
    parts, at = [], 0
    for found in sorted(objects, key=lambda each: each.start):
        if found.start >= at:
            parts.append(text[at : found.start])
            at = found.end
    return "\n".join([*parts, text[at:]])
