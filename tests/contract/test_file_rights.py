"""Who may choose a place for files; reaching files through another place gives no right."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import pytest

import artifacts.app
import runs.app
import traces.app
from mlcore.artifacts.local_folder_store import Folder
from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.users import User
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.policies import location_rights
from mlcore.repos.experiments import experiments
from mlcore.repos.traces import traces as stored_traces
from mlcore.repos.traces.traces import TraceChange
from mlcore.repos.users import grants, users
from tests.contract.api import Answer
from tests.contract.conftest import Store
from tests.contract.file_world import BUCKET, files
from tests.contract.logins import ADMIN, Logins, named
from tests.contract.route_requests import PROMPT

__all__ = ["files"]

NUMBERS = itertools.count()
MLFLOW = "2.0/mlflow"


class Callers(Logins):
    """Also of files and traces; ``plain`` calls any path."""

    def __init__(self) -> None:
        super().__init__()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(AUTHENTICATION, "basic")
            files = lambda_handler(artifacts.app.RPCS, artifacts.app.PLAIN_ROUTES)
            self._handlers |= {"artifacts": files}
            self._files = files
            self._runs = lambda_handler(runs.app.RPCS)
            self._traces = lambda_handler(traces.app.RPCS, traces.app.PLAIN_ROUTES)

    def try_prompt(self, caller: dict[str, Any], fields: dict[str, Any]) -> Answer:
        event = {
            "version": "2.0",
            "rawPath": "/ajax-api/2.0/mlflow/runs/create-promptlab-run",
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "host": "localhost"},
            "requestContext": {"http": {"method": "POST"}, "requestId": "t", "authorizer": caller},
            "isBase64Encoded": False,
            "body": json.dumps(fields),
        }
        answer = self._runs(event, None)
        text = str(answer["body"])
        body = json.loads(text) if text.startswith("{") else {"text": text}
        return Answer(answer["statusCode"], body, len(text))

    def plain(
        self, caller: dict[str, Any], method: str, path: str, body: str = "", /, **query: str
    ) -> int:
        return self._plain(caller, method, path, body, list(query.items()))

    def upload(self, caller: dict[str, Any], query: Sequence[tuple[str, str]]) -> int:
        """The status of an upload; a name may be in the query several times."""
        return self._plain(caller, "POST", "/ajax-api/2.0/mlflow/upload-artifact", "data", query)

    def _plain(
        self,
        caller: dict[str, Any],
        method: str,
        path: str,
        body: str,
        query: Sequence[tuple[str, str]],
    ) -> int:
        handler = self._traces if "traces" in path or "trace-" in path else self._files
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": urlencode(query),
            "headers": {"content-type": "application/json", "host": "localhost"},
            "requestContext": {"http": {"method": method}, "requestId": "t", "authorizer": caller},
            "isBase64Encoded": False,
            "body": body,
        }
        status: int = handler(event, None)["statusCode"]
        return status


def _user() -> tuple[User, dict[str, Any]]:
    user = users.create(f"u{next(NUMBERS)}", "", is_admin=False)
    return user, named(user.username)


def _create(callers: Callers, caller: dict[str, Any], location: str = "") -> Answer:
    fields = {"artifact_location": location} if location else {}
    path = f"{MLFLOW}/experiments/create"
    return callers.ask(caller, "POST", path, name=f"e{next(NUMBERS)}", **fields)


def test_nobody_takes_a_place_that_is_anothers(
    store: Store, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = "MLFLOW_ALLOWED_HOST_ADDRESSED_ARTIFACT_SCHEMES"
    monkeypatch.setenv(allowed, "http,https,mlflow-artifacts")
    callers = Callers()
    (_, victim), (_, attacker) = _user(), _user()
    experiment_id = _create(callers, victim).body["experiment_id"]
    run_id = store.api.new_run(experiment_id)
    assert _create(callers, victim, "mlflow-artifacts:/team/a").status == 200
    first = chr(ord(experiment_id[0]))
    taken = [
        experiment_id,
        f"{experiment_id}/",
        f"{experiment_id}/x",
        f"{experiment_id}/{run_id}/artifacts",
        f"./{experiment_id}",
        f"x/../{experiment_id}",
    ]
    taken += [
        f"%{ord(first):02x}{experiment_id[1:]}",
        f"{experiment_id}?a=b",
        "",
        "%2e",
        "team",
        "team/a",
        "team/a/b",
    ]
    taken += ["6", "6/x", "2024", "workspaces", "workspaces/x", "workspaces/x/6", ".internal"]
    route = "api/2.0/mlflow-artifacts/artifacts"
    for path in taken:
        for root in (
            "mlflow-artifacts:/",
            "mlflow-artifacts://host:5000/",
            f"s3://{BUCKET}/",
            f"http://host/{route}/",
            f"https://host:1/x/{route}/",
        ):
            refused = _create(callers, attacker, root + path)
            assert refused.status in (400, 403), (root, path)
            assert refused.code in ("PERMISSION_DENIED", "INVALID_PARAMETER_VALUE"), refused
    answer = _create(callers, attacker, f"mlflow-artifacts:/{experiment_id}")
    assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")
    for free in (
        "mlflow-artifacts:/mine",
        "mlflow-artifacts:/team2",
        f"s3://another/{experiment_id}",
    ):
        assert _create(callers, attacker, free).status == 200, free
    assert _create(callers, attacker, "mlflow-artifacts:/mine/too").status == 200
    assert _create(callers, victim, f"mlflow-artifacts:/{experiment_id}/x").status == 200
    users.create("admin", "", is_admin=True)
    assert _create(callers, ADMIN, "mlflow-artifacts:/6").status == 200


def _made_before_login(experiment_id: str, location: str, owner: User) -> None:
    experiments.create(
        Experiment(
            experiment_id=experiment_id,
            name=f"e{next(NUMBERS)}",
            artifact_location=location,
            lifecycle_stage=ACTIVE,
            creation_time=1,
            last_update_time=1,
            tags={},
            workspace="default",
        )
    )
    grants.put(owner, "default", Grant(EXPERIMENT, experiment_id, "MANAGE"))


def _deny(user: User, experiment_id: str) -> None:
    grants.put(user, "default", Grant(EXPERIMENT, experiment_id, "NO_PERMISSIONS"))


ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"


@pytest.mark.parametrize("folder", ["01J8ZQ0000ABCDEFGHJKMNPQRS", "01j8zq0000abcdefghjkmnpqrs"])
def test_a_folder_in_other_cases_is_the_same_experiments(store: Store, folder: str) -> None:
    """The disk of a laptop may not tell them apart."""
    assert store.api
    storage = location_rights.default_storage(f"{folder}/run/artifacts/f")
    assert storage == (folder.upper(), folder)


def test_a_shared_place_gives_no_right(store: Store, files: Folder) -> None:
    """Both experiments were made when nobody logged in; each owner is denied the other."""
    callers = Callers()
    (one, a), (other, b) = _user(), _user()
    _made_before_login("6", "mlflow-artifacts:/6", one)
    _made_before_login("7", "mlflow-artifacts:/6", other)
    _made_before_login("8", "mlflow-artifacts:/team", one)
    _made_before_login("9", "mlflow-artifacts:/team/sub", other)
    for user, theirs in ((one, ("7", "9")), (other, ("6", "8"))):
        for each in theirs:
            _deny(user, each)
    mine, its = store.api.new_run("6"), store.api.new_run("7")
    for path in (
        f"6/{mine}/artifacts/f",
        f"6/{its}/artifacts/f",
        "6/loose",
        "team/x",
        "team/sub/x",
    ):
        files.put(path, b"x")

    def read(caller: dict[str, Any], path: str) -> int:
        return callers.plain(caller, "GET", f"{ARTIFACTS}/{path}")

    assert read(a, f"6/{mine}/artifacts/f") == read(b, f"6/{its}/artifacts/f") == 200
    assert read(b, f"6/{mine}/artifacts/f") == read(a, f"6/{its}/artifacts/f") == 403
    assert read(a, "6/loose") == read(b, "6/loose") == 403
    assert read(a, "team/x") == 200
    assert read(b, "team/x") == 403
    assert read(a, "team/sub/x") == read(b, "team/sub/x") == 403
    for caller in (a, b):
        for path in ("6", "team", "team/sub"):
            assert callers.plain(caller, "DELETE", f"{ARTIFACTS}/{path}") == 403, path
        assert callers.plain(caller, "PUT", f"{ARTIFACTS}/team/sub/y", "y") == 403
    assert callers.plain(a, "PUT", f"{ARTIFACTS}/team/y", "y") == 200
    assert callers.plain(ADMIN, "DELETE", f"{ARTIFACTS}/team") == 200


def test_an_experiment_in_anothers_run_reaches_nothing(store: Store, files: Folder) -> None:
    callers = Callers()
    (owner, _), (attacker, b) = _user(), _user()
    _made_before_login("1", "mlflow-artifacts:/1", owner)
    _deny(attacker, "1")
    run_id = store.api.new_run("1")
    folder = f"1/{run_id}/artifacts"
    _made_before_login("2", f"mlflow-artifacts:/{folder}", attacker)
    inside = store.api.new_run("2")
    files.put(f"{folder}/secret", b"x")
    upload = "/ajax-api/2.0/mlflow/upload-artifact"
    query = {"run_uuid": inside, "path": "f"}
    assert callers.plain(b, "POST", upload, "data", **query) == 403
    assert callers.plain(b, "GET", "/get-artifact", run_id=inside, path="f") == 403
    listed = callers.ask(b, "GET", f"{MLFLOW}/artifacts/list", run_id=inside)
    assert listed.status == 403
    # A version whose source is our own bucket, which nobody compares with a run.
    path = f"{MLFLOW}/registered-models/create"
    assert callers.ask(b, "POST", path, name="m").status == 200
    source = f"s3://{BUCKET}/{folder}"
    path = f"{MLFLOW}/model-versions/create"
    assert callers.ask(b, "POST", path, name="m", source=source).status == 403
    store.api.post("model-versions/create", name="m", source=source)
    query = {"name": "m", "version": "1", "path": "secret"}
    assert callers.plain(b, "GET", "/model-versions/get-artifact", **query) == 403
    assert callers.plain(ADMIN, "GET", "/model-versions/get-artifact", **query) == 200


@pytest.mark.parametrize(
    ("names", "decided_by"),
    [
        (("run_uuid",), 0),
        (("run_uuid", "run_id"), 1),
        (("run_id", "run_uuid"), 0),
        (("run_uuid", "run_uuid"), 0),
        (("run_uuid", "run_id", "run_uuid"), 1),
        (("run_id", "run_uuid", "run_uuid"), 0),
        (("run_id", "run_uuid", "run_id"), 0),
        (("run_id",), 0),
        (("run_id", "run_id"), 0),
    ],
)
def test_an_upload_is_decided_by_the_run_that_it_writes_to(
    store: Store, files: Folder, names: tuple[str, ...], decided_by: int
) -> None:
    """Whichever parameters name one's own run and another's, in whichever order: the run that the
    policy asks about is the run that gets the file, which is the first ``run_id``, or else the
    first ``run_uuid``."""
    callers = Callers()
    (owner, _), (attacker, b) = _user(), _user()
    _made_before_login("1", "mlflow-artifacts:/1", owner)
    _made_before_login("2", "mlflow-artifacts:/2", attacker)
    _deny(attacker, "1")
    runs_by_owner = {True: store.api.new_run("2"), False: store.api.new_run("1")}
    for number, is_own in enumerate(itertools.product((True, False), repeat=len(names))):
        path = f"f{number}"
        named = [(name, runs_by_owner[own]) for name, own in zip(names, is_own, strict=True)]
        status = callers.upload(b, [*named, ("path", path)])
        expected = 200 if is_own[decided_by] else 403
        assert status == expected, named
        its, mine = (f"{1 + own}/{runs_by_owner[own]}/artifacts/{path}" for own in (False, True))
        assert files.get(its) is None, named
        assert (files.get(mine) is not None) == (expected == 200), named


def test_files_of_the_prompt_lab_need_rights_where_they_come(store: Store, files: Folder) -> None:
    callers = Callers()
    (owner, a), (attacker, b) = _user(), _user()
    _made_before_login("1", "mlflow-artifacts:/1", owner)
    _made_before_login("2", "mlflow-artifacts:/1/inside", attacker)
    _deny(attacker, "1")

    def tried(caller: dict[str, Any], **named: str) -> Answer:
        return callers.try_prompt(caller, {**PROMPT, **named})

    assert tried(a, experiment_id="1").body["run"]["info"]["status"] == "FINISHED"
    written = files.list("1")
    for experiment_id in ("1", "2", "404"):
        assert tried(b, experiment_id=experiment_id).status == 403, experiment_id
    assert files.list("1") == written
    assert tried(ADMIN, experiment_id="2").status == 200
    answer = tried(b)
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")
    assert answer.body["message"] == "CreatePromptlabRun request must specify experiment_id."
    grants.put(attacker, "default", Grant(EXPERIMENT, "1", "READ"))
    assert tried(b, experiment_id="1").status == 403
    grants.put(attacker, "default", Grant(EXPERIMENT, "1", "EDIT"))
    for experiment_id in ("1", "2"):
        assert tried(b, experiment_id=experiment_id).status == 200, experiment_id


def test_a_trace_may_not_name_anothers_files(store: Store, files: Folder) -> None:
    callers = Callers()
    (owner, _), (attacker, b) = _user(), _user()
    _made_before_login("1", "mlflow-artifacts:/1", owner)
    _made_before_login("2", "mlflow-artifacts:/2", attacker)
    _deny(attacker, "1")
    files.put("1/traces/tr-v/artifacts/traces.json", b'{"spans": []}')
    files.put("2/traces/tr-1/artifacts/traces.json", b'{"spans": []}')
    body = {"experiment_id": "2", "timestamp_ms": 1, "tags": [], "request_metadata": []}
    body["request_id"] = "tr-1"
    assert callers.plain(b, "POST", "/api/2.0/mlflow/traces", json.dumps(body)) == 200
    made = next(item for item in store.items() if item["type"]["S"] == "trace")
    trace_id = made["trace_id"]["S"]
    get = "/ajax-api/2.0/mlflow/get-trace-artifact"
    files.put(f"2/traces/{trace_id}/artifacts/traces.json", b'{"spans": []}')
    assert callers.plain(b, "GET", get, request_id=trace_id) == 200
    # As a trace has it that was written when clients could set this tag, or that was imported.
    tags = {"mlflow.artifactLocation": "mlflow-artifacts:/1/traces/tr-v/artifacts"}
    stored = stored_traces.find(trace_id, "default")
    assert stored is not None
    stored_traces.write(stored, lambda current: TraceChange(current.info, {"tags": tags}))
    assert callers.plain(b, "GET", get, request_id=trace_id) == 403
