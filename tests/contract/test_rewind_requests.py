"""Requests to rewind a run: what is refused, and who may."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from runs import app
from runs import messages as m
from tests.contract.conftest import Store
from tests.contract.logins import called_as, named
from tests.contract.rewind_requests import ROUTE, rewind, trained


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"after_step": None}, 400),
        ({"delete_all": False}, 400),
        ({"after_step": 1, "delete_all": True}, 400),
        ({"after_step": "x"}, 400),
        ({"after_step": 2**63}, 400),
        ({"after_step": [1]}, 400),
        ({"after_step": 1, "afterStep": 2}, 400),
        ({"delete_all": "yes"}, 400),
        ({"delete_all": True, "metric_keys": []}, 400),
        ({"delete_all": True, "metric_keys": "loss"}, 400),
        ({"delete_all": True, "metric_keys": [None]}, 400),
        ({"delete_all": True, "metric_keys": ["k"] * (m.MAX_REWOUND_METRICS + 1)}, 400),
        ({"delete_all": True, "metric_keys": [f"{n}" * 200 for n in range(10, 99)]}, 400),
        ({"delete_all": True, "run_id": "0" * 26}, 404),
        ({"delete_all": True, "run_id": None}, 400),
    ],
)
def test_a_bad_request_deletes_nothing(store: Store, fields: dict[str, Any], status: int) -> None:
    _, run_id = trained(store, 2)
    before = store.items()
    answer = rewind(**{"run_id": run_id, **fields})
    assert answer.status == status, answer.body
    assert store.items() == before


def test_a_deleted_run_is_not_rewound(store: Store) -> None:
    _, run_id = trained(store, 2)
    store.api.post("runs/delete", run_id=run_id)
    before = store.items()
    assert rewind(run_id, delete_all=True).status == 400
    assert store.items() == before


@pytest.mark.parametrize("level", ["", "READ", "EDIT"])
def test_only_those_who_may_update_the_run_rewind_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """A run that the caller may not update and one that does not exist get the same answer."""
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    own, own_run = trained(store, 3)
    other, other_run = trained(store, 3)
    name = f"ben {level}"
    users.create(name, "", is_admin=False)
    grants.put(users.get(name), "default", Grant(EXPERIMENT, own, "EDIT"))
    if level:
        grants.put(users.get(name), "default", Grant(EXPERIMENT, other, level))
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(app.RPCS)

    def as_ben(text: str) -> tuple[int, str]:
        return called_as(named(name), handler, "POST", ROUTE, text)

    before = store.items()
    for text in (
        json.dumps({"run_id": other_run, "after_step": 1}),
        json.dumps({"runId": other_run, "deleteAll": True}),
        f'{{"run_id":"{own_run}","run_id":"{other_run}","after_step":1}}',
        json.dumps({"run_id": other_run}),
    ):
        answer = as_ben(text)
        if level == "EDIT":
            assert answer[0] in (200, 400), answer
        else:
            assert answer[0] == 403
            assert answer == as_ben(text.replace(other_run, "0" * 26)), text
            assert store.items() == before
    both = f'{{"run_id":"{own_run}","runId":"{other_run}","after_step":1}}'
    assert as_ben(both)[0] in (400, 403)
    assert as_ben(json.dumps({"run_id": own_run, "after_step": 1}))[0] == 200
