"""Nobody reads or changes what is another user's through Kubeflow's API: by any route, under any
spelling of an id, in any mode of authentication. What is hidden looks like what is not there."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

import kubeflow.app
from mlcore.http import PlainRoute
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.kubeflow_users import (
    MISSING,
    MODES,
    SECRET,
    KubeflowUser,
    Pairs,
    secrets_of,
    two_users,
)

__all__ = ["two_users"]

Users = tuple[KubeflowUser, KubeflowUser]

ROUTES: Final = [route for route in kubeflow.app.PLAIN_ROUTES if "/readyz/" not in route.path]

_NAMED: Final = {
    "registered_model": "model",
    "model_version": "version",
    "artifact": "doc_artifact",
    "model_artifact": "model_artifact",
    "serving_environment": "environment",
    "inference_service": "service",
    "experiment": "experiment",
    "experiment_run": "run",
}
"""What a path names, by the singular of its first part."""

_BODIES: Final[dict[str, tuple[str, ...]]] = {
    "registered_models": ("name",),
    "versions": ("name", "registeredModelId"),
    "model_versions": ("name", "registeredModelId"),
    "artifacts": ("artifactType", "name", "uri"),
    "model_artifacts": ("name", "uri"),
    "serving_environments": ("name",),
    "inference_services": ("name", "registeredModelId", "servingEnvironmentId", "modelVersionId"),
    "serves": ("name", "modelVersionId"),
    "experiments": ("name",),
    "experiment_runs": ("name", "experimentId"),
}
"""The fields of a body that makes something, by the last part of the path."""

_REFERENCES: Final = {
    "registeredModelId": "model",
    "modelVersionId": "version",
    "servingEnvironmentId": "environment",
    "experimentId": "experiment",
    "experimentRunId": "run",
}

OPEN: Final = {("GET", "environment"), ("POST", "environment")}
"""Environments are read by everybody, and everybody puts services of own models in them."""


def parts_of(route: PlainRoute) -> list[str]:
    """The path behind the version of the API."""
    return route.path.split("/")[4:]


def filled(route: PlainRoute, ids: dict[str, str]) -> str:
    """The path with the ids of what a user made."""
    word = _NAMED[parts_of(route)[0].removesuffix("s")]
    path = route.path.replace("{id}", ids[word])
    return path.replace("{serve_id}", ids["serve"])


def body_of(route: PlainRoute, user: KubeflowUser, number: int) -> dict[str, Any] | None:
    """A body that the route takes from the user."""
    last = next(part for part in reversed(parts_of(route)) if "{" not in part)
    if route.method == "PATCH":
        made: dict[str, Any] = {"description": f"changed {number}"}
        if last == "artifacts":
            made["artifactType"] = "doc-artifact"
        return made
    if route.method != "POST":
        return None
    values = {
        "name": f"new {number}",
        "artifactType": "model-artifact",
        "uri": "s3://elsewhere/x",
        **{field: user.ids[word] for field, word in _REFERENCES.items()},
    }
    return {field: values[field] for field in _BODIES[last]}


def send(
    user: KubeflowUser, route: PlainRoute, path: str, body: Any, query: Pairs = ()
) -> tuple[int, str]:
    return user.send(route.method, path, None if body is None else json.dumps(body), query)


def missing(ids: dict[str, str]) -> dict[str, str]:
    return dict.fromkeys(ids, MISSING)


def test_every_route_by_its_path(two_users: Users, store: Store) -> None:
    """The owner may, the other may not, and hears what one hears of a number that nobody has."""
    amy, ben = two_users
    before = secrets_of(store)
    assert len(before) > 20
    number = 0
    for route in (each for each in ROUTES if "{id}" in each.path):
        number += 1
        body = body_of(route, ben, number)
        hidden = send(ben, route, filled(route, amy.ids), body)
        absent = send(ben, route, filled(route, missing(amy.ids)), body)
        word = _NAMED[parts_of(route)[0].removesuffix("s")]
        if (route.method, word) not in OPEN:
            assert hidden[0] == 403, (route.method, route.path, hidden)
            if word != "environment":
                assert hidden == absent, (route.method, route.path)
        assert SECRET not in hidden[1], (route.method, route.path, hidden)
        assert secrets_of(store) == before, (route.method, route.path)
    # Deletions come last.
    for route in sorted(ROUTES, key=lambda each: each.method == "DELETE"):
        if "{id}" not in route.path or route.method == "DELETE":
            continue
        number += 1
        answered = send(ben, route, filled(route, ben.ids), body_of(route, ben, number))
        assert answered[0] in (200, 201), (route.method, route.path, answered)


def test_every_find_and_list(two_users: Users, store: Store) -> None:
    amy, ben = two_users
    listed = 0
    for route in (each for each in ROUTES if each.method == "GET" and "{" not in each.path):
        single = parts_of(route)[0]
        if single not in _NAMED:  # a list
            status, text = ben.send("GET", route.path)
            assert SECRET not in text, route.path
            if "metric_history" in route.path:
                assert status == 403
                continue
            owned = amy.send("GET", route.path)[1]
            assert single == "serving_environments" or SECRET in owned, route.path
            listed += 1
            for query in ([("pageSize", "1")], [("filterQuery", f"name LIKE '%{SECRET}%'")]):
                page = json.loads(ben.send("GET", route.path, None, query)[1])
                assert page["size"] == len(page["items"]) <= 1 or single == "artifacts", page
                assert SECRET not in json.dumps(page)
                whole = json.loads(text)
                if query[0][0] == "pageSize":
                    assert bool(page["nextPageToken"]) == (whole["size"] > 1), (route.path, page)
                else:
                    assert (page["size"], page["nextPageToken"]) == (0, ""), (route.path, page)
            continue
        word = _NAMED[single]
        if word == "environment":
            continue
        shown = json.loads(amy.send("GET", _path_of(route, word, amy))[1])
        parents = {"version": "model", "run": "experiment", "service": "environment"}
        parent = parents.get(word, "version" if "artifact" in word else "")
        by_name = [("name", shown["name"])]
        elsewhere = [("name", "nothing")]
        if parent:
            by_name = [*by_name, ("parentResourceId", amy.ids[parent])]
            elsewhere = [*elsewhere, ("parentResourceId", MISSING)]
        by_external = [("externalId", shown["externalId"])]
        absent = ben.send("GET", route.path, None, [("externalId", "nothing")])
        for query in (by_name, by_external):
            assert json.loads(amy.send("GET", route.path, None, query)[1])["id"] == shown["id"]
            assert ben.send("GET", route.path, None, query) == absent, (route.path, query)
        assert ben.send("GET", route.path, None, elsewhere) == absent
        assert absent[0] == 403
    assert listed == 14


def _path_of(route: PlainRoute, word: str, user: KubeflowUser) -> str:
    return f"{route.path}s/{user.ids[word]}"


# ------------------------------------------------------------------ spellings


def spelled(field: str, theirs: str, own: str) -> Iterator[Pairs]:
    """Every way to name something of another's in a field of a body, alone and beside an own."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in field)
    other_keys = {field.upper(), field.lower(), field.capitalize(), field.swapcase(), snake}
    other_keys -= {field}
    number = int(theirs) if theirs.isdecimal() else theirs
    values: list[Any] = [theirs, number, [theirs], {"id": theirs}, f" {theirs}", f"{theirs} "]
    values += [
        f"0{theirs}",
        f"+{theirs}",
        f"{theirs}.0",
        f"{theirs}\n",
        f"{theirs}\u200b",
        "",
        None,
    ]
    for value in values:
        yield [(field, value)]
        yield [(field, own), (field, value)]
        yield [(field, value), (field, own)]
    for key in sorted(other_keys):
        for value in (theirs, number, [theirs], f"0{theirs}"):
            yield [(key, value)]
            yield [(field, own), (key, value)]
            yield [(key, value), (field, own)]
        for emptied in (None, ""):
            yield [(field, theirs), (key, emptied)]
            yield [(key, theirs), (field, emptied)]
            yield [(field, emptied), (key, theirs)]
            yield [(key, emptied), (field, theirs)]


def chosen(ways: list[Any], seed: int) -> list[Any]:
    """Some of the ways, others for each route; ``CONTRACT_EXAMPLES=20`` takes nearly all."""
    most = 5 if EXAMPLES == 1 else 8 * EXAMPLES
    return random.Random(seed).sample(ways, min(len(ways), most))


def text_of(pairs: Pairs) -> str:
    """A JSON object with these members in order, repeated keys as they come."""
    members = (f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs)
    return "{" + ",".join(members) + "}"


def targets(amy: KubeflowUser, ben: KubeflowUser, route: PlainRoute) -> Iterator[tuple[str, ...]]:
    """Fields of a route's body, each with another's value and an own one."""
    for field, word in _REFERENCES.items():
        if word != "environment":
            yield field, amy.ids[word], ben.ids[word]
    below = parts_of(route)[-1]
    changed: dict[str, tuple[str, ...]] = {
        "versions": ("version",),
        "artifacts": ("model_artifact", "doc_artifact", "metric", "dataset"),
        "experiment_runs": ("run",),
    }
    for word in changed.get(below, ()) if route.method == "POST" else ():
        yield "id", amy.ids[word], ben.ids[word]
    if "artifact" in route.path:
        yield "uri", f"mlflow-artifacts:/{amy.ids['experiment']}/x", "s3://elsewhere/x"


@pytest.mark.parametrize("two_users", MODES if EXAMPLES > 1 else MODES[1:2], indirect=True)
def test_every_spelling_in_a_body(two_users: Users, store: Store) -> None:
    """Nothing of the owner's changes, and nothing that the other made shows any of it."""
    amy, ben = two_users
    before = secrets_of(store)
    number, taken = 0, 0
    for route in (each for each in ROUTES if each.method in ("POST", "PATCH")):
        path = filled(route, ben.ids) if "{id}" in route.path else route.path
        for field, theirs, own in targets(amy, ben, route):
            for pairs in chosen(list(spelled(field, theirs, own)), number):
                number += 1
                body = body_of(route, ben, number) or {}
                body.pop(field, None)
                status, text = ben.send(route.method, path, text_of([*body.items(), *pairs]))
                assert SECRET not in text, (route.path, pairs, text)
                assert status < 500, (route.path, pairs, text)
                if status < 300:
                    taken += 1
                    assert f'"{theirs}"' not in text or _is_free(field, text), (route.path, pairs)
            assert secrets_of(store) == before, (route.method, route.path, field)
    assert taken > 60
    _check_nothing_shows(ben, amy.ids)


def _is_free(field: str, text: str) -> bool:
    """A text that names nothing: artifacts keep the ids of runs that a client writes."""
    return field in ("experimentId", "experimentRunId") and "artifactType" in text


def _check_nothing_shows(ben: KubeflowUser, theirs: dict[str, str]) -> None:
    """Whatever the other reads, by lists and below each entity that those show."""
    for route in (each for each in ROUTES if each.method == "GET"):
        if "{" not in route.path:
            if parts_of(route)[0] not in _NAMED:
                assert SECRET not in ben.send("GET", route.path)[1], route.path
            continue
        parent = route.path.partition("/{id}")[0]
        listed = json.loads(ben.send("GET", parent)[1])["items"]
        assert listed, route.path
        for entity in listed[-200:]:
            text = ben.send("GET", route.path.replace("{id}", entity["id"]))[1]
            assert SECRET not in text, (route.path, text)


def test_every_spelling_in_a_query(two_users: Users, store: Store) -> None:
    """Of an argument that comes twice, in other cases or with spaces."""
    amy, ben = two_users
    before = secrets_of(store)
    for route in (each for each in ROUTES if each.method == "GET" and "{" not in each.path):
        word = _NAMED.get(parts_of(route)[0])
        if word in (None, "environment"):
            continue
        theirs = json.loads(amy.send("GET", _path_of(route, str(word), amy))[1])
        own = json.loads(ben.send("GET", _path_of(route, str(word), ben))[1])
        parents = {"version": "model", "run": "experiment", "service": "environment"}
        parent = parents.get(str(word), "version")
        names = [("name", theirs["name"]), ("name", own["name"])]
        externals = [("externalId", theirs["externalId"]), ("externalId", own["externalId"])]
        within = [("parentResourceId", user.ids[parent]) for user in (amy, ben)]
        odd = [
            *[(key.upper(), value) for key, value in (names[0], externals[0], within[0])],
            *[(key, f" {value}") for key, value in (externals[0], within[0])],
            *[(f"{key}[]", value) for key, value in (externals[0], within[0])],
            *[(key, "") for key, _ in (names[0], externals[0], within[0])],
        ]
        parts = [*names, *externals, *within, *odd]
        thirds = [*within, ("name", ""), ("externalId", "")]
        ways = list(itertools.product(parts, parts, thirds))
        for query in chosen(ways, len(route.path)):
            text = ben.send("GET", route.path, None, query)[1]
            assert SECRET not in text, (route.path, query)
    assert secrets_of(store) == before
