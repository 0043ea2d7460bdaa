"""Fitting documents into what a prompt leaves of the window."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from marvin_core.conversation.documents import DOCUMENT_LIMIT, Document, fitted

SIZES = st.sampled_from([1, 300, 999, 1_000, 1_001, 5_000, DOCUMENT_LIMIT, DOCUMENT_LIMIT + 1, 100_000])


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    binding = draw(st.integers(0, 4))
    sizes = draw(st.lists(SIZES, max_size=7))
    return [
        Document(name=f"d{number}", heading="#", text="x" * size, binding=number < binding)
        for number, size in enumerate(sizes)
    ]


@given(documents(), st.integers(-5_000, 60_000))
def test_what_is_kept_fits_and_what_went_went_in_order(given_documents: list[Document], room: int) -> None:
    fit = fitted(given_documents, room)
    assert sum(fit.limits.values()) <= max(room, 0)
    assert {*fit.limits, *fit.left_out} == {document.name for document in given_documents}
    assert not {*fit.limits} & {*fit.left_out}
    by_name = {document.name: document for document in given_documents}
    assert fit.shortened == tuple(name for name in fit.limits if fit.limits[name] < by_name[name].size)
    assert all(fit.limits[name] >= 1_000 for name in fit.shortened)
    order = [document.name for document in reversed(given_documents) if not document.binding]
    order += [document.name for document in given_documents if document.binding]
    assert list(fit.left_out) == order[: len(fit.left_out)]
    if any(by_name[name].binding for name in fit.shortened):
        assert all(by_name[name].binding for name in fit.limits), "instructions are the last to become shorter"


@given(documents())
def test_with_room_all_of_them_are_whole(given_documents: list[Document]) -> None:
    fit = fitted(given_documents, 1_000_000)
    assert (fit.shortened, fit.left_out) == ((), ())
    assert all(fit.limits[document.name] == document.size for document in given_documents)


def test_a_cut_says_how_much_is_missing_and_where_it_is() -> None:
    document = Document(name="AGENTS.md", heading="# Rules", text="x" * 9_234, binding=True)
    assert document.shown().endswith("x\n[... 1,234 more characters; read AGENTS.md to see them]")
