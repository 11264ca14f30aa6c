"""Which runs the index entries may be wrong about is known before they can be."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore import ids
from mlcore.repos import document
from mlcore.repos.runs import markers as run_markers
from mlcore.repos.runs import runs
from tests.contract.api import pairs
from tests.contract.conftest import Store


def test_a_run_with_metrics_outside_is_pending_for_good(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its tags had left no room before: those need no marker."""
    monkeypatch.setattr(document, "INLINE_BYTES", 500)
    api = store.api
    run_id = api.new_run()
    api.post("runs/set-tag", run_id=run_id, key="a", value="v" * 400)
    api.post("runs/set-tag", run_id=run_id, key="b", value="v" * 400)
    api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1)
    markers = [item for item in store.items() if item["type"]["S"] == "pending"]
    assert {item["entity_id"]["S"] for item in markers} == {run_id}
    assert "overflow" in {item["write_id"]["S"] for item in markers}


def test_what_nothing_was_sent_for_leaves_no_marker(store: Store) -> None:
    api = store.api
    run_id = api.new_run()
    api.post("runs/log-parameter", run_id=run_id, key="p", value="v")
    before = store.items()
    api.post("runs/log-parameter", run_id=run_id, key="p", value="v")
    assert api.ask("POST", "runs/log-parameter", run_id=run_id, key="p", value="w").status == 400
    batch = {"params": pairs({"p": "w"}), "tags": pairs({"t": "v"})}
    assert api.ask("POST", "runs/log-batch", run_id=run_id, **batch).status == 400
    assert len(store.items()) == len(before)
    api.post("runs/delete", run_id=run_id)
    deleted = store.items()
    answer = api.ask("POST", "runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1)
    assert answer.status == 400
    assert len(store.items()) == len(deleted)


def test_a_write_that_slept_is_announced_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its marker was taken for abandoned meanwhile."""
    api = store.api
    run_id = api.new_run()
    decide = runs._decided

    def slept(*arguments: Any) -> Any:
        for item in store.items():
            if item["type"]["S"] == "pending":
                store.direct.delete_item(
                    TableName=store.table, Key={"PK": item["PK"], "SK": item["SK"]}
                )
        later = ids.now_ms() + run_markers.RENEWED_MS + 1
        monkeypatch.setattr(run_markers, "now_ms", lambda: later)
        return decide(*arguments)

    monkeypatch.setattr(runs, "_decided", slept)
    api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1)
    markers = [item for item in store.items() if item["type"]["S"] == "pending"]
    assert [item["entity_id"]["S"] for item in markers] == [run_id]
