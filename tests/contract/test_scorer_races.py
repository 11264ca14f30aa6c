"""Versions of a scorer that are registered while the scorer is deleted."""

from __future__ import annotations

import itertools
import json
from functools import partial
from typing import Final

import pytest

from mlcore.repos.evaluation import scorers
from mlcore.repos.experiments import experiments
from tests.contract.conftest import Store
from tests.contract.evaluation_calls import ask
from tests.contract.interleaved_calls import Act, meetings

_TEXT: Final = json.dumps({"name": "s", "builtin_scorer_class": "Safety"})


@pytest.mark.parametrize("is_deletion_first", [True, False])
def test_a_scorer_that_remains_is_found_by_its_id(store: Store, is_deletion_first: bool) -> None:
    """Of a registration and a deletion at the same time either one may win; what remains is whole,
    and judges and guardrails find it."""
    made = store.api.post("experiments/create", name="scored")["experiment_id"]
    experiment = experiments.get(made, "default").experiment
    numbers = itertools.count()
    names: list[str] = []

    def prepare() -> tuple[Act, Act]:
        names.append(f"scorer {next(numbers)}")
        fields = {"experiment_id": made, "name": names[-1]}
        sent = {**fields, "serialized_scorer": _TEXT}
        registering = partial(ask, "POST", "scorers/register", sent)
        assert registering().status == 200
        deleting = partial(ask, "DELETE", "scorers/delete", fields)
        return (deleting, registering) if is_deletion_first else (registering, deleting)

    remaining = 0
    for answers in meetings(prepare):
        assert [answer.status for answer in answers] == [200, 200]
        latest = scorers.latest(experiment, names[-1])
        if latest is not None:
            remaining += 1
            assert latest in scorers.with_id(latest.scorer_id, "default")
    assert remaining
