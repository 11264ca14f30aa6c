"""Where nothing was written the answer is 429 with ``Retry-After``, which every client repeats:
MLflow's client since 3.18 repeats no request that creates after a 503."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from mlcore import errors, observability
from mlcore.db import capacity
from mlcore.db import table as table_module
from mlcore.http import Request, failure, lambda_handler, patch, post
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.wire import Message
from tests.contract.api import Api
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

NUMBERS = itertools.count()
FAULTS = (Fault.CONFLICT, Fault.THROTTLED, Fault.THROTTLED_API)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("experiments/create", {"name": "{name}"}),
        ("runs/create", {"experiment_id": "0", "run_name": "{name}"}),
        ("registered-models/create", {"name": "{name}"}),
        ("logged-models", {"experiment_id": "0", "name": "{name}"}),
    ],
)
def test_creations_are_asked_for_again(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch, path: str, fields: Any
) -> None:
    api, doubles = broken
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)
    monkeypatch.setattr(table_module, "CONFLICT_ATTEMPTS", 1)
    refused = 0
    for fault in FAULTS:
        for nth in itertools.count(1):
            body = {**fields, "name": f"n{next(NUMBERS)}"}
            if "run_name" in body:
                body["run_name"] = body.pop("name")
            doubles.faulty.arm(fault, nth)
            answer = api.ask("POST", path, **body)
            fired = doubles.faulty.fired
            doubles.faulty.heal()
            if answer.status != 200:
                refused += 1
                assert answer.status == 429, (fault, nth, answer)
                assert answer.headers["retry-after"] == "1"
                assert api.ask("POST", path, **body).status == 200
            if not fired:
                break
    assert refused
    assert len(names_made(api, path)) == len(set(names_made(api, path)))


class Thing(Message):
    flag: bool


def lose_table(message: Thing, _request: Request) -> dict[str, Any]:
    """Fails as with a table that cannot be reached; a flag says that something was written."""
    if message.flag:
        capacity.add_call(capacity.current(), "PutItem", {})
    raise errors.TemporarilyUnavailable("The table cannot be reached. Try again.")


@pytest.mark.parametrize(
    ("method", "has_written", "status", "code"),
    [
        ("POST", False, 429, "REQUEST_LIMIT_EXCEEDED"),
        ("POST", True, 503, "TEMPORARILY_UNAVAILABLE"),
        ("PATCH", False, 503, "TEMPORARILY_UNAVAILABLE"),
    ],
)
def test_what_wrote_nothing_may_be_repeated(
    method: str, has_written: bool, status: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is counted for the alarm of an outage, whatever its status."""
    counted = lines_of_metrics(monkeypatch)
    answer = ask(lose_table, method, has_written)
    assert (answer["statusCode"], json.loads(answer["body"])["error_code"]) == (status, code)
    assert answer["headers"].get("retry-after") == ("1" if status == 429 else None)
    assert [line.get("Unavailable") for line in counted] == [1]


def ask(function: Any, method: str, flag: bool) -> dict[str, Any]:
    routes = [each("/things", Thing, function, "shared_rules.anybody") for each in (post, patch)]
    event = {
        "requestContext": {"http": {"method": method}, "requestId": "r"},
        "rawPath": "/api/2.0/things",
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "body": json.dumps({"flag": flag}),
        "isBase64Encoded": False,
    }
    return lambda_handler(routes)(event, None)


def lines_of_metrics(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The fields of each request's line from now on."""
    lines: list[dict[str, Any]] = []
    monkeypatch.setattr(
        observability._requests, "info", lambda _message, extra: lines.append(extra)
    )
    return lines


@pytest.mark.parametrize(
    "error",
    [
        errors.GatewayCallFailed(429, "The limit of this key is reached.", "60"),
        errors.InvalidParameterValue("No."),
        errors.InternalError("A bug."),
        errors.ResourceConflict("Another was faster."),
    ],
)
def test_limits_mistakes_and_bugs_are_no_outage(
    error: errors.MlflowError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_message: Thing, _request: Request) -> dict[str, Any]:
        raise error

    counted = lines_of_metrics(monkeypatch)
    assert ask(fail, "POST", flag=False)["statusCode"] == error.status
    assert len(counted) == 1
    assert "Unavailable" not in counted[0]


def test_throttled_writes_are_counted(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch
) -> None:
    api, doubles = broken
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)
    monkeypatch.setattr(table_module, "CONFLICT_ATTEMPTS", 1)
    counted = lines_of_metrics(monkeypatch)
    doubles.faulty.arm(Fault.CONFLICT, 1)
    answer = api.ask("POST", "runs/create", experiment_id="0")
    doubles.faulty.heal()
    assert (answer.status, [line.get("Unavailable") for line in counted]) == (429, [1])


def names_made(api: Api, path: str) -> list[str]:
    """The names of what was made, each as often as it was made."""
    if path == "runs/create":
        runs = api.post("runs/search", experiment_ids=["0"], max_results=1000).get("runs", [])
        return [run["info"]["run_name"] for run in runs]
    if path == "logged-models":
        runs = api.post("logged-models/search", experiment_ids=["0"]).get("models", [])
        return [model["info"]["name"] for model in runs]
    return []  # two of one name cannot be


def test_conflicts_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt() -> None:
        raise WriteConflict

    monkeypatch.setattr("mlcore.optimistic_retry._MAX_SECONDS", 2.0)
    with pytest.raises(errors.RequestLimitExceeded) as caught:
        retry_on_conflict("run", attempt)
    answer = failure(caught.value)
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
