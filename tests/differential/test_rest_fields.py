"""Every field of every RPC of experiments, runs and metrics, given every kind of bad value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.differential.pair import Pair
from tests.differential.rest import API, Call, get, post
from tests.differential.rpc_fields import (
    ABSENT,
    EXPERIMENT,
    ITEMS,
    POSTS,
    QUERIES,
    RAW,
    RUN,
    TEXTS,
    Case,
    Field,
    Variant,
)

pytestmark = pytest.mark.e2e

LENIENT = frozenset({"partial parse", "unknown view", "list as body"})


def subject() -> list[Call]:
    """A new experiment with a run; every reply is compared as well."""
    name = f"fields-{uuid4().hex[:12]}"
    return [
        post("experiments/create", {"name": name}, saves={"experiment": "experiment_id"}),
        post(
            "experiments/set-experiment-tag",
            {"experiment_id": EXPERIMENT, "key": "k", "value": "v"},
        ),
        post(
            "runs/create",
            {"experiment_id": EXPERIMENT, "run_name": "n", "start_time": 5},
            saves={"run": "run.info.run_id"},
        ),
        post("runs/set-tag", {"run_id": RUN, "key": "k", "value": "v"}),
    ]


def state() -> list[Call]:
    return [get("experiments/get", experiment_id=EXPERIMENT), get("runs/get", run_id=RUN)]


def unique(body: dict[str, Any]) -> dict[str, Any]:
    return {
        key: f"fields-{uuid4().hex[:12]}" if value == "{unique}" else value
        for key, value in body.items()
    }


def replaced(body: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    """The body with one field changed, at the place where it stood: stock's parser stops there."""
    changed = {**body, field: value}
    return {key: part for key, part in changed.items() if part is not ABSENT}


def check(both: Pair, calls: Iterator[Call], repeatable: bool = True) -> None:
    """Sends each call and compares what is stored then.

    The subject is a new one where the call before may have left the servers different, and for
    calls that are not repeatable where it has changed anything.
    """
    failures = []
    fresh = False
    for call in calls:
        if not fresh:
            for step in subject():
                both.send(step)
        try:
            reply, permitted = both.exchange(call)
            fresh = reply.status >= 400 and not permitted
            if not fresh and not permitted:
                for step in state():
                    both.send(step)
                fresh = repeatable
        except AssertionError as failure:
            fresh = False
            prefix = "" if str(call) in str(failure) else f"after {call}\n"
            failures.append(f"{prefix}{failure}")
    assert not failures, f"{len(failures)} differences\n" + "\n".join(failures)


LISTED = 3
"""So many experiments are asked for at the most."""


def prepare(both: Pair, path: str) -> None:
    """New experiments are what a search finds first: other tests may have left older ones on one of
    the servers, which the other refused."""
    if path == "experiments/search":
        for _ in range(LISTED):
            for step in subject():
                both.send(step)


@pytest.mark.parametrize(
    ("case", "field"),
    [
        pytest.param(case, field, id=f"{case.path}-{field.name}")
        for case in POSTS
        for field in case.fields
    ],
)
def test_field(both: Pair, case: Case, field: Field) -> None:
    prepare(both, case.path)
    check(
        both,
        (
            post(
                case.path,
                replaced(unique(case.valid), field.name, variant.value),
                permits=LENIENT if variant.lenient else frozenset(),
            )
            for variant in field.variants
        ),
        case.repeatable,
    )


@pytest.mark.parametrize(
    ("path", "items", "valid", "field", "variants"),
    [pytest.param(*item, id="-".join((item[0], item[1], item[3]))) for item in ITEMS],
)
def test_item_field(
    both: Pair,
    path: str,
    items: str,
    valid: dict[str, Any],
    field: str,
    variants: tuple[Variant, ...],
) -> None:
    rest: dict[str, Any] = (
        {"name": "{unique}"} if path.startswith("experiments") else {"run_id": RUN}
    )
    check(
        both,
        (
            post(
                path,
                {**unique(rest), items: [replaced(valid, field, variant.value)]},
                permits=LENIENT if variant.lenient else frozenset(),
            )
            for variant in variants
        ),
        items not in {"params", "models"},
    )


@pytest.mark.parametrize(
    ("path", "query"), QUERIES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_query(both: Pair, path: str, query: dict[str, Any]) -> None:
    prepare(both, path)
    path = path if path.startswith("/") else API + path
    check(
        both,
        (
            Call("GET", path, query=replaced(query, field, value), permits=LENIENT)
            for field in query
            for value in TEXTS
        ),
    )


@pytest.mark.parametrize("path", sorted({case.path for case in POSTS} - {"runs/create"}))
def test_body(both: Pair, path: str) -> None:
    check(both, (post(path, raw=raw, permits=LENIENT) for raw in RAW))
    types = (
        "text/plain",
        "application/xml",
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "",
        None,
    )
    check(both, (post(path, raw=b"{}", content_type=kind) for kind in types))
