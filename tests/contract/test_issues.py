"""Issues under concurrency, their pages while rows come and go, and who may do what with them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

import evaluation.app
from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from tests.contract.api import Answer
from tests.contract.conftest import Store
from tests.contract.evaluation_calls import ask, sent
from tests.contract.logins import called_as, named
from tests.contract.threads import at_once


def new_issue(experiment_id: str, name: str = "slow", **fields: Any) -> Answer:
    return ask(
        "POST",
        "issues",
        {"experiment_id": experiment_id, "name": name, "description": "d", **fields},
    )


def test_one_of_many_creators_of_an_id_wins(store: Store) -> None:
    experiments = [store.api.new_experiment(f"e{number}") for number in range(2)]
    answers = at_once(
        8, lambda number: new_issue(experiments[number % 2], f"n{number}", issue_id="iss-one")
    )
    assert sorted(answer.status for answer in answers) == [200] + [400] * 7
    assert {answer.code for answer in answers if answer.status == 400} == {
        "RESOURCE_ALREADY_EXISTS"
    }
    (made,) = [answer.body["issue"] for answer in answers if answer.status == 200]
    assert sent("GET", "issues/iss-one")["issue"] == made
    seen = [sent("POST", "issues/search", {"experiment_id": e}).get("issues") for e in experiments]
    assert [rows for rows in seen if rows] == [[made]]


def test_concurrent_changes_of_metadata_all_stay(store: Store) -> None:
    experiment = store.api.new_experiment("e")
    new_issue(experiment, issue_id="iss-one", metadata={"old": "1"}, last_seen_timestamp=5)

    def change(number: int) -> int:
        fields = {"metadata": {f"k{number}": "v"}, "last_seen_timestamp": 10 + number}
        return ask("PATCH", "issues/iss-one", {"issue_id": "iss-one", **fields}).status

    assert at_once(6, change) == [200] * 6
    issue = sent("GET", "issues/iss-one")["issue"]
    assert issue["metadata"] == {"old": "1", **{f"k{number}": "v" for number in range(6)}}
    assert issue["last_seen_timestamp"] == 15


def test_pages_while_issues_come(store: Store) -> None:
    """An issue that is made before the last row of a page shifts nothing."""
    experiment = store.api.new_experiment("e")
    for name in "bdfhjl":
        new_issue(experiment, name)
    body: dict[str, Any] = {
        "experiment_id": experiment,
        "order_by": ["name"],
        "max_results": 2,
        "include_total_count": True,
    }
    seen, totals, news = [], [], iter("aceg")
    while True:
        page = sent("POST", "issues/search", body)
        seen += [issue["name"] for issue in page["issues"]]
        totals.append(page["total_count"])
        new_issue(experiment, next(news))
        body["page_token"] = page["next_page_token"]
        if not body["page_token"]:
            break
    assert "".join(seen) == "bdfhjl"
    assert totals == [6, 7, 8]


def test_metadata_have_room_in_an_item(store: Store) -> None:
    experiment = store.api.new_experiment("e")
    entry = "v" * 60_000
    assert (
        new_issue(experiment, issue_id="iss-l", metadata=dict.fromkeys("abcd", entry)).status == 200
    )
    refused = new_issue(experiment, metadata=dict.fromkeys("abcdef", entry))
    assert refused.status == 400
    fields = {"issue_id": "iss-l", "metadata": dict.fromkeys("efgh", entry)}
    assert ask("PATCH", "issues/iss-l", fields).status == 400
    assert len(sent("GET", "issues/iss-l")["issue"]["metadata"]) == 4


def test_who_may(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller without rights reads, writes, counts and guesses nothing; who is logged in cannot
    write in another's name."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    handler = lambda_handler(evaluation.app.RPCS)
    theirs, mine = (store.api.new_experiment(name) for name in ("theirs", "mine"))
    for name, experiment in (("owner", theirs), ("other", mine)):
        user = users.create(name, "", is_admin=False)
        grants.put(user, "default", Grant(EXPERIMENT, experiment, "MANAGE"))

    def call(user: str, method: str, path: str, **fields: Any) -> tuple[int, Any]:
        content = urlencode(fields) if method == "GET" else json.dumps(fields)
        status, text = called_as(named(user), handler, method, f"/api/3.0/mlflow/{path}", content)
        return status, json.loads(text) if text.startswith("{") else text

    given = {"experiment_id": theirs, "name": "slow", "description": "d", "created_by": "boss"}
    hidden = {"metadata": {"k": "hidden"}, "issue_id": "iss-theirs"}
    status, made = call("owner", "POST", "issues", **given, **hidden)
    assert (status, made["issue"]["created_by"]) == (200, "owner")
    assert made["issue"]["last_updated_by"] == "owner"
    for method, path, fields in (
        ("GET", "issues/iss-theirs", {}),
        ("PATCH", "issues/iss-theirs", {"issue_id": "iss-theirs", "metadata": {"k": "x"}}),
        ("POST", "issues", {**given, "issue_id": "iss-new"}),
        ("POST", "issues/search", {"experiment_id": theirs, "include_total_count": True}),
        ("POST", "issues/search", {"include_total_count": True, "name": "s"}),
    ):
        status, answer = call("other", method, path, **fields)
        assert status == 403, (method, path)
        assert "hidden" not in str(answer)
    taken = {**given, "experiment_id": mine, "issue_id": "iss-theirs"}
    assert call("other", "POST", "issues", **taken)[0] == 400
    counted = call("other", "POST", "issues/search", experiment_id=mine, include_total_count=True)
    assert counted[1]["total_count"] == 0
    assert call("owner", "GET", "issues/iss-theirs")[1] == made
    fields = {"issue_id": "iss-theirs", "last_updated_by": "boss"}
    assert call("owner", "PATCH", "issues/iss-theirs", **fields)[1]["issue"]["last_updated_by"] == (
        "owner"
    )
