"""The deployment in short: it deploys, each function answers with the rights of its own role, and
the stream reaches the indexer."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mlcore.db import keys as table_keys
from tests.rehearsal import front
from tests.rehearsal.stack import Stack, basic
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
USER = ("bob", "bobs-own-password")


def keys(stack: Stack, partition: str) -> list[str]:
    answer = stack.client("dynamodb").query(
        TableName=stack.table,
        KeyConditionExpression="PK = :p",
        ExpressionAttributeValues={":p": {"S": partition}},
    )
    return [item["SK"]["S"] for item in answer["Items"]]


def test_who_calls(stack: Stack) -> None:
    assert stack.call("GET", "/health", user=None)[:2] == (200, "OK")
    for user in (None, ("admin", "a-wrong-password"), ("nobody", "a-wrong-password")):
        status, body, headers = stack.call("GET", "/version", user=user)
        assert status == 401
        assert headers["www-authenticate"] == 'Basic realm="mlflow"'
        assert body.startswith("You are not authenticated.")
    assert stack.call("GET", "/version")[:2] == (200, "3.18.0")


def test_the_second_administrator_is_refused(stack: Stack) -> None:
    again = stack.admin("create-admin", text="another-password\n")
    assert again.returncode == 1
    assert "there is a user admin" in again.stderr


def test_a_run_and_its_index(stack: Stack) -> None:
    experiment = stack.ask("POST", "experiments/create", name="rehearsed")["experiment_id"]
    run = stack.ask("POST", "runs/create", experiment_id=experiment, start_time=1)
    run_id = run["run"]["info"]["run_id"]
    metrics = [{"key": "loss", "value": value, "timestamp": 1, "step": 1} for value in (1.5, 0.5)]
    stack.ask("POST", "runs/log-batch", run_id=run_id, metrics=metrics)
    response = stack.ask(
        "POST", "runs/search", experiment_ids=[experiment], filter="metrics.loss < 2"
    )
    assert [run["info"]["run_id"] for run in response["runs"]] == [run_id]
    stack.ask("POST", "runs/update", run_id=run_id, status="FINISHED")
    deadline = time.monotonic() + 60
    while not any(key.startswith("RANKROWS#") for key in keys(stack, f"EXP#{experiment}")):
        assert time.monotonic() < deadline, keys(stack, f"EXP#{experiment}")
        time.sleep(0.5)

    made = stack.ask("POST", "users/create", username=USER[0], password=USER[1])
    assert made["user"]["username"] == USER[0]
    change = {"experiment_id": experiment, "new_name": "taken"}
    status, body, _ = stack.call("POST", "/api/2.0/mlflow/experiments/update", change, USER)
    assert (status, body) == (403, "Permission denied")


@pytest.mark.parametrize(
    ("method", "path", "fields"),
    [
        ("GET", "artifacts/list?run_id=none", None),
        ("GET", "registered-models/search", None),
        ("POST", "logged-models/search", {"experiment_ids": ["0"]}),
        ("GET", "webhooks", None),
        ("GET", "traces/none/info", None),
        ("GET", "users/current", None),
        ("GET", "nothing", None),
    ],
)
def test_each_function_reaches_what_it_needs(
    stack: Stack, method: str, path: str, fields: dict[str, Any] | None
) -> None:
    status, body, _ = stack.call(method, f"/api/2.0/mlflow/{path}", fields)
    assert status in (200, 404), body
    assert status == 200 or body["error_code"] in ("RESOURCE_DOES_NOT_EXIST", "ENDPOINT_NOT_FOUND")


def test_the_ui_asks(stack: Stack) -> None:
    query = {"query": 'query { test(inputString: "x") { output } }'}
    status, body, _ = stack.call("POST", "/graphql", query)
    assert status == 200, body


def test_the_distribution_in_front(stack: Stack) -> None:
    """It asks for the login that API Gateway's answer does not, and names the viewer, by whose
    address wrong passwords are counted."""
    distribution = front.Distribution(stack)
    for path in ("/", "/ajax-api/2.0/mlflow/experiments/search", "/signup"):
        reply = distribution.answer("GET", path, {}, b"")
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == 'Basic realm="mlflow"'
    page = distribution.answer("GET", "/signup", {"Authorization": basic(ADMIN)}, b"")
    assert (page.status, b"<form" in page.content) == (200, True)
    wrong = {"Authorization": basic((ADMIN[0], "a-wrong-password")), "Sec-Fetch-Mode": "cors"}
    reply = distribution.answer("GET", "/ajax-api/2.0/mlflow/users/current", wrong, b"")
    assert reply.status == 401
    assert "www-authenticate" not in {name.lower() for name in reply.headers}
    [cookie] = reply.cookies
    again = distribution.answer("GET", "/", {**wrong, "Cookie": cookie.partition(";")[0]}, b"")
    assert again.headers["www-authenticate"] == 'Basic realm="mlflow"'
    pk = table_keys.login(front.VIEWER, "000").pk
    assert keys(stack, pk)
