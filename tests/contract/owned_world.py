"""What a user who logged in makes with the product's routes, and requests of theirs about another
user's things, spelled in every way."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import pytest

from mlcore.environment import AUTHENTICATION
from mlcore.http import PlainRoute, lambda_handler
from mlcore.http.routes import Route, Rpc
from mlcore.wire.message import fields_of
from tests.contract.logins import ADMIN
from tests.contract.route_requests import REQUESTS
from tests.contract.route_world import Fields, World, routes_of
from tests.contract.trace_calls import resource_spans, span

SECRET: Final = "SECRET-VALUE"
"""In values that the owner wrote; nobody else sends it."""
HIDDEN: Final = "HIDDEN-NAME"
"""In names that the owner gave; others ask by them."""

DOMAINS: Final = (
    *("artifacts", "evaluation", "experiments", "gateway", "logged_models", "mcp_servers"),
    *("registry", "runs", "skills", "traces"),
)
"""Whose routes are about what users make."""
_OTHERS: Final = ("ui", "webhooks", "workspaces")

_WORDS: Final = {
    **dict.fromkeys(("experiment_id", "experiment_ids"), "experiment"),
    **dict.fromkeys(("run_id", "run_uuid", "run_ids", "source_run_id"), "run"),
    **dict.fromkeys(("model_id", "path_model_id"), "model"),
    **dict.fromkeys(("trace_id", "trace_ids", "request_id", "request_ids"), "trace"),
    **dict.fromkeys(("item_id", "item_ids"), "trace"),
    **{"dataset_id": "dataset_id", "dataset_record_ids": "record", "schema_id": "schema"},
    **{"queue_id": "queue", "issue_id": "issue_id", "secret_id": "secret"},
    **{"model_definition_id": "definition", "endpoint_id": "endpoint"},
    **{"scorer_id": "scorer", "artifact_path": "artifact_path+"},
}
"""Fields that name something, and which of a world's names fits."""


class _Names(dict[str, str]):
    """Names of a world; those that the owner chooses begin with a marker, unless they may have no
    capitals."""

    def __init__(self, marker: str) -> None:
        super().__init__()
        self._marker = marker

    def __setitem__(self, key: str, value: str) -> None:
        chosen = key in ("name", "experiment_name") and not value.startswith("skill-")
        if self._marker and chosen and self._marker not in value:
            value = f"{self._marker}-{value}"
        super().__setitem__(key, value)


class OwnedWorld(World):
    """A world that a user makes. What only administrators make an administrator makes."""

    def __init__(self, caller: dict[str, Any], mode: str, *, is_owner: bool = False) -> None:
        super().__init__()
        self.names = _Names(HIDDEN if is_owner else "")
        self._caller, self._is_owner = caller, is_owner
        administrator = {"iam": {"userArn": "arn:admin"}} if mode == "iam" else ADMIN
        self._administrator = administrator
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(AUTHENTICATION, mode)
            self._handlers = {domain: _handler(domain) for domain in (*DOMAINS, *_OTHERS)}

    def send(self, method: str, path: str, fields: Fields) -> tuple[int, Any]:
        """As :meth:`World.send`, of a template whose names are the user's own."""
        text = json.dumps(fields)
        if self._is_owner:
            text = text.replace('"value": "v"', f'"value": "{SECRET}"')
        route = self._route(method, path)
        call = Call(route, self._filled(path), [*json.loads(self._filled(text)).items()])
        status, answered = self.ask(call)
        if status == 403:
            status, answered = self.ask(call, self._administrator)
        return status, json.loads(answered) if answered.startswith("{") else answered

    def graphql(self, query: str) -> tuple[int, str]:
        return self.ask(Call(self._route("POST", "/graphql"), "/graphql", [("query", query)]))

    def _route(self, method: str, path: str) -> Route:
        name = f"{method} {path}"
        return routes_of(self._domains[name])[name]

    def ask(self, call: Call, caller: dict[str, Any] | None = None) -> tuple[int, str]:
        """Status and body of the answer."""
        route = call.route
        prefix = "/api"
        if isinstance(route, PlainRoute):
            prefix = ""
        elif route.ajax_only:
            prefix = "/ajax-api"
        headers = {
            "content-type": "application/json",
            "host": "localhost",
            "x-mlflow-experiment-id": self.names.get("experiment", ""),
            **call.headers,
        }
        event: Fields = {
            "version": "2.0",
            "rawPath": prefix + call.path,
            "rawQueryString": "",
            "headers": headers,
            "requestContext": {
                "http": {"method": route.method},
                "requestId": "test",
                "authorizer": caller or self._caller,
            },
            "isBase64Encoded": False,
        }
        if route.method == "GET" or "upload-artifact" in route.path:
            event["rawQueryString"] = urlencode(call.pairs, doseq=True)
        if route.method != "GET":
            event["body"] = text_of(call.pairs)
        elif call.body:
            event["body"] = call.body
        domain = self._domains[f"{route.method} {route.path}"]
        answer = self._handlers[domain](event, None)
        return answer["statusCode"], str(answer.get("body") or "")

    def strange(self, name: str, other: World, rng: random.Random, most: int) -> Iterator[Call]:
        """Requests of a route that name the other world's things, some of each field's ways."""
        method, path = name.split()
        route = self._route(method, path)
        own = json.loads(self._filled(json.dumps(REQUESTS[name])))
        theirs = json.loads(other._filled(json.dumps(REQUESTS[name])))
        here, there = self._filled(path), other._filled(path)
        if here != there:
            yield Call(route, there, [*own.items()])
            yield Call(route, there, [*theirs.items()])
            yield Call(route, here, [*theirs.items()])
        for field in dict.fromkeys([*own, *self._ids_of(route)]):
            mine = own.get(field, self.names.get(_WORDS.get(field, "")))
            foreign = theirs.get(field, other.names.get(_WORDS.get(field, "")))
            if mine == foreign or foreign is None:
                continue
            rest = [(key, value) for key, value in own.items() if key != field]
            ways = list(spelled(field, foreign, mine))
            for pairs in rng.sample(ways, min(most, len(ways))):
                yield Call(route, here, [*rest, *pairs])
            if method == "GET":
                yield Call(route, here, [], text_of([*rest, (field, foreign)]))
                yield Call(route, here, [*own.items()], text_of([*rest, (field, foreign)]))
        for changed in nested(own, other.names):
            yield Call(route, here, [*changed.items()])
        if "/v1/traces" in path:
            theirs = resource_spans([span(other.names["spanned_trace"].removeprefix("tr-"), 2)])
            yield Call(route, here, [*theirs.items()])
            yield Call(route, here, [*own.items()], "", {"x-mlflow-run-id": other.names["run"]})
            elsewhere = {"x-mlflow-experiment-id": other.names["experiment"]}
            yield Call(route, here, [*own.items()], "", elsewhere)

    @staticmethod
    def _ids_of(route: Route) -> list[str]:
        """Fields of the route's message that name something."""
        if not isinstance(route, Rpc):
            return ["run_id", "run_uuid"] if "artifact" in route.path else []
        return [field.name for field in fields_of(route.message) if field.name in _WORDS]


class Call(NamedTuple):
    route: Route
    path: str
    pairs: list[tuple[str, Any]]
    """Members of the body, or arguments of the query, in order; one may come more than once."""
    body: str = ""
    """Of a GET."""
    headers: Mapping[str, str] = {}


def _handler(domain: str) -> Any:
    app = import_module(f"{domain}.app")
    return lambda_handler(getattr(app, "RPCS", ()), getattr(app, "PLAIN_ROUTES", ()))


def nested(fields: Any, names: Mapping[str, str], *, inside: bool = False) -> Iterator[Any]:
    """Copies of a request's fields, each with one field below the first level that names another's
    thing."""
    if isinstance(fields, list):
        for index, item in enumerate(fields):
            for changed in nested(item, names, inside=True):
                yield [*fields[:index], changed, *fields[index + 1 :]]
    if not isinstance(fields, dict):
        return
    for key, value in fields.items():
        named = names.get(_WORDS.get(key, ""))
        if inside and named is not None:
            yield {**fields, key: named}
        for changed in nested(value, names, inside=True):
            yield {**fields, key: changed}


def text_of(pairs: list[tuple[str, Any]]) -> str:
    """A JSON object with these members in order, repeated keys as they come."""
    members = (f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs)
    return "{" + ",".join(members) + "}"


def _values(theirs: Any, own: Any) -> list[Any]:
    """Ways to write a value that names another's thing."""
    if isinstance(theirs, list):
        first = theirs[0]
        mixed = [*own, *theirs] if isinstance(own, list) else theirs
        return [theirs, first, mixed, mixed[::-1], [theirs], [None, first], {"0": first}]
    if not isinstance(theirs, str):
        return [theirs, [theirs]]
    results: list[Any] = [
        theirs,
        [theirs],
        {"id": theirs},
        f" {theirs}",
        f"{theirs} ",
        f"{theirs}\n",
    ]
    if theirs.isdecimal():
        results += [int(theirs), float(theirs), f"0{theirs}", f"+{theirs}", f"{theirs}.0"]
        results += ["".join(chr(0x660 + int(digit)) for digit in theirs), f"0_{theirs}"]
    return results


def spelled(field: str, theirs: Any, own: Any) -> Iterator[list[tuple[str, Any]]]:
    """Every way to name another's thing in a field, alone and beside an own one."""
    first, *rest = field.split("_")
    camel = first + "".join(part.capitalize() for part in rest)
    for value in _values(theirs, own):
        for key in dict.fromkeys((field, camel, field.upper(), f"{field}[]")):
            yield [(key, value)]
            yield [(field, own), (key, value)]
            yield [(key, value), (field, own)]
    for emptied in (None, "", []):
        yield [(field, theirs), (camel, emptied)]
        yield [(camel, theirs), (field, emptied)]
        yield [(field, emptied), (camel, theirs)]
