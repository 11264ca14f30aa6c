"""Two requests move the same run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from indexer.history import history_packing
from mlcore.db.table import table
from mlcore.repos import document
from tests.contract.conftest import Store
from tests.contract.run_moves import (
    METRICS,
    experiments,
    files,
    follow,
    found_in,
    move,
    removed,
    seen,
    stream,
)
from tests.contract.streams import Stream

__all__ = ["files", "removed", "stream"]


def test_two_who_move_a_run(
    shared_store: Store, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each request of the first one, the second one moves it, and the indexer follows; then
    the run gets more points. None is lost."""
    store = shared_store
    monkeypatch.setattr(history_packing, "FILE_POINTS", 3)
    monkeypatch.setattr(history_packing, "FEW_KEYS", 0)
    monkeypatch.setattr(document, "INLINE_BYTES", 60)
    original = table._call
    for at in itertools.count():
        stream.fresh()
        source, target = experiments(store)
        run_id = store.api.new_run(source)
        texts = [{"key": f"p{number}", "value": "v" * 50} for number in range(3)]
        store.api.post("runs/log-batch", run_id=run_id, params=texts)
        for step in range(4):
            log_step(store, run_id, step)
        if at % 2:
            follow(stream)
        numbers = itertools.count()
        before = dict[str, Any]()

        def meet(
            target: str = target, run_id: str = run_id, before: dict[str, Any] = before
        ) -> None:
            assert move(target, run_id).status == 200
            follow(stream)
            log_step(store, run_id, 9)
            store.api.end(run_id)
            follow(stream)
            before.update(seen(store, run_id))

        def call(
            operation: str,
            at: int = at,
            numbers: Any = numbers,
            meet: Callable[[], None] = meet,
            **more: Any,
        ) -> Any:
            if next(numbers) == at:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(table, "_call", original)
                    meet()
            return original(operation, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "_call", call)
            assert move(target, run_id).status == 200
        if not before:
            assert at > 8
            return
        assert seen(store, run_id) == before, at
        follow(stream)
        assert seen(store, run_id) == before, at
        assert (found_in(store, source), found_in(store, target)) == (set(), {run_id})
        assert store.items_of(source, run_id) == []


def log_step(store: Store, run_id: str, step: int) -> None:
    points = [{"key": key, "value": step, "timestamp": 1, "step": step} for key in METRICS]
    store.api.post("runs/log-batch", run_id=run_id, metrics=points)
