"""API Gateway's route precedence."""

import itertools
from typing import Any

import pytest

from local.definitions import RouteDefinition, TemplateError
from local.http.routes import Router

KEYS = [
    "GET /pets/dog/1",
    "GET /pets/dog/{id}",
    "GET /pets/{proxy+}",
    "ANY /pets/cat",
    "POST /pets/cat",
    "POST /only",
    "GET /{proxy+}",
    "ANY /{proxy+}",
    "ANY /{kind}/list",
    "$default",
]


@pytest.mark.parametrize(
    ("method", "path", "key", "values"),
    [
        ("GET", "/pets/dog/1", "GET /pets/dog/1", {}),
        ("GET", "/pets/dog/2", "GET /pets/dog/{id}", {"id": "2"}),
        ("GET", "/pets/dog/2/x", "GET /pets/{proxy+}", {"proxy": "dog/2/x"}),
        ("GET", "/pets/bird", "GET /pets/{proxy+}", {"proxy": "bird"}),
        ("GET", "/pets/cat", "ANY /pets/cat", {}),
        ("POST", "/pets/cat", "POST /pets/cat", {}),
        ("POST", "/pets/dog/1", "ANY /{proxy+}", {"proxy": "pets/dog/1"}),
        ("GET", "/only", "GET /{proxy+}", {"proxy": "only"}),
        ("DELETE", "/only", "ANY /{proxy+}", {"proxy": "only"}),
        ("GET", "/pets/list", "GET /pets/{proxy+}", {"proxy": "list"}),
        ("GET", "/cows/list", "ANY /{kind}/list", {"kind": "cows"}),
        ("GET", "/pets/", "GET /{proxy+}", {"proxy": "pets/"}),
        ("GET", "/pets", "GET /{proxy+}", {"proxy": "pets"}),
        ("GET", "/Pets/dog/1", "GET /{proxy+}", {"proxy": "Pets/dog/1"}),
        ("GET", "/", "$default", {}),
    ],
)
def test_precedence_whatever_the_order(method: Any, path: Any, key: Any, values: Any) -> None:
    for shift in range(len(KEYS)):
        order = list(itertools.islice(itertools.cycle(KEYS), shift, shift + len(KEYS)))
        match = Router(RouteDefinition(one, "F") for one in order).match(method, path)
        assert match is not None
        assert (match.key, match.path_parameters) == (key, values)


def test_no_route() -> None:
    router = Router([RouteDefinition("GET /a/{proxy+}", "F")])
    assert router.match("GET", "/a") is None
    assert router.match("GET", "/a/") is None
    assert router.match("POST", "/a/b") is None
    assert router.match("GET", "/a/b") == router.match("GET", "/a/b")


@pytest.mark.parametrize("keys", [["GET"], ["GET a"], ["GET /{proxy+}/a"], ["GET /a", "GET /a"]])
def test_refused(keys: Any) -> None:
    with pytest.raises(TemplateError):
        Router(RouteDefinition(key, "F") for key in keys)
