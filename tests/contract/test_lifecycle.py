"""Stages of runs in experiments that are deleted and restored, against a model of MLflow."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.contract.conftest import EXAMPLES, Store

ACTIVE, DELETED = "active", "deleted"

_names = itertools.count()
PICK = st.integers(0, 5)


class Lifecycle(RuleBasedStateMachine):
    """MLflow rewrites the stage of every run when their experiment is deleted or restored."""

    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.api = self.store.api
        self.experiment_id = self.api.new_experiment(f"lifecycle {next(_names)}")
        self.stage = ACTIVE
        self.runs: dict[str, str] = {}

    def pick(self, number: int) -> str:
        return list(self.runs)[number % len(self.runs)]

    @precondition(lambda self: len(self.runs) < 5)
    @rule(start=st.integers(0, 2))
    def create_run(self, start: int) -> None:
        answer = self.api.ask(
            "POST", "runs/create", experiment_id=self.experiment_id, start_time=start
        )
        if self.stage == ACTIVE:
            self.runs[answer.body["run"]["info"]["run_id"]] = ACTIVE
        else:
            assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")

    @rule()
    def delete_experiment(self) -> None:
        self._move("delete", ACTIVE, DELETED)

    @rule()
    def restore_experiment(self) -> None:
        self._move("restore", DELETED, ACTIVE)

    def _move(self, verb: str, source: str, target: str) -> None:
        answer = self.api.ask("POST", f"experiments/{verb}", experiment_id=self.experiment_id)
        if self.stage == source:
            assert answer.status == 200
            self.stage = target
            self.runs = dict.fromkeys(self.runs, target)
        else:
            assert (answer.status, answer.code) == (404, "RESOURCE_DOES_NOT_EXIST")

    @precondition(lambda self: self.runs)
    @rule(number=PICK, verb=st.sampled_from(["delete", "restore"]))
    def move_run(self, number: int, verb: str) -> None:
        run_id = self.pick(number)
        self.api.post(f"runs/{verb}", run_id=run_id)
        self.runs[run_id] = DELETED if verb == "delete" else ACTIVE

    @precondition(lambda self: self.runs)
    @rule(
        number=PICK,
        request=st.sampled_from(
            [
                ("log-metric", {"key": "m", "value": 1, "timestamp": 1}),
                ("log-parameter", {"key": "p", "value": "v"}),
                ("log-batch", {"metrics": [{"key": "m", "value": 2, "timestamp": 2}]}),
                ("set-tag", {"key": "t", "value": "v"}),
                ("update", {"status": "FINISHED"}),
                ("outputs", {"models": [{"model_id": "m"}]}),
                ("log-inputs", {"models": [{"model_id": "m"}]}),
            ]
        ),
    )
    def write_run(self, number: int, request: tuple[str, dict[str, Any]]) -> None:
        run_id = self.pick(number)
        path, fields = request
        before = self.api.run(run_id)
        answer = self.api.ask("POST", f"runs/{path}", run_id=run_id, **fields)
        if self.runs[run_id] == ACTIVE:
            assert answer.status == 200, (path, answer)
        else:
            assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE"), path
            assert self.api.run(run_id) == before
            assert self.api.history(run_id, "m") == self.history.get(run_id, [])
        self.history[run_id] = self.api.history(run_id, "m")

    @property
    def history(self) -> dict[str, list[Any]]:
        return self.__dict__.setdefault("_history", {})

    @precondition(lambda self: self.stage == DELETED)
    @rule()
    def write_deleted_experiment(self) -> None:
        answer = self.api.ask(
            "POST",
            "experiments/set-experiment-tag",
            experiment_id=self.experiment_id,
            key="k",
            value="v",
        )
        assert answer.status == 400
        answer = self.api.ask(
            "POST", "experiments/update", experiment_id=self.experiment_id, new_name="other"
        )
        assert answer.status == 400

    @invariant()
    def stages_are_the_models(self) -> None:
        experiment = self.api.get("experiments/get", experiment_id=self.experiment_id)["experiment"]
        assert experiment["lifecycle_stage"] == self.stage
        for run_id, stage in self.runs.items():
            assert self.api.run(run_id)["info"]["lifecycle_stage"] == stage
        for view, stages in (
            ("ACTIVE_ONLY", {ACTIVE}),
            ("DELETED_ONLY", {DELETED}),
            ("ALL", {ACTIVE, DELETED}),
        ):
            for order in ([], ["attributes.run_id ASC"]):
                listed = self.api.post(
                    "runs/search",
                    experiment_ids=[self.experiment_id],
                    run_view_type=view,
                    order_by=order,
                ).get("runs", [])
                assert {
                    run["info"]["run_id"]: run["info"]["lifecycle_stage"] for run in listed
                } == {run_id: stage for run_id, stage in self.runs.items() if stage in stages}


def test_stages(shared_store: Store) -> None:
    class OnThisStore(Lifecycle):
        store = shared_store

    run_state_machine_as_test(
        OnThisStore,
        settings=settings(
            max_examples=12 * EXAMPLES, stateful_step_count=15, deadline=None, database=None
        ),
    )


def test_a_deleted_experiment_keeps_its_name(shared_store: Store) -> None:
    api = shared_store.api
    experiment_id = api.new_experiment("kept")
    api.post("experiments/delete", experiment_id=experiment_id)
    answer = api.ask("POST", "experiments/create", name="kept")
    assert answer.code == "RESOURCE_ALREADY_EXISTS"
    assert "deleted state" in answer.body["message"]
    experiment = api.get("experiments/get-by-name", experiment_name="kept")["experiment"]
    assert experiment["lifecycle_stage"] == DELETED


@pytest.mark.parametrize("verb", ["delete", "restore"])
def test_experiments_that_are_not_there(shared_store: Store, verb: str) -> None:
    answer = shared_store.api.ask("POST", f"experiments/{verb}", experiment_id="123456")
    assert answer.code == "RESOURCE_DOES_NOT_EXIST"
