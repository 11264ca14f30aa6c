"""API keys: who gets one, what it opens, and what is tried with it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from authorizer import app as authorizer
from mlcore import process_cache
from mlcore.auth.api_key_scopes import KeyLimits
from mlcore.auth.passwords import hash_password
from mlcore.auth.permissions import Grant
from mlcore.db import capacity
from mlcore.ids import now_ms
from mlcore.repos.users import api_keys, grants, users
from tests.contract.api import Answer
from tests.contract.conftest import Store
from tests.contract.logins import ADMIN, Logins, named

KEYS = "3.0/mlflow-serverless/keys"
ADA, BOB = named("ada"), named("bob")
HOUR = 3_600


@pytest.fixture
def logins(store: Store) -> Logins:
    for name in ("ada", "bob"):
        users.create(name, "", is_admin=False)
    users.create("admin", "", is_admin=True)
    return Logins()


def context_of(authorization: str) -> dict[str, Any]:
    """What the authorizer tells the functions about an Authorization header."""
    event = {
        "headers": {"authorization": authorization},
        "rawPath": "/",
        "requestContext": {"http": {"sourceIp": "192.0.2.1"}},
    }
    context: dict[str, Any] = authorizer.handler(event, None)["context"]
    return context


def bearer(token: str) -> dict[str, Any]:
    """The caller with a key, as the functions get it."""
    return {"lambda": context_of(f"Bearer {token}")}


def is_known(token: str) -> bool:
    return "key_user" in context_of(f"Bearer {token}")


def made(logins: Logins, caller: dict[str, Any] = ADA, **fields: Any) -> dict[str, Any]:
    answer = logins.ask(caller, "POST", KEYS, name="ci", **fields)
    assert answer.status == 200, answer.body
    return answer.body


def experiment(logins: Logins, caller: dict[str, Any], name: str) -> str:
    created = logins.ask(caller, "POST", "2.0/mlflow/experiments/create", name=name)
    assert created.status == 200
    return str(created.body["experiment_id"])


def tag(logins: Logins, caller: dict[str, Any], experiment_id: str) -> Answer:
    path = "2.0/mlflow/experiments/set-experiment-tag"
    return logins.ask(caller, "POST", path, experiment_id=experiment_id, key="k", value="v")


def test_key_is_its_owner(logins: Logins) -> None:
    body = made(logins)
    token = body["token"]
    basic = b64encode(f"ada:{token}".encode()).decode()
    for header in (f"Bearer {token}", f"bearer {token}", f"Basic {basic}"):
        assert context_of(header)["key_user"] == "ada"
    answer = logins.ask(bearer(token), "GET", "2.0/mlflow/users/current")
    assert answer.body["user"]["username"] == "ada"
    assert "username" not in context_of(f"Bearer {token}")  # old functions must not know the caller
    assert "token" not in json.dumps(logins.ask(ADA, "GET", KEYS).body)


def test_no_secret_is_stored(logins: Logins, store: Store) -> None:
    token = made(logins)["token"]
    stored = json.dumps(store.items(), default=str)
    assert token not in stored
    assert token.split("_", 2)[2] not in stored


def test_what_is_no_key(logins: Logins) -> None:
    """Case variants, cut, extended and mixed tokens, other people's names, and keys in no place."""
    token, other = made(logins)["token"], made(logins, BOB)["token"]
    prefix, key_id, secret = token.split("_", 2)
    wrong = [
        token.upper(),
        token.lower() if token != token.lower() else token[:-1],
        token[:-1],
        f"{token}A",
        f"{token}\n",
        f"{prefix}_{other.split('_', 2)[1]}_{secret}",
        f"{prefix}_0{key_id}_{secret}",
        f"{prefix}_{key_id.upper()}x_{secret}",
        f"{prefix}_{key_id}_{'A' * 43}",
        secret,
        "",
    ]
    assert [text for text in wrong if text.strip() != token and is_known(text)] == []
    for name in ("bob", "ADA", "admin"):
        header = "Basic " + b64encode(f"{name}:{token}".encode()).decode()
        assert "key_user" not in context_of(header)
    assert is_known(token)


def test_keys_of_others_are_unreachable(logins: Logins) -> None:
    """List, revoke, rotate, create for, guess: one answer, whether the key exists or not."""
    body = made(logins)
    key_id = body["key"]["key_id"]
    missing = key_id[:-1] + ("0" if key_id[-1] != "0" else "1")
    for method, path in (("DELETE", KEYS), ("POST", f"{KEYS}/rotate")):
        answers = [logins.ask(BOB, method, path, key_id=tried_id) for tried_id in (key_id, missing)]
        assert [answer.status for answer in answers] == [403, 403]
        assert answers[0].body == answers[1].body
    assert logins.ask(BOB, "GET", KEYS, username="ada").status == 403
    assert logins.ask(BOB, "GET", KEYS, username="nobody").status == 403
    assert logins.ask(BOB, "POST", KEYS, name="x", username="ada").status == 403
    assert logins.ask(BOB, "GET", KEYS).body == {"keys": []}
    accounts = "3.0/mlflow-serverless/service-accounts"
    assert logins.ask(BOB, "POST", accounts, username="robot").status == 403
    assert is_known(body["token"])


def test_administrator_makes_no_key_of_a_person(logins: Logins) -> None:
    assert logins.ask(ADMIN, "POST", KEYS, name="x", username="ada").status == 400
    key = made(logins)
    rotated = logins.ask(ADMIN, "POST", f"{KEYS}/rotate", key_id=key["key"]["key_id"])
    assert rotated.status == 404
    assert len(logins.ask(ADMIN, "GET", KEYS, username="ada").body["keys"]) == 1
    assert logins.ask(ADMIN, "DELETE", KEYS, key_id=key["key"]["key_id"]).status == 200
    assert not is_known(key["token"])


@pytest.mark.parametrize("scopes", [None, ["read"], ["sql"], ["experiment:0"]])
def test_key_manages_no_keys(logins: Logins, scopes: list[str] | None) -> None:
    """Neither its own nor others', and not an administrator's either."""
    for owner in (ADA, ADMIN):
        body = made(logins, owner, scopes=scopes)
        caller, key_id = bearer(body["token"]), body["key"]["key_id"]
        attempts = [
            logins.ask(caller, "POST", KEYS, name="more"),
            logins.ask(caller, "GET", KEYS),
            logins.ask(caller, "DELETE", KEYS, key_id=key_id),
            logins.ask(caller, "POST", f"{KEYS}/rotate", key_id=key_id),
            logins.ask(caller, "POST", "3.0/mlflow-serverless/service-accounts", username="r"),
        ]
        assert [answer.status for answer in attempts] == [403] * len(attempts)
        assert is_known(body["token"])


def test_expiry(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    body = made(logins, expires_in_seconds=HOUR)
    now = now_ms()
    assert is_known(body["token"])
    monkeypatch.setattr(api_keys, "now_ms", lambda: now + (HOUR + 1) * 1_000)
    assert not is_known(body["token"])


def test_rotation_overlaps(logins: Logins, monkeypatch: pytest.MonkeyPatch) -> None:
    old = made(logins, scopes=["read"], expires_in_seconds=30 * HOUR)
    rotate = {"key_id": old["key"]["key_id"], "overlap_seconds": HOUR}
    new = logins.ask(ADA, "POST", f"{KEYS}/rotate", **rotate).body
    assert new["token"] != old["token"]
    assert new["key"]["scopes"] == ["read"]
    lasts = new["key"]["expires_at"] - new["key"]["created_at"]
    assert abs(lasts - 30 * HOUR * 1_000) < 60_000
    assert is_known(old["token"])
    assert is_known(new["token"])
    now = now_ms()
    monkeypatch.setattr(api_keys, "now_ms", lambda: now + (HOUR + 1) * 1_000)
    assert not is_known(old["token"])
    assert is_known(new["token"])


def test_rotation_never_prolongs(logins: Logins) -> None:
    body = made(logins, expires_in_seconds=HOUR)
    before = body["key"]["expires_at"]
    rotate = {"key_id": body["key"]["key_id"], "overlap_seconds": 9 * HOUR}
    logins.ask(ADA, "POST", f"{KEYS}/rotate", **rotate)
    listed = {key["key_id"]: key for key in logins.ask(ADA, "GET", KEYS).body["keys"]}
    assert listed[body["key"]["key_id"]]["expires_at"] == before


def test_revoked_at_once_in_every_process(logins: Logins) -> None:
    body = made(logins)
    assert is_known(body["token"])
    for _ in range(2):  # repeating it answers the same
        assert logins.ask(ADA, "DELETE", KEYS, key_id=body["key"]["key_id"]).status == 200
    assert not is_known(body["token"])
    process_cache.clear()
    assert not is_known(body["token"])


def test_deleted_owner(logins: Logins) -> None:
    """The next user of the name inherits no key."""
    token = made(logins)["token"]
    assert is_known(token)
    deleted = logins.ask(ADMIN, "DELETE", "2.0/mlflow/users/delete", username="ada")
    assert deleted.status == 200
    assert not is_known(token)
    users.create("ada", "", is_admin=False)
    assert not is_known(token)
    assert logins.ask(ADA, "GET", KEYS).body == {"keys": []}


def test_warm_key_costs_one_round_trip(logins: Logins) -> None:
    """As many as a password: key and owner are read together. The day of use is written once."""
    token = made(logins)["token"]
    used = [capacity.last_measurement() for _ in range(3) if is_known(token)]
    assert [usage.round_trips for usage in used if usage] == [3, 1, 1]
    assert logins.ask(ADA, "GET", KEYS).body["keys"][0]["last_used_at"] is not None


def test_demoted_administrator(logins: Logins) -> None:
    token = made(logins, ADMIN)["token"]
    assert context_of(f"Bearer {token}")["is_admin"]
    users.update("admin", is_admin=False)
    assert not context_of(f"Bearer {token}")["is_admin"]


def test_service_account_has_only_keys(logins: Logins) -> None:
    accounts = "3.0/mlflow-serverless/service-accounts"
    assert logins.ask(ADMIN, "POST", accounts, username="robot").status == 200
    assert logins.ask(ADMIN, "POST", accounts, username="robot").code == "RESOURCE_ALREADY_EXISTS"
    token = made(logins, ADMIN, username="robot")["token"]
    assert context_of(f"Bearer {token}")["key_user"] == "robot"
    for password in ("", "SERVICE", "password-of-some-length"):
        header = "Basic " + b64encode(f"robot:{password}".encode()).decode()
        assert "username" not in context_of(header)
    change = {"username": "robot", "password": "password-of-some-length"}
    assert logins.ask(ADMIN, "PATCH", "2.0/mlflow/users/update-password", **change).status == 400
    with pytest.raises(Exception, match="service account"):
        users.ensure("robot")  # a name that an issuer claims


# ------------------------------------------------------------------ scopes


@pytest.mark.parametrize("owner", [ADA, ADMIN], ids=["user", "administrator"])
def test_read_only(logins: Logins, owner: dict[str, Any]) -> None:
    own = experiment(logins, owner, "own")
    caller = bearer(made(logins, owner, scopes=["read"])["token"])
    got = logins.ask(caller, "GET", "2.0/mlflow/experiments/get", experiment_id=own)
    assert got.status == 200
    searched = logins.ask(caller, "POST", "2.0/mlflow/experiments/search", max_results=10)
    assert own in [item["experiment_id"] for item in searched.body["experiments"]]
    delete = logins.ask(caller, "POST", "2.0/mlflow/experiments/delete", experiment_id=own)
    create = logins.ask(caller, "POST", "2.0/mlflow/experiments/create", name="more")
    model = logins.ask(caller, "POST", "2.0/mlflow/registered-models/create", name="m")
    user = logins.ask(caller, "POST", "2.0/mlflow/users/create", username="x", password="y" * 20)
    grant = {"resource_type": "experiment", "resource_id": own, "permission": "MANAGE"}
    granted = logins.ask(
        caller, "POST", "3.0/mlflow/users/permissions/grant", username="bob", **grant
    )
    refused = [tag(logins, caller, own), delete, create, model, user, granted]
    assert [answer.status for answer in refused] == [403] * len(refused)


@pytest.mark.parametrize("owner", [ADA, ADMIN], ids=["user", "administrator"])
def test_one_experiment(logins: Logins, owner: dict[str, Any]) -> None:
    """The others are neither changed, read nor listed, although the owner may."""
    inside, outside = experiment(logins, owner, "in"), experiment(logins, owner, "out")
    caller = bearer(made(logins, owner, scopes=[f"experiment:0{inside}"])["token"])
    assert tag(logins, caller, inside).status == 200
    assert tag(logins, caller, f"0{inside}").status == tag(logins, ADMIN, f"0{inside}").status
    update = "2.0/mlflow/experiments/update"
    refused = [
        tag(logins, caller, outside),
        logins.ask(caller, "GET", "2.0/mlflow/experiments/get", experiment_id=outside),
        logins.ask(caller, "POST", "2.0/mlflow/experiments/delete", experiment_id=inside),
        logins.ask(caller, "POST", update, experiment_id=inside, new_name="x"),
        logins.ask(caller, "POST", "2.0/mlflow/experiments/create", name="more"),
    ]
    assert [answer.status for answer in refused] == [403] * len(refused)
    searched = logins.ask(caller, "POST", "2.0/mlflow/experiments/search", max_results=10)
    assert [item["experiment_id"] for item in searched.body["experiments"]] == [inside]


def test_one_model(logins: Logins) -> None:
    caller = bearer(made(logins, scopes=["model:churn"])["token"])
    create = "2.0/mlflow/registered-models/create"
    assert logins.ask(caller, "POST", create, name="churn").status == 200
    set_tag = "2.0/mlflow/registered-models/set-tag"
    changed = logins.ask(caller, "POST", set_tag, name="churn", key="k", value="v")
    assert changed.status == 200
    rename = "2.0/mlflow/registered-models/rename"
    refused = [
        logins.ask(caller, "POST", create, name="Churn"),
        logins.ask(caller, "POST", create, name="churn2"),
        logins.ask(caller, "POST", rename, name="churn", new_name="other"),
        logins.ask(caller, "DELETE", "2.0/mlflow/registered-models/delete", name="churn"),
    ]
    assert [answer.status for answer in refused] == [403] * len(refused)


def test_scope_adds_no_right(logins: Logins) -> None:
    """A scope beyond the maker's rights opens nothing, and nothing once a grant is revoked."""
    foreign = experiment(logins, ADMIN, "foreign")
    caller = bearer(made(logins, scopes=[f"experiment:{foreign}"])["token"])
    assert tag(logins, caller, foreign).status == 403
    ada = users.get("ada")
    grants.create(ada, "default", Grant("experiment", foreign, "EDIT"))
    assert tag(logins, caller, foreign).status == 200
    grants.put(ada, "default", Grant("experiment", foreign, "DENY"))
    assert tag(logins, caller, foreign).status == 403


def test_key_of_another_workspace(logins: Logins) -> None:
    token = made(logins, scopes=["read"])["token"]
    context = context_of(f"Bearer {token}")
    context["scopes"] = KeyLimits("other", ("read",)).encoded()
    answer = logins.ask({"lambda": context}, "GET", "2.0/mlflow/experiments/get", experiment_id="0")
    assert answer.status == 403


@pytest.mark.parametrize(
    "scopes",
    [
        *([], "read", {"read": 1}, [1], [None], ["Read"], ["READ"], ["read "], ["write"], ["*"]),
        *(["experiment:"], ["experiment:*"], ["model:*"], ["model"], ["admin"], ["gateway:none"]),
        *(["read", ["sql"]], ["read"] * 21, ["model:" + "x" * 2_000]),
    ],
)
def test_invalid_scopes(logins: Logins, scopes: Any) -> None:
    """Never taken for fewer limits."""
    answer = logins.ask(ADA, "POST", KEYS, name="x", scopes=scopes)
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")
    assert logins.ask(ADA, "GET", KEYS).body == {"keys": []}


@pytest.mark.parametrize(
    "fields",
    [
        *({}, {"name": ""}, {"name": " "}, {"name": 1}, {"name": "x" * 300}),
        *({"name": "x", "expires_in_seconds": value} for value in (0, -1, "a", 10**12, True, [])),
    ],
)
def test_invalid_fields(logins: Logins, fields: dict[str, Any]) -> None:
    answer = logins.ask(ADA, "POST", KEYS, **fields)
    assert answer.status == 400 or fields.get("expires_in_seconds") is True


def test_iam_has_no_keys(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """API Gateway would refuse them before any function is called."""
    users.create("ada", hash_password("x" * 12), is_admin=False)
    monkeypatch.setenv("AUTHENTICATION", "iam")
    answer = Logins().ask(ADA, "POST", KEYS, name="x")
    assert answer.code == "FEATURE_DISABLED"
