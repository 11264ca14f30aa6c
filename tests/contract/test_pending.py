"""Which runs the index entries may be wrong about is known before they can be."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.models.runs import Run
from mlcore.repos import document
from mlcore.repos.runs.core import marks
from tests.contract.api import pairs
from tests.contract.conftest import Store
from tests.contract.index_state import deliver
from tests.contract.streams import following


def since(store: Store, run_id: str) -> int | None:
    (item,) = [row for row in store.items() if row["SK"]["S"] == f"R#{run_id}"]
    return marks.since(Run.of(item))


def test_a_run_with_metrics_outside_is_marked_for_good(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its tags had left no room before: those need no mark."""
    monkeypatch.setattr(document, "INLINE_BYTES", 500)
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        api.post("runs/set-tag", run_id=run_id, key="a", value="v" * 400)
        api.post("runs/set-tag", run_id=run_id, key="b", value="v" * 400)
        api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1)
        api.end(run_id)
        deliver(stream.fresh())
        assert since(store, run_id) == marks.FOR_GOOD
        api.post("runs/log-metric", run_id=run_id, key="n", value=1, timestamp=1)
        assert since(store, run_id)
        deliver(stream.fresh())
        assert since(store, run_id) == marks.FOR_GOOD


def test_what_changes_nothing_writes_nothing(store: Store) -> None:
    """Nor what is refused, nor what is of no index: the run stays as the indexer left it."""
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        api.post("runs/log-parameter", run_id=run_id, key="p", value="v")
        api.end(run_id)
        deliver(stream.fresh())
        before = store.items()
        assert since(store, run_id) is None
        api.post("runs/log-parameter", run_id=run_id, key="p", value="v")
        assert (
            api.ask("POST", "runs/log-parameter", run_id=run_id, key="p", value="w").status == 400
        )
        batch = {"params": pairs({"p": "w"}), "tags": pairs({"t": "v"})}
        assert api.ask("POST", "runs/log-batch", run_id=run_id, **batch).status == 400
        assert store.items() == before
        api.post("runs/update", run_id=run_id, status="FAILED")
        assert since(store, run_id) is None
        api.post("runs/delete", run_id=run_id)
        answer = api.ask("POST", "runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1)
        assert answer.status == 400
        assert since(store, run_id) is None


def test_each_write_of_what_is_indexed_marks_its_run(store: Store) -> None:
    api = store.api
    dataset = {"name": "n", "digest": "d", "source_type": "s", "source": "u"}
    writes: dict[str, dict[str, Any]] = {
        "runs/log-metric": {"key": "m", "value": 1, "timestamp": 1},
        "runs/log-parameter": {"key": "p", "value": "v"},
        "runs/set-tag": {"key": "t", "value": "v"},
        "runs/delete-tag": {"key": "t"},
        "runs/update": {"run_name": "another"},
        "runs/log-inputs": {"datasets": [{"dataset": dataset}]},
    }
    with following(store) as stream:
        run_id = api.new_run()
        api.end(run_id)
        assert since(store, run_id) == 1
        deliver(stream.fresh())
        version = 2
        for path, fields in writes.items():
            assert since(store, run_id) is None
            api.post(path, run_id=run_id, **fields)
            version += 1
            assert since(store, run_id) == version
            deliver(stream.fresh())
