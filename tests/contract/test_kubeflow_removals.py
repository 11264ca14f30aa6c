"""Kubeflow's experiments that are deleted while MLflow's clients rename them."""

from __future__ import annotations

import itertools
from typing import Any

from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.kubeflow import experiments
from tests.contract.conftest import Store
from tests.contract.interleaved_calls import Act, meetings


def test_a_name_is_free_after_its_experiment(store: Store) -> None:
    numbers = itertools.count()
    made: list[tuple[str, str]] = []

    def prepare() -> tuple[Act, Act]:
        name = f"name {next(numbers)}"
        experiment_id = store.api.new_experiment(name)
        made.append((name, experiment_id))

        def remove() -> Any:
            retry_on_conflict(
                "experiment",
                lambda: experiments.delete(experiments.get(int(experiment_id), "default")),
            )

        def rename() -> Any:
            fields = {"experiment_id": experiment_id, "new_name": f"new {name}"}
            return store.api.post("experiments/update", **fields)

        return remove, rename

    for removed, _ in meetings(prepare):
        assert removed is None
        name, _ = made[-1]
        for free in (name, f"new {name}"):
            store.api.new_experiment(free)
    assert len(made) > 2
