"""Stored data of a release, and what the product answered about it.

A release is a folder of ``tests/contract/releases``: ``items.jsonl.gz`` holds every item of a table
as DynamoDB's JSON (binary values in base64), ``files.jsonl.gz`` the artifact store, and
``answers.jsonl.gz`` the requests that read them with their answers. ``pytest
tests/contract/test_compatibility.py`` records the folder anew where its environment has
``RECORD_RELEASE=0.1.0``.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import indexer.app
from tests.contract.conftest import Store
from tests.contract.kubeflow_api import KubeflowApi, properties
from tests.contract.route_requests import NOT_SENT, REQUESTS
from tests.contract.route_world import World, routes_of
from tests.contract.streams import following

LAST_RELEASE: Final = "0.1.0"
RELEASES: Final = Path(__file__).with_name("releases")
DOMAINS: Final = (
    *("evaluation", "experiments", "gateway", "logged_models", "mcp_servers"),
    *("registry", "runs", "traces", "users", "webhooks"),
)
"""Functions whose answers follow from the table alone."""
SEARCHES: Final = ("/search", "/search-datasets")
OF_THE_CODE: Final = ("supported-", "provider-config", "secrets/config", "budgets/windows")
"""Parts of paths whose answers follow from the code or the clock."""
MADE_SINCE: Final = (
    *("/mlflow-serverless/keys", "/mlflow-serverless/queries", "/scim/v2/"),
    *("/mlflow-serverless/alerts", "/prompt-optimization/", "/issues/schedule/"),
)
"""Parts of paths that the last release does not have."""
OF_THE_CLOCK: Final = ("/jobs",)
"""Parts of routes whose answers change with time: a job that waited too long has failed."""
ANSWERED_SINCE: Final = frozenset(
    {"last_seen_timestamp", "last_updated_by", "allowed_actions", "kind"}
)
"""Fields that answers have and those of the last release had not."""
ORDERED_SINCE: Final = {"roles": "name", "permissions": "resource_pattern"}
"""Lists that the last release answered in another order, and the field that tells their rows
apart."""
POINTS: Final = 3_000

Item = dict[str, Any]


class Asked(NamedTuple):
    """A request of a route, the names that fill it in, and its answer."""

    route: str
    names: dict[str, str]
    answer: Any


def make(store: Store, world: World) -> list[tuple[str, dict[str, str]]]:
    """Writes one of everything and follows the stream to its end. Returns the requests that read
    it: the route, and the names that fill it in."""
    requests = []
    for domain in DOMAINS:
        world.prepare(domain)
        if domain == "runs":
            _long_history(world)
        for name in routes_of(domain):
            method, path = name.split()
            reads = method == "GET" or path.endswith(SEARCHES)
            skipped = name in NOT_SENT or any(part in path for part in (*OF_THE_CODE, *MADE_SINCE))
            if reads and not skipped and "artifact" not in path:
                requests.append((name, dict(world.names)))
    _kubeflow()
    with following(store) as stream:
        while records := stream.fresh():
            indexer.app.handler({"Records": records}, None)
    return requests


def _long_history(world: World) -> None:
    """A run that has ended, with packs of points, and values of every kind."""
    for first in range(0, POINTS, 1_000):
        points = [
            {"key": "m", "value": n / 7, "timestamp": n, "step": n}
            for n in range(first, first + 1_000)
        ]
        world.made("POST", "/2.0/mlflow/runs/log-batch", run_id="{run}", metrics=points)
    odd = [{"key": "odd", "value": v, "timestamp": 9, "step": -1} for v in ("NaN", "Infinity")]
    long_param = [{"key": "long", "value": "é" * 2_000}]
    world.made("POST", "/2.0/mlflow/runs/log-batch", run_id="{run}", metrics=odd, params=long_param)
    world.made("POST", "/2.0/mlflow/runs/update", run_id="{run}", status="FINISHED", end_time=9)


def _kubeflow() -> None:
    api = KubeflowApi()
    model = api.post("registered_models", name="served", customProperties=properties(team="a", n=1))
    version = api.post("model_versions", name="1", registeredModelId=model["id"])
    artifact = {"artifactType": "model-artifact", "name": "weights", "uri": "s3://bucket/weights"}
    api.post(f"model_versions/{version['id']}/artifacts", **artifact)
    environment = api.post("serving_environments", name="prod")
    service = {"servingEnvironmentId": environment["id"], "registeredModelId": model["id"]}
    made = api.post("inference_services", name="service", **service)
    api.post(f"inference_services/{made['id']}/serves", name="s", modelVersionId=version["id"])


KUBEFLOW_LISTS: Final = (
    *("registered_models", "model_versions", "artifacts", "experiments", "experiment_runs"),
    *("serving_environments", "inference_services"),
)


def answers(world: World, requests: Iterable[tuple[str, dict[str, str]]]) -> list[Asked]:
    """What the product answers now."""
    results = []
    for name, names in requests:
        world.names = dict(names)
        method, path = name.split()
        status, body = world.send(method, path, REQUESTS[name])
        assert status == 200, (name, status, body)
        results.append(Asked(name, names, body))
    lists = {path: KubeflowApi().get(path, pageSize="100") for path in KUBEFLOW_LISTS}
    return [*results, *(Asked(path, {}, lists[path]) for path in KUBEFLOW_LISTS)]


def as_before(now: Any, before: Any) -> Any:
    """An answer without the fields that the last release did not have, in its order."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {
            key: as_before(_in_order(key, value, before.get(key)), before.get(key))
            for key, value in now.items()
            if key in before or key not in ANSWERED_SINCE
        }
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return list(map(as_before, now, before))
    return now


def _in_order(name: str, now: Any, before: Any) -> Any:
    field = ORDERED_SINCE.get(name)
    if field is None or not isinstance(now, list) or not isinstance(before, list):
        return now
    places = {each[field]: place for place, each in enumerate(before)}
    return sorted(now, key=lambda each: places.get(each[field], len(places)))


def forms(items: Iterable[Item]) -> dict[str, list[str]]:
    """The stored form of each type of item: its attributes with their DynamoDB types; of binary
    values also how the rest is kept, which the first bytes say."""
    seen: dict[str, set[str]] = {}
    for item in items:
        form = seen.setdefault(item["type"]["S"], set())
        for name, value in item.items():
            ((kind, content),) = value.items()
            form.add(f"{name}:{kind}{_packing(content) if kind == 'B' else ''}")
    return {kind: sorted(form) for kind, form in sorted(seen.items())}


def _packing(content: bytes) -> int | str:
    """The first byte, or "zlib": zlib's header (RFC 1950) begins with the size of the window, and
    every release reads each size."""
    is_zlib = content[0] & 15 == zlib.DEFLATED and int.from_bytes(content[:2]) % 31 == 0
    return "zlib" if is_zlib else content[0]


class Release(NamedTuple):
    """What a release stored, and what it answered."""

    items: list[Item]
    files: list[tuple[str, bytes]]
    """Paths below the artifact store, and the bytes of each file."""
    asked: list[Asked]


def files_of(store: Path) -> list[tuple[str, bytes]]:
    return [
        (str(path.relative_to(store)), path.read_bytes())
        for path in sorted(store.rglob("*"))
        if path.is_file()
    ]


def write(name: str, release: Release) -> None:
    folder = RELEASES / name
    folder.mkdir(parents=True, exist_ok=True)
    _pack(folder / "items.jsonl.gz", map(_in_base64, release.items))
    _pack(folder / "files.jsonl.gz", [_in_base64([*row]) for row in release.files])
    _pack(folder / "answers.jsonl.gz", release.asked)


def read(name: str) -> Release:
    folder = RELEASES / name
    items = [_from_base64(item) for item in _unpack(folder / "items.jsonl.gz")]
    files = [(path, _from_base64(text)) for path, text in _unpack(folder / "files.jsonl.gz")]
    return Release(items, files, [Asked(*row) for row in _unpack(folder / "answers.jsonl.gz")])


def _pack(path: Path, rows: Iterable[Any]) -> None:
    text = "".join(f"{json.dumps(row, sort_keys=True)}\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _unpack(path: Path) -> Iterator[Any]:
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        yield json.loads(line)


def _in_base64(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: _in_base64(inner) for key, inner in value.items()}
    return [_in_base64(inner) for inner in value] if isinstance(value, list) else value


def _from_base64(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return {key: _from_base64(inner) for key, inner in value.items()}
    return [_from_base64(inner) for inner in value] if isinstance(value, list) else value
