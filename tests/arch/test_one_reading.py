"""A request is read once: by the parser of its route. The policy, the function, what follows and
what the answer hides get the very object that the parser made."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from mlcore.environment import AUTHENTICATION
from mlcore.errors import MlflowError
from mlcore.http import PlainRoute, Response, Rpc, Sent, lambda_handler
from mlcore.http.routes import Route
from mlcore.policies import route_authorization
from mlcore.policies.route_authorization import RouteRules
from mlcore.wire.message import fields_of
from tests.arch import project
from tests.arch.routes import ROUTES

READER: Final = "layers/core/python/mlcore/http/raw_request.py"
"""The one file that takes a body and a query out of an event."""

PARSERS: Final = {
    *(
        f"layers/core/python/mlcore/http/{name}.py"
        for name in ("__init__", "kubeflow_responses", "message_parsing")
    ),
    # What makes and passes on what was sent, without reading it.
    *(
        f"layers/core/python/mlcore/http/{name}.py"
        for name in ("gate", "handler", "request", "rest_events")
    ),
    *(f"functions/catalog/{name}.py" for name in ("calls", "registration")),
    "functions/agent_tools/json_rpc.py",
    "functions/artifacts/messages.py",
    "functions/catalog_loader/preview.py",
    "functions/demo/service.py",
    "functions/gateway_calls/request_parsing.py",
    "functions/kubeflow/parsing.py",
    "functions/signin/messages.py",
    "functions/skills/registration_body.py",
    "functions/traces/ingest/exports.py",
    "functions/users/scim/messages.py",
    "functions/users/signup.py",
}
"""The files that see a request as it was sent."""

_OF_EVENTS: Final = {"rawQueryString", "isBase64Encoded", "cookies"}
_MAKERS: Final = {
    "layers/core/python/mlcore/http/handler.py": {"isBase64Encoded", "cookies"},
    "functions/gateway_calls/streaming_runtime.py": {"isBase64Encoded", "cookies"},
    "layers/core/python/mlcore/http/rest_events.py": _OF_EVENTS,
}
"""What the files name that make or pass on answers, and the one that makes events of events."""
_READS: Final = {"json", "base64", "binascii", "urllib", "email"}
_PARSING: Final = ("mlcore.http", "mlcore.kubeflow.body", "mlcore.kubeflow.pages")


class Shipped(NamedTuple):
    """A file that is shipped."""

    name: str
    path: Path
    imports: frozenset[str]
    attributes: frozenset[str]
    """The names of attributes that it reads or sets."""


@functools.cache
def _shipped() -> tuple[Shipped, ...]:
    shipped = []
    for path in project.sources("layers", "functions"):
        tree = ast.parse(path.read_text())
        attributes = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        name = path.relative_to(project.ROOT).as_posix()
        shipped.append(Shipped(name, path, frozenset(_imports(tree)), frozenset(attributes)))
    return tuple(shipped)


def _imports(tree: ast.Module) -> Iterator[str]:
    """What a file imports: modules, and ``module.name`` for names out of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_one_file_reads_events() -> None:
    for name, path, *_ in _shipped():
        if name == READER:
            continue
        texts = {text for _, text in project.literals(path)} & (
            _OF_EVENTS - _MAKERS.get(name, set())
        )
        assert not texts, (name, "only mlcore/http/raw_request.py reads what an event says", texts)


def test_parsers_alone_see_what_was_sent() -> None:
    seen = {
        name
        for name, _, imports, _ in _shipped()
        if name != READER
        and any(imported.endswith((".Sent", "http.raw_request.Event")) for imported in imports)
    }
    assert seen == PARSERS


def test_nobody_else_decodes_messages() -> None:
    for name, _, imports, _ in _shipped():
        if name in PARSERS:
            continue
        assert not any("http.parsing" in imported for imported in imports), name


def test_policies_read_nothing_but_messages() -> None:
    for name, _, imports, attributes in _shipped():
        if "/mlcore/policies/" not in name:
            continue
        for imported in imports:
            assert imported.partition(".")[0] not in _READS, (name, imported)
            assert not imported.startswith(_PARSING), (name, imported)
        forbidden = {"headers", "event", "parameters", "rawPath", "loads"}
        assert attributes.isdisjoint(forbidden), name


def _event(route: Route, path: str) -> dict[str, Any]:
    """A request that most routes take."""
    fields: dict[str, Any] = {"name": "m", "model": "m", "artifactType": "model-artifact"}
    if isinstance(route, Rpc):
        fields = {}
        for field in fields_of(route.message):
            hint = getattr(field.hint, "__origin__", field.hint)
            value = {str: "1", int: 1, float: 1.0}.get(hint)
            if value is not None:
                fields[field.name] = [value] if field.repeated else value
    query = "&".join(f"{name}={value}" for name, value in fields.items())
    more = "name=m&externalId=x&request_id=t&run_id=r&run_uuid=r&path=f"
    return {
        "rawPath": path,
        "rawQueryString": query if isinstance(route, Rpc) else more,
        "headers": {"content-type": "application/json", "x-mlflow-experiment-id": "1"},
        "requestContext": {
            "http": {"method": route.method},
            "authorizer": {"lambda": {"username": "ann", "is_admin": False}},
        },
        "isBase64Encoded": False,
        "body": json.dumps(fields),
    }


def _path(route: Route) -> str:
    path = route.path
    while "{" in path:
        before, _, rest = path.partition("{")
        path = f"{before}1{rest.partition('}')[2]}"
    if isinstance(route, PlainRoute):
        return path
    return f"/{'ajax-api' if route.ajax_only else 'api'}{path}"


def test_all_get_the_same_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every route: policy, function, what follows, what is hidden."""
    seen: list[tuple[str, Any]] = []

    def remember(who: str, answer: Any) -> Any:
        def look(_access: Any, message: Any, *_rest: Any) -> Any:
            seen.append((who, message))
            return answer

        return look

    def function(message: Any, _request: Any) -> Any:
        seen.append(("function", message))
        return answer

    rules = RouteRules(remember("policy", True), remember("follow", None), remember("hidden", None))
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setattr(route_authorization, "load_rules", lambda *_names, **_facts: rules)
    reached = 0
    missed = []
    for route in ROUTES:
        answer: Any = Response(200, "") if isinstance(route, PlainRoute) else {}
        changed: Any = route._replace(function=function)
        rpcs = () if isinstance(route, PlainRoute) else (changed,)
        handler = lambda_handler(rpcs, (changed,) if isinstance(route, PlainRoute) else ())
        seen.clear()
        handler(_event(route, _path(route)), None)
        received = dict(seen)
        if "function" not in received:
            missed.append(f"{route.method} {route.path}")
            continue
        reached += 1
        message = received["function"]
        assert not isinstance(message, Sent), route
        if route_authorization.is_public(_path(route)):
            continue
        expected = {"function", "policy"}
        expected |= set() if isinstance(route, PlainRoute) else {"follow", "hidden"}
        assert set(received) == expected, route
        assert all(argument is message for argument in received.values()), route
    assert reached > len(ROUTES) * 0.85, missed


def test_no_parser_passes_on_what_was_sent() -> None:
    for route in ROUTES:
        if not isinstance(route, PlainRoute):
            continue
        event = _event(route, _path(route))
        parameters = {
            "id": "1",
            "serve_id": "1",
            "artifact_path": "x",
            "model_name": "m",
            "path": "x",
            "endpoint_name": "e",
        }
        sent = Sent(route.method, _path(route), event["headers"], event, parameters)
        with contextlib.suppress(MlflowError):
            assert not isinstance(route.parse(sent), Sent), route
