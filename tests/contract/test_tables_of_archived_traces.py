"""Archived traces in the system tables: their rows stay, until a request deletes the trace. Then
rows and files go, whatever else has a trace of the same experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlcore.entities.workspaces import Workspace
from mlcore.repos.workspaces import workspaces
from tests.contract.archived_traces import archiving, files_of, is_archived, tick, told
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import tell

__all__ = ["archiving", "tables"]

NAMES = ("traces", "spans", "assessments")


def _judge(trace: str) -> None:
    assessment = {
        "assessment_name": "good",
        "source": {"source_type": "HUMAN", "source_id": "ann"},
        "feedback": {"value": True},
    }
    tell("POST", f"3.0/traces/tr-{trace}/assessments", {"assessment": assessment})


def _counts(tables: Tables, trace: str, readable: list[str] | None) -> list[int]:
    return tables.counts(
        [
            f"SELECT count(*) FROM system.mlflow.{name} WHERE trace_id = 'tr-{trace}'"
            for name in NAMES
        ],
        readable,
    )


@pytest.mark.parametrize("is_published_first", [True, False])
def test_a_deleted_archived_trace_has_neither_rows_nor_files(
    store: Store, tables: Tables, tmp_path: Path, archiving: None, is_published_first: bool
) -> None:
    workspaces.create(Workspace("team", None))
    folder = tmp_path / "artifacts"
    experiment = store.api.new_experiment("e")
    gone, kept = told(experiment), told(experiment)
    for trace in (gone, kept):
        _judge(trace)
    if is_published_first:
        tables.follow()
    tick()
    assert is_archived(gone)
    assert is_archived(kept)
    tables.follow()
    whole = _counts(tables, kept, None)
    assert whole[0] == 1
    assert min(whole[1:]) > 1
    assert _counts(tables, gone, ["default"]) == whole
    assert _counts(tables, gone, ["team"]) == [0, 0, 0]
    files = files_of(folder, gone)
    assert files
    body = {"experiment_id": experiment, "request_ids": [f"tr-{gone}"]}
    assert tell("POST", "3.0/traces/delete-traces", body) == {"traces_deleted": 1}
    assert tell("POST", "3.0/traces/delete-traces", body) == {"traces_deleted": 0}
    assert files_of(folder, gone) == []
    tables.follow()
    for readable in (None, ["default"], ["team"]):
        assert _counts(tables, gone, readable) == [0, 0, 0]
    for name in NAMES:
        assert f"tr-{gone}" not in str(tables.rows(name))
    assert _counts(tables, kept, ["default"]) == whole
    assert files_of(folder, kept)
