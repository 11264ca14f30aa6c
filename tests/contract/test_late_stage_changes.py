"""A request that deletes or restores a run, and that DynamoDB executes late or again, changes
nothing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Table, table
from tests.contract.conftest import Store

TURNS = ("delete", "restore")
OPPOSITE = {"delete": "restore", "restore": "delete"}
STAGE = {"delete": "deleted", "restore": "active"}

_names = itertools.count()


def _stage(store: Store, run_id: str) -> str:
    return str(store.api.get("runs/get", run_id=run_id)["run"]["info"]["lifecycle_stage"])


def _new_run(store: Store, verb: str) -> str:
    """A run to which ``verb`` can be applied."""
    run_id = store.api.new_run(store.api.new_experiment(f"late stages {next(_names)}"))
    if verb == "restore":
        store.api.post("runs/delete", run_id=run_id)
    return run_id


@pytest.mark.parametrize("verb", TURNS)
@pytest.mark.parametrize("more_turns", [0, 1, 2])
def test_a_late_execution_changes_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, verb: str, more_turns: int
) -> None:
    """The update is executed again after others moved the stage, even back to what was read."""
    run_id = _new_run(store, verb)
    updates: list[tuple[Any, ...]] = []
    execute = Table.update

    def recorded(self: Table, *sent: Any, **named: Any) -> Any:
        updates.append(sent)
        return execute(self, *sent, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Table, "update", recorded)
        store.api.post(f"runs/{verb}", run_id=run_id)
    [late] = updates
    last = verb
    for _ in range(more_turns):
        last = OPPOSITE[last]
        store.api.post(f"runs/{last}", run_id=run_id)
    before = store.items()
    with pytest.raises(ConditionFailed):
        table.update(*late)
    assert store.items() == before
    assert _stage(store, run_id) == STAGE[last]


@pytest.mark.parametrize("verb", TURNS)
@pytest.mark.parametrize("first", TURNS)
def test_who_comes_between_forbids_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, verb: str, first: str
) -> None:
    """Another process deletes or restores the run after it was read: the request succeeds."""
    run_id = _new_run(store, verb)
    execute = Table.update
    pending = [first]

    def after_others(self: Table, *sent: Any, **named: Any) -> Any:
        if pending:
            store.api.post(f"runs/{pending.pop()}", run_id=run_id)
        return execute(self, *sent, **named)

    monkeypatch.setattr(Table, "update", after_others)
    store.api.post(f"runs/{verb}", run_id=run_id)
    assert not pending
    assert _stage(store, run_id) == STAGE[verb]
