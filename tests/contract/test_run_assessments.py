"""Assessments that a run made are deleted with the run, wherever they are and however they came."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.ids import now_ms
from mlcore.repos.traces import run_assessments
from tests.contract.api import Api
from tests.contract.conftest import Store, enable_workspaces, examples
from tests.contract.trace_calls import ask, info, start, tell

SOURCE = "mlflow.assessment.sourceRunId"
RUNS, TRACES = 3, 2

_assessment = st.tuples(
    st.integers(0, TRACES - 1), st.none() | st.integers(0, RUNS - 1), st.booleans()
)


def _given(run_id: str | None) -> dict[str, Any]:
    return {
        "assessment_id": f"a-{uuid4().hex}",
        "assessment_name": "n",
        "source": {"source_type": "CODE", "source_id": "c"},
        "feedback": {"value": 1},
        "metadata": {} if run_id is None else {SOURCE: run_id},
    }


def _stored(trace_id: str) -> set[str]:
    return {each["assessment_id"] for each in info(trace_id).get("assessments", ())}


@examples(20)
@given(st.lists(_assessment, max_size=8), st.sets(st.integers(0, RUNS - 1)))
def test_those_of_deleted_runs_and_no_others(
    shared_store: Store, made: list[tuple[int, int | None, bool]], deleted: set[int]
) -> None:
    run_ids = [shared_store.api.new_run() for _ in range(RUNS)]
    trace_ids = [f"tr-{uuid4().hex}" for _ in range(TRACES)]
    for trace_id in trace_ids:
        tell("POST", "3.0/traces", start("0", trace_id))
    kept: dict[str, set[str]] = {trace_id: set() for trace_id in trace_ids}
    for at, number, with_trace in made:
        trace_id = trace_ids[at]
        assessment = _given(None if number is None else run_ids[number])
        if with_trace:
            tell("POST", "3.0/traces", start("0", trace_id, assessments=[assessment]))
        else:
            tell("POST", f"3.0/traces/{trace_id}/assessments", {"assessment": assessment})
        if number not in deleted:
            kept[trace_id].add(assessment["assessment_id"])
    for number in sorted(deleted) * 2:
        shared_store.api.post("runs/delete", run_id=run_ids[number])
    for number in deleted:
        shared_store.api.post("runs/restore", run_id=run_ids[number])
    assert {trace_id: _stored(trace_id) for trace_id in trace_ids} == kept


def test_records_stay_while_their_assessments_may_not_be_stored_yet(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id, trace_id = store.api.new_run(), f"tr-{uuid4().hex}"
    tell("POST", "3.0/traces", start("0", trace_id, assessments=[_given(run_id)]))
    for is_old in (False, True):
        later = now_ms() + 61_000 * is_old
        monkeypatch.setattr(run_assessments, "now_ms", lambda: later)  # noqa: B023 -- used at once
        store.api.post("runs/delete", run_id=run_id)
        assert bool(run_assessments.assessed_traces(run_id)) != is_old
        assert not _stored(trace_id)


def test_an_update_hands_no_assessment_to_a_run(store: Store) -> None:
    """Otherwise whoever may change an assessment, and delete a run, could delete the assessment."""
    run_ids = [store.api.new_run() for _ in range(2)]
    trace_id, assessment = f"tr-{uuid4().hex}", _given(run_ids[0])
    tell("POST", "3.0/traces", start("0", trace_id, assessments=[assessment]))
    path = f"3.0/traces/{trace_id}/assessments/{assessment['assessment_id']}"
    changes = {"metadata": {SOURCE: run_ids[1]}}
    tell("PATCH", path, {"assessment": changes, "update_mask": "metadata"})
    store.api.post("runs/delete", run_id=run_ids[1])
    assert _stored(trace_id)
    store.api.post("runs/delete", run_id=run_ids[0])
    assert not _stored(trace_id)


def test_traces_of_another_workspace_stay_as_they_are(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "other")
    run_id, trace_id = store.api.new_run(), f"tr-{uuid4().hex}"
    experiment_id = Api("other").new_experiment("judged")
    there = {"x-mlflow-workspace": "other"}
    body = start(experiment_id, trace_id, assessments=[_given(run_id)])
    made = ask("POST", "3.0/traces", body, there).body
    store.api.post("runs/delete", run_id=run_id)
    kept = ask("GET", f"3.0/traces/{trace_id}", None, there).body
    assert kept["trace"]["trace_info"]["assessments"]
    assert kept == made
