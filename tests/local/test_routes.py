"""API Gateway's route precedence."""

import itertools
import re
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.http.routes import Router
from local.template_definitions import RouteDefinition, TemplateError

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
        match = Router(RouteDefinition(route_key, "F") for route_key in order).match(method, path)
        assert match is not None
        assert (match.key, match.path_parameters) == (key, values)


SEGMENTS = st.sampled_from(["a", "b", "{x}", "{y}"])
ROUTES = st.tuples(
    st.sampled_from(["GET", "POST", "ANY"]),
    st.lists(SEGMENTS, min_size=1, max_size=3),
    st.sampled_from([[], ["{rest+}"]]),
)


def _weight(definition: RouteDefinition) -> tuple[list[int], bool]:
    """Ascending from the most specific."""
    method, _, path = definition.key.partition(" ")
    kinds = [1 + ("+" in segment) if "{" in segment else 0 for segment in path[1:].split("/")]
    return kinds, method == "ANY"


def _fits(definition: RouteDefinition, method: str, path: str) -> bool:
    named, _, template = definition.key.partition(" ")
    pattern = re.sub(r"{[xy]}", "[^/]+", template).replace("{rest+}", ".+")
    return named in {method, "ANY"} and re.fullmatch(pattern, path) is not None


@given(
    st.lists(ROUTES, max_size=8),
    st.sampled_from(["GET", "POST"]),
    st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=5),
)
def test_the_first_that_fits_of_all_ordered_by_precedence(
    routes: list[tuple[str, list[str], list[str]]], method: str, segments: list[str]
) -> None:
    keys = dict.fromkeys(f"{name} /{'/'.join(path + rest)}" for name, path, rest in routes)
    definitions = [RouteDefinition(key, "F") for key in keys]
    path = "/" + "/".join(segments)
    fitting = sorted(
        (definition for definition in definitions if _fits(definition, method, path)), key=_weight
    )
    match = Router(definitions).match(method, path)
    assert (match and match.key) == (fitting[0].key if fitting else None)


def test_nothing_is_kept_of_what_was_asked_for() -> None:
    router = Router(RouteDefinition(key, "F") for key in KEYS)
    tracemalloc.start()
    try:
        for number in range(5_000):
            router.match("GET", f"/pets/dog/{number}/" + 100 * "x")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20_000


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
