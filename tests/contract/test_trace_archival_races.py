"""Exports, deletions and passes of the archival at once."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.repos.traces import archival, span_packs, traces
from mlcore.repos.traces.archival import ArchivalOutcome
from tests.contract.archived_traces import (
    archiving,
    files,
    is_archived,
    packs_of,
    stored,
    told,
)
from tests.contract.conftest import Store, examples, forget
from tests.contract.interleaved_calls import interleaved
from tests.contract.trace_calls import (
    Fields,
    ask,
    export,
    info,
    span,
    whole,
)
from tests.contract.trace_story import new_trace, story

__all__ = ["archiving", "files"]

pytestmark = pytest.mark.usefixtures("files")


@examples(40)
@given(data=st.data())
def test_spans_and_deletions_win(shared_store: Store, data: st.DataObject) -> None:
    trace = new_trace()
    assert export("0", story(trace)[:2]).status == 200
    expected = {1, 2}
    answered: dict[int, int] = {}

    def exported(number: int) -> Callable[[], None]:
        def act() -> None:
            answered[number] = export("0", [span(trace, number, 1)]).status

        return act

    def deleted() -> None:
        body = {"experiment_id": "0", "request_ids": [f"tr-{trace}"]}
        assert ask("POST", "3.0/traces/delete-traces", body).status == 200

    def archived() -> None:
        if (stored_trace := traces.find(f"tr-{trace}", DEFAULT_WORKSPACE)) is not None:
            archival.archive(stored_trace)

    steps: list[Callable[[], None]] = [archived, archived, exported(8), exported(9)]
    is_deleted = data.draw(st.booleans())
    if is_deleted:
        steps = [archived, deleted]
    order = data.draw(st.lists(st.integers(0, 3), max_size=40))
    interleaved(order, steps, after=forget)
    if is_deleted:
        assert ask("GET", f"3.0/traces/tr-{trace}").status == 404
        assert not packs_of(shared_store, trace)
        return
    expected |= {number for number, status in answered.items() if status == 200}
    assert set(answered.values()) <= {200, 400}
    span_ids = {int(line["span_id"], 16) for line in _lines(trace)}
    assert span_ids >= expected
    if is_archived(trace):
        assert all("data" not in item for item in packs_of(shared_store, trace))
    else:
        assert "mlflow.trace.archiveLocation" not in info(f"tr-{trace}")["tags"]
    archived()
    assert {int(line["span_id"], 16) for line in _lines(trace)} == span_ids


def test_an_export_while_spans_move(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = told("0")
    move = span_packs.move_to_files

    def meanwhile(owner: span_packs.Owner) -> bool:
        moved = move(owner)
        assert export("0", [span(trace, 8, 1)]).status == 200
        return moved

    monkeypatch.setattr(span_packs, "move_to_files", meanwhile)
    assert archival.archive(stored(trace)) is ArchivalOutcome.LATER
    assert not is_archived(trace)
    monkeypatch.setattr(span_packs, "move_to_files", move)
    assert archival.archive(stored(trace)) is ArchivalOutcome.ARCHIVED
    assert len(_lines(trace)) == 7
    assert all("data" not in item for item in packs_of(store, trace))


def test_an_export_that_read_the_trace_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pack comes after the others were moved, and its trace is archived by then: the export is
    kept, and the trace is in the store again."""
    trace = told("0")
    put = span_packs.put

    def meanwhile(owner: span_packs.Owner, packs: list[span_packs.Pack]) -> None:
        monkeypatch.setattr(span_packs, "put", put)
        assert archival.archive(stored(trace)) is ArchivalOutcome.ARCHIVED
        put(owner, packs)

    monkeypatch.setattr(span_packs, "put", meanwhile)
    assert export("0", [span(trace, 8, 1)]).status == 200
    assert not is_archived(trace)
    assert "mlflow.trace.archiveLocation" not in info(f"tr-{trace}")["tags"]
    assert len(_lines(trace)) == 7
    assert archival.archive(stored(trace)) is ArchivalOutcome.ARCHIVED
    assert len(_lines(trace)) == 7


def _lines(trace: str) -> list[Fields]:
    return [
        {"span_id": base64.b64decode(stored_span["span_id"]).hex()}
        for stored_span in whole(f"tr-{trace}")["spans"]
    ]
