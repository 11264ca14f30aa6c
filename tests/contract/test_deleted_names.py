"""The name of a label schema or a review queue is free again after a deletion, also if a change of
the name met the deletion."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import app
from tests.contract.api import Answer, called
from tests.contract.conftest import Store, examples
from tests.contract.interleaved_calls import interleaved

Fields = dict[str, Any]

NUMERIC = {"numeric": {"min_value": 0, "max_value": 1}}
SCHEMA = {"type": "FEEDBACK", "input": NUMERIC}
KINDS = [
    ("label-schemas", ("PATCH", "DELETE"), "schema_id", "label_schema", SCHEMA),
    ("review-queues", ("POST", "POST"), "queue_id", "review_queue", {"queue_type": "CUSTOM"}),
]

_experiments = itertools.count()


def sent(method: str, path: str, body: Fields) -> Answer:
    return called(app.handler, method, f"/api/3.0/mlflow/{path}", body)


@examples(30)
@given(order=st.lists(st.integers(0, 1), max_size=30))
@pytest.mark.parametrize(("kind", "methods", "id_name", "noun", "fields"), KINDS)
def test_names_are_free_after_a_deletion_that_met_a_rename(
    shared_store: Store,
    kind: str,
    methods: tuple[str, str],
    id_name: str,
    noun: str,
    fields: Fields,
    order: list[int],
) -> None:
    experiment_id = shared_store.api.new_experiment(f"names {next(_experiments)}")

    def create(name: str) -> Answer:
        return sent(
            "POST", f"{kind}/create", {"experiment_id": experiment_id, "name": name, **fields}
        )

    made = create("old").body[noun]
    renamed, deleted = interleaved(
        order,
        [
            lambda: sent(methods[0], f"{kind}/update", {id_name: made[id_name], "name": "new"}),
            lambda: sent(methods[1], f"{kind}/delete", {id_name: made[id_name]}),
        ],
    )
    assert renamed.status in (200, 404)
    assert deleted.status == 200
    assert [create(name).status for name in ("old", "new")] == [200, 200]
