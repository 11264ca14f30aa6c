"""Requests a second and a day of each user, key and workspace; whoever sends them, however they are
spelled, and what the counting costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, cast

import pytest

import experiments.app
import server_info.app
from mlcore import errors, observability, process_cache
from mlcore.db import capacity, keys
from mlcore.db.table import table
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.models.users import CallerUsage
from mlcore.policies import caller_limits
from mlcore.repos.users import caller_usage, users
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.logins import named

NOON = 20_000 * caller_usage.DAY_MS + caller_usage.DAY_MS // 2
SEARCH = ("POST", "/api/2.0/mlflow/experiments/search", {"max_results": 1})
CREATE = ("POST", "/api/2.0/mlflow/experiments/create", {"name": "one"})

Answer = dict[str, Any]


class Api:
    """The handlers of one process, whose limits the environment states."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = NOON
        patch.setattr(caller_limits, "now_ms", lambda: self.now)
        self._patch = patch
        self.limit()

    def limit(self, **limits: int) -> None:
        self._patch.setenv(AUTHENTICATION, "basic")
        for name, value in limits.items():
            self._patch.setenv(name.upper(), str(value))
        self._handlers = [
            lambda_handler(experiments.app.RPCS),
            lambda_handler(server_info.app.RPCS, server_info.app.PLAIN_ROUTES),
        ]

    def ask(
        self,
        caller: dict[str, Any],
        call: tuple[str, str, dict[str, Any]] = SEARCH,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        method, path, body = call
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {
                "content-type": "application/json",
                "host": "localhost",
                **headers,
            },
            "requestContext": {
                "http": {"method": method},
                "requestId": "test",
                "authorizer": caller,
            },
            "isBase64Encoded": False,
            **({"body": json.dumps(body)} if method == "POST" else {}),
        }
        answer = self._handlers["/experiments/" not in path](event, None)
        self.measured = cast("capacity.Measurement", capacity.last_measurement())
        return answer

    def passing(self, caller: dict[str, Any], attempts: int, workspace: str = "") -> int:
        """How many of so many requests pass."""
        headers = {"X-MLFLOW-WORKSPACE": workspace} if workspace else {}
        answers = [self.ask(caller, headers=headers) for _ in range(attempts)]
        return [answer["statusCode"] for answer in answers].count(200)


@pytest.fixture
def api(store: Store, monkeypatch: pytest.MonkeyPatch) -> Api:
    for name in ("ann", "ben"):
        users.create(name, "", is_admin=False)
    users.create("admin", "", is_admin=True)
    return Api(monkeypatch)


def key_of(username: str, key_id: str, **more: Any) -> dict[str, Any]:
    return {
        "lambda": {"method": "oidc", "login": "key", "key_user": username, "key_id": key_id} | more
    }


def stored(target: str) -> int:
    item = table.get(keys.caller_usage(target, NOON // caller_usage.DAY_MS * caller_usage.DAY_MS))
    return 0 if item is None else CallerUsage.of(item).requests


def test_nothing_is_counted_or_asked_without_limits(api: Api) -> None:
    admin = named("admin", is_admin=True)
    api.ask(admin)
    api.ask(admin)
    plain = api.measured.requests
    assert plain > 0
    api.limit(user_requests_per_second=1_000, workspace_requests_per_day=100_000)
    api.ask(admin)
    assert api.measured.requests == plain + 2, "the numbers of the day, once in a process"
    api.ask(admin)
    assert api.measured.requests == plain
    assert stored("user:admin") == 0


def test_refusal_is_mlflows_and_writes_nothing(api: Api) -> None:
    api.limit(user_requests_per_day=2)
    assert api.passing(named("ann"), 2) == 2
    answer = api.ask(named("ann"), CREATE)
    assert answer["statusCode"] == 429
    assert json.loads(answer["body"])["error_code"] == "REQUEST_LIMIT_EXCEEDED"
    assert "2 requests per day for this user" in json.loads(answer["body"])["message"]
    assert 1 <= int(answer["headers"]["retry-after"]) <= 60
    assert (api.measured.requests, api.measured.write_units) == (0, 0)
    assert api.passing(named("ben"), 2) == 2
    api.now += caller_usage.DAY_MS // 2
    assert api.ask(named("ann"), CREATE)["statusCode"] == 200


def test_limits_of_callers_are_no_outage(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm of an outage stays silent while somebody floods."""
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr(
        observability._requests, "info", lambda _message, extra: logged.append(dict(extra))
    )
    api.limit(user_requests_per_day=1)
    api.ask(named("ann"))
    api.ask(named("ann"))
    assert [line["status"] for line in logged] == [200, 429]
    assert not any("Unavailable" in line for line in logged)


def test_rate(api: Api) -> None:
    api.limit(user_requests_per_second=2)
    assert api.passing(named("ann"), 30) == 10
    assert api.passing(named("ben"), 30) == 10
    api.now += 1_000
    assert api.passing(named("ann"), 30) == 2
    assert api.ask(named("ann"))["headers"]["retry-after"] == "1"


def test_all_logins_of_a_user_are_one_user(api: Api) -> None:
    """A password, a session of a browser, a token and two keys."""
    api.limit(user_requests_per_day=5)
    session = {"lambda": {"method": "oidc", "login": "session", "username": "ann"}}
    callers = [named("ann"), session, key_of("ann", "1-a"), key_of("ann", "1-b"), named("ann")]
    assert [api.ask(caller)["statusCode"] for caller in callers] == [200] * 5
    for caller in callers:
        assert api.ask(caller)["statusCode"] == 429
    assert api.ask(named("ben"))["statusCode"] == 200


def test_each_key_has_limits_of_its_own(api: Api) -> None:
    api.limit(key_requests_per_day=2)
    assert api.passing(key_of("ann", "1-a"), 5) == 2
    assert api.passing(key_of("ann", "1-b"), 5) == 2
    assert api.passing(named("ann"), 5) == 5
    message = json.loads(api.ask(key_of("ann", "1-a"))["body"])["message"]
    assert "for this key" in message
    assert "1-a" not in message


def test_a_request_that_is_refused_counts_to_none(api: Api) -> None:
    api.limit(key_requests_per_day=1, user_requests_per_day=4)
    assert api.passing(key_of("ann", "1-a"), 50) == 1
    assert api.passing(named("ann"), 50) == 3


def test_administrators_are_callers_too(api: Api) -> None:
    api.limit(user_requests_per_day=2)
    assert api.passing(named("admin", is_admin=True), 5) == 2


def test_unknown_callers_and_open_paths_are_not_counted(api: Api) -> None:
    api.limit(user_requests_per_day=1)
    nobody: dict[str, Any] = {"lambda": {"method": "basic"}}
    assert [api.ask(nobody)["statusCode"] for _ in range(3)] == [401] * 3
    for path in ("/health", "/api/3.0/mlflow/server-info", "/static-files/x", "/", "/no/such"):
        for _ in range(3):
            assert api.ask(named("ann"), ("GET", path, {}))["statusCode"] in (200, 404)
    assert api.ask(named("ann"), ("GET", "/version", {}))["statusCode"] == 200
    assert api.ask(named("ann"), ("GET", "/version", {}))["statusCode"] == 429


@pytest.fixture
def workspaces(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    enable_workspaces(monkeypatch, "team-a")
    from mlcore.auth.permissions import ANY, WORKSPACE, Grant  # noqa: PLC0415
    from mlcore.repos.users import grants  # noqa: PLC0415

    grants.put(users.get("ann"), "team-a", Grant(WORKSPACE, ANY, "USE"))


@pytest.mark.usefixtures("workspaces")
def test_members_of_a_workspace_share_its_limit(api: Api) -> None:
    api.limit(workspace_requests_per_day=3)
    assert api.passing(named("ann"), 2, "team-a") == 2
    assert api.passing(named("admin", is_admin=True), 5, "team-a") == 1
    answer = api.ask(named("ann"), headers={"x-mlflow-workspace": "team-a"})
    assert "for this workspace" in json.loads(answer["body"])["message"]
    assert api.passing(named("admin", is_admin=True), 3) == 3


@pytest.mark.usefixtures("workspaces")
@pytest.mark.parametrize(
    "header", ["X-MLFLOW-WORKSPACE", "x-mlflow-workspace", "X-Mlflow-Workspace"]
)
def test_strangers_cannot_use_up_a_workspace(api: Api, header: str) -> None:
    api.limit(workspace_requests_per_day=3)
    for _ in range(10):
        api.ask(named("ben"), headers={header: "team-a"})
    assert api.passing(named("ann"), 10, "team-a") == 3
    assert stored("workspace:team-a") <= 3


@pytest.mark.usefixtures("workspaces")
def test_requests_that_fail_count(api: Api) -> None:
    """Guessing of names is limited, also with a workspace that does not exist."""
    api.limit(user_requests_per_day=2)
    call = ("POST", "/api/2.0/mlflow/experiments/create", {})
    assert api.ask(named("ann"), call)["statusCode"] == 403
    missing = api.ask(named("ann"), call, headers={"x-mlflow-workspace": "missing"})
    assert missing["statusCode"] == 404
    assert api.ask(named("ann"), call)["statusCode"] == 429


@pytest.mark.usefixtures("workspaces")
def test_another_workspace_gives_a_user_no_more(api: Api) -> None:
    api.limit(user_requests_per_day=3)
    assert api.passing(named("ann"), 2, "team-a") == 2
    assert api.passing(named("ann"), 5, "team-a") == 1
    assert api.passing(named("ann"), 5) == 0


def test_processes_share_the_number_of_a_day(api: Api) -> None:
    """A new process knows what others have reported, and what nobody reported is at most a
    hundredth of the limit for each process."""
    api.limit(user_requests_per_day=1_000)
    passed = 0
    for _ in range(20):
        process_cache.clear()
        passed += api.passing(named("ann"), 105)
    assert 1_000 <= passed <= 1_000 + 20 * 10
    process_cache.clear()
    assert api.passing(named("ann"), 5) == 0


def test_threads_of_a_process_pass_exactly_the_limit(api: Api) -> None:
    api.limit(user_requests_per_day=100)
    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(lambda _: api.passing(named("ann"), 25), range(8)))
    assert sum(passed) == 100
    assert stored("user:ann") == 100


def test_reports_cost_less_than_a_unit_a_minute(api: Api) -> None:
    """Of many callers together, far from their limits."""
    api.limit(user_requests_per_day=1_000_000, user_requests_per_second=1_000)
    callers = [named("ann"), named("ben")]
    for caller in callers:
        api.ask(caller)
    units = 0.0
    for _ in range(600):
        api.now += 1_000
        for caller in callers:
            assert api.ask(caller)["statusCode"] == 200
            units += api.measured.write_units
    assert 0 < units <= 10
    assert stored("user:ann") + stored("user:ben") > 0


def test_a_counter_that_cannot_be_reached_stops_nobody(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.limit(user_requests_per_day=3)

    def fail(*_: Any, **__: Any) -> Any:
        raise errors.TemporarilyUnavailable("The table does not answer.")

    monkeypatch.setattr(caller_usage, "totals", fail)
    monkeypatch.setattr(caller_usage, "add", fail)
    assert api.passing(named("ann"), 10) == 3


def test_reporting_is_no_write_of_the_request(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A creation that wrote nothing is answered 429, which clients repeat, not 503."""
    api.limit(user_requests_per_day=100)

    def fail(*_: Any, **__: Any) -> Any:
        raise errors.TemporarilyUnavailable("The table does not answer.")

    monkeypatch.setattr(users, "get", fail)
    monkeypatch.setattr(users, "get_profile", fail)
    answer = api.ask(named("ann"), CREATE)
    assert api.measured.write_units == 1, "the report"
    assert stored("user:ann") == 1
    assert answer["statusCode"] == 429


def test_deleted_by_its_ttl(api: Api) -> None:
    api.limit(user_requests_per_day=100)
    api.ask(named("ann"))
    day = NOON // caller_usage.DAY_MS * caller_usage.DAY_MS
    item = table.get(keys.caller_usage("user:ann", day))
    assert item is not None
    assert CallerUsage.of(item).ttl == (day + caller_usage.DAY_MS) // 1000 + 2 * 24 * 3600
