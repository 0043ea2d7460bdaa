"""What reviewers write, in all the ways in which models write it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.prompts.loading import Prompts
from marvin_pipeline.review.findings import SEVERITIES, Review
from marvin_pipeline.review.parsing import TEXT_LIMIT, read_review
from tests.support.examples import examples

CLAIM = {"severity": "high", "file": "spec.md", "claim": "No lockout.", "evidence": "Users log in."}


def _read(text: str) -> list[tuple[str, str, str]]:
    return [(one.severity, one.file, one.claim) for one in read_review(text).findings]


def test_the_form_that_is_asked_for() -> None:
    text = f"I read it.\n\n```json\n{json.dumps({'findings': [{**CLAIM, 'id': 'R1-2'}]}, indent=1)}\n```\nREVIEW_FAILED"
    review = read_review(text)
    assert review.verdict == "failed"
    (finding,) = review.findings
    assert finding.as_dict() == {**CLAIM, "id": "R1-2", "reviewers": ()}
    assert review.text == text


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([CLAIM]),
        json.dumps(CLAIM),
        f"Here:\n{json.dumps(CLAIM)}\nand no more {{",
        json.dumps({"review": {"document": {"findings": [CLAIM]}}}),
        'He said "hm and {left} it.\n' + json.dumps({"findings": [CLAIM]}),
        json.dumps({"findings": [CLAIM]})[:-2] + ",]}",
        json.dumps({"findings": [CLAIM, CLAIM]})[:-60],
        "{'findings': [{'severity': 'High', 'file': 'spec.md', 'claim': 'No lockout.', 'open': True}]}",
        json.dumps({"Findings": [{"Severity": "HIGH", "Path": "spec.md", "Issue": "No lockout."}]}),
        json.dumps({"issues": [{"priority": "P1", "location": {"file": "spec.md"}, "problem": "No lockout."}]}),
        json.dumps({"findings": [{"level": "🔴 Major", "document": "spec.md", "title": "No lockout."}]}),
        '{"findings": [{"severity": "high", "file": "spec.md", "claim": "No lockout.", "evidence": "a\nb"}]}',
        "1. **[HIGH]** No lockout.\n   File: spec.md\nREVIEW_FAILED",
        "- **High**: No lockout.\n  - File: `spec.md`",
        "* [P1] No lockout.\n  Location: spec.md",
        "### Finding 1: No lockout.\n\n- **Severity**: High\n- **File**: spec.md\n\nREVIEW_FAILED",
        "## Issue #2\n**Severity:** major\n**File:** `spec.md`\n**Claim:** No lockout.",
        "| # | Severity | File | Issue |\n|---|---|---|---|\n| 1 | High | spec.md | No lockout. |",
        "- [Severity: High] No lockout.\n  File: spec.md",
        "- 🔴 No lockout.\n  File: spec.md",
        "- Severity High - No lockout.\n  File: spec.md",
        "## High severity\n\n- No lockout.\n  File: spec.md",
        "**High**\n1. No lockout.\n   File: spec.md",
        '{"severity": "high", "file": "spec.md", "claim": "No lockout.", "evidence": "It says "never" there."}',
        r'{"severity": "high", "file": "spec.md", "claim": "No lockout.", "evidence": "re.match(\d+, C:\users)"}',
        '{"severity": "high", "path": "spec.md", "claim": "No lockout.", "status": "not fixed", "fixed": false}',
        json.dumps({"findings": [{**CLAIM, "id": "1"}]}) + "\n" + json.dumps({"findings": [{**CLAIM, "id": "2"}]}),
    ],
)
def test_odd_habits(text: str) -> None:
    assert ("high", "spec.md", "No lockout.") in [
        (severity, file.strip("`"), claim.strip()) for severity, file, claim in _read(text)
    ]
    assert read_review(text).verdict == "failed"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Critical", "critical"), ("BLOCKER", "critical"), ("p0", "critical"), ("major", "high"), ("Must fix", "high"),
        ("moderate", "medium"), ("P2", "medium"), ("minor", "low"), ("nit", "low"), ("low (wording)", "low"),
        ("", "high"), ("whatever", "high"), ("sev1", "critical"), ("S3", "medium"), ("low/medium", "medium"),
        ("medium to high", "high"), ("Must", "high"), ("Could be read by anybody", "high"), ("nice to have", "high"),
        ("minor: it is a matter of wording and nothing else", "low"),
    ],
)  # fmt: skip
def test_severities(said: str, meant: str) -> None:
    """What is not said counts as bad enough to be mended."""
    assert [severity for severity, _, _ in _read(json.dumps({**CLAIM, "severity": said}))] == [meant]


@pytest.mark.parametrize(
    ("impact", "severity"),
    [("An attacker could read any file", "high"), ("Critical", "critical"), ("Users should be told", "high")],
)
def test_what_a_fault_leads_to_is_no_severity(impact: str, severity: str) -> None:
    """Sentences are full of words that stand for severities, too."""
    text = json.dumps({"file": "spec.md", "claim": "No lockout.", "impact": impact})
    assert _read(text) == [(severity, "spec.md", "No lockout.")]


@pytest.mark.parametrize(
    "text",
    [
        "- Could not find any limit for uploads.",
        "- Low values crash it.",
        "- **Low values** crash it.",
        "- Note that nobody is locked out.",
        "1. Should a user fail three times, nothing says what happens.",
    ],
)
def test_a_sentence_that_begins_with_such_a_word_is_not_less_bad_for_it(text: str) -> None:
    assert _read(f"{text}\nREVIEW_FAILED") == [("high", "", text)]


def test_items_without_a_severity_belong_to_the_finding_before() -> None:
    text = "- [High] No lockout.\n- Could not find a limit either.\n\n# Strengths\n- It is short.\nREVIEW_FAILED"
    assert _read(text) == [("high", "", "No lockout.\nCould not find a limit either.")]


@pytest.mark.parametrize(
    "fields",
    [
        {"resolved": True},
        {"status": "resolved"},
        {"status": "Fixed ✅"},
        {"resolution": "addressed."},
        {"severity": "none"},
        {"severity": "Praise"},
    ],
)
def test_what_is_settled_or_praised_is_no_finding(fields: dict[str, object]) -> None:
    """Reviewers like to list what they found before, with what became of it."""
    settled = {**CLAIM, "id": "R1-1", **fields}
    assert _read(json.dumps({"findings": [settled, {**CLAIM, "claim": "No limit."}]})) == [
        ("high", "spec.md", "No limit.")
    ]


def test_of_ten_thousand_findings_the_worst_are_kept_and_the_verdict_is_seen() -> None:
    many = [{"severity": "low", "claim": f"Word {number} is odd."} for number in range(10_000)]
    many[900] = {"severity": "critical", "claim": "Anybody can log in."}
    review = read_review(f"{json.dumps({'findings': many})}\nREVIEW_FAILED")
    assert review.verdict == "failed"
    assert len(review.findings) == 100
    assert review.findings[0].claim == "Anybody can log in."
    assert read_review(f"{'It is fine. ' * 30_000}\nSPEC_VERIFIED").verdict == "passed"


@pytest.mark.parametrize(
    "text",
    [
        "SPEC_VERIFIED",
        "**spec_verified**",
        "Spec verified.",
        "All is settled.\n\n`SPEC-VERIFIED`\n",
        "All is settled. SPEC_VERIFIED",
        "```\nSPEC_VERIFIED\n```",
        "Verdict: SPEC_VERIFIED",
        '{"findings": []}\nSPEC_VERIFIED',
        '{"findings": [], "verdict": "SPEC_VERIFIED"}',
        "REVIEW_PASSED",
        "# SPEC_VERIFIED",
        "✅ **SPEC_VERIFIED**",
        "I ran nothing, but I read all of it.\n\nTests verified.",
        "CODE_VERIFIED\n\nThank you for the good work.",
    ],
)
def test_a_pass(text: str) -> None:
    assert read_review(text) == Review(verdict="passed", text=text.strip())


@pytest.mark.parametrize(
    "text",
    [
        "I cannot say SPEC_VERIFIED.",
        "It is spec_verified in my view",
        "Once that is mended, SPEC_VERIFIED would be right.",
        "> SPEC_VERIFIED",
        "SPEC_VERIFIED or REVIEW_FAILED?",
        "The reviewer ends with SPEC_VERIFIED\nwhen all is well.\nI am not there yet.\nMore tomorrow.\nBye.",
        json.dumps({"answer": "no", "quoted": "x\nSPEC_VERIFIED\n"}),
        "Looks fine to me.",
        "REVIEW_FAILED",
        "CODE_VERIFIED\n\nHowever, the login accepts any password.",
        "CODE_VERIFIED\n" + "\nThe login accepts any password." * 5,
        "SPEC_VERIFIED, once the limits are there",
        "❌ SPEC_VERIFIED",
        "~~SPEC_VERIFIED~~",
        "- [ ] SPEC_VERIFIED",
        "I wrote down what I saw.\nTests passed.",
    ],
)
def test_a_keyword_in_a_sentence_is_no_pass(text: str) -> None:
    assert read_review(text) == Review(verdict="unclear", text=text)


def test_where_both_verdicts_stand_it_failed() -> None:
    assert read_review("The limits are missing.\nREVIEW_FAILED\nSPEC_VERIFIED").verdict == "failed"


def test_a_pass_with_findings_keeps_them() -> None:
    """What weight they have is not for the parser to say."""
    review = read_review(f"{json.dumps(CLAIM)}\nSPEC_VERIFIED")
    assert (review.verdict, len(review.findings)) == ("passed", 1)


def test_complaints_that_cannot_be_told_apart_are_one_finding() -> None:
    assert _read("The limits are missing, and so are the errors.\n\n**REVIEW_FAILED**") == [
        ("high", "", "The limits are missing, and so are the errors.")
    ]


def test_words_around_an_empty_list_are_no_complaint() -> None:
    """In the adversarial round everybody has to end with the word that fails, who found nothing as well."""
    assert read_review('It is good work.\n{"findings": []}\nREVIEW_FAILED').verdict == "unclear"


def test_examples_of_a_document_are_no_findings() -> None:
    text = 'The answer {"error": {"message": "not found", "status": 404}} is shown with {"title": "A note"}.'
    assert read_review(text).findings == ()


def test_the_form_itself_is_no_finding() -> None:
    """Models repeat what they are asked for before they answer."""
    form = Prompts().fill("review_form", {"document": "spec.md"})
    assert read_review(form).findings == ()
    assert _read(f"{form}\n{json.dumps(CLAIM)}") == [("high", "spec.md", "No lockout.")]


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_nothing_is_empty(text: str) -> None:
    assert read_review(text) == Review(verdict="empty")


pieces = st.sampled_from(
    [
        "{", "}", "[", "]", '"', "'", "\\", "\n", ",", ":", "- ", "# ", "**", "|", "```", "high", "severity", "claim",
        "SPEC_VERIFIED", "REVIEW_FAILED", json.dumps(CLAIM), "1. ", ".", " ", "\u2028", "\x00", "é", "x.py",
    ]
)  # fmt: skip


@given(text=st.lists(pieces | st.text(max_size=5), max_size=60).map("".join))
@examples(300)
def test_any_text_is_read(text: str) -> None:
    """Nothing is raised; every finding says something; a review without a word is the only empty one."""
    review = read_review(text)
    assert (review.verdict == "empty") == (not text.strip())
    assert all(one.claim and one.severity in SEVERITIES for one in review.findings)
    assert not review.findings or review.verdict in ("passed", "failed")


@given(before=st.text(max_size=80).filter(lambda text: "{" not in text), count=st.integers(1, 5))
@examples(60)
def test_prose_before_the_json_hides_nothing(before: str, count: int) -> None:
    claims = [{**CLAIM, "claim": f"Claim {number}"} for number in range(count)]
    assert [claim for _, _, claim in _read(f"{before}\n{json.dumps({'findings': claims})}")] == [
        f"Claim {number}" for number in range(count)
    ]


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"',
        "{}",
        '"{',
        '{"a":',
        "[",
        "- high ",
        "- [high] a.",
        "{'a':",
        "|severity|",
        "#",
        "_",
        "\\",
        "1. ",
        "** ",
    ],
)
def test_what_repeats_without_end_takes_linear_time(piece: str) -> None:
    """Counted in seconds of the processor, of which each needs less than one."""
    import time

    begun = time.process_time()
    read_review(piece * (2 * TEXT_LIMIT // len(piece)))
    assert time.process_time() - begun < 30
