"""Since which MLflow a route is there, as the tables of routes say, against the servers that were
released: what their protobuf services declare and handlers answer, and the paths of their logins.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest

from mlcore.http import Rpc
from tests.contract.route_world import DOMAINS, routes_of
from tests.e2e import clients

descriptors = pytest.importorskip("google.protobuf.descriptor_pb2")
messages = pytest.importorskip("google.protobuf.message")

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

VERSIONS = ("2.9.2", "2.22.1", "3.1.4", "3.6.0", "3.7.0")
_RULE = re.compile(rb"\n.(GET|POST|PUT|PATCH|DELETE)\x12.(/[ -~]*?)\x1a.(?:\x08(.))?", re.DOTALL)
"""The option of a method in MLflow's protobuf files: verb, path and major version of a route."""


def _plain(path: str) -> str:
    """The path with its variables nameless."""
    return re.sub(r"\{[^}]*\}|<[^>]*>", "{}", path)


def _declared(module: Path) -> Iterator[tuple[str, bytes]]:
    """Name of the request and options of each method of a generated module."""
    for node in ast.walk(ast.parse(module.read_bytes())):
        if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            try:
                file = descriptors.FileDescriptorProto.FromString(node.value)
            except messages.DecodeError:
                continue
            for service in file.service:
                for method in service.method:
                    request = method.input_type.rpartition(".")[2]
                    yield request, method.options.SerializeToString()


def offered(package: Path) -> set[str]:
    """Verbs and paths of the RPCs of a server, and ``* path`` of what its logins know."""
    handlers = (package / "server" / "handlers.py").read_text()
    versioned = "version=endpoint.since.major" in handlers  # before, all were 2.0
    results = set()
    for module in (package / "protos").glob("*_pb2.py"):
        if "databricks" in module.name or "unity" in module.name:
            continue
        for request, options in _declared(module):
            if not re.search(rf"^\s+{request}: \w", handlers, re.MULTILINE):
                continue
            for verb, path, major in _RULE.findall(options):
                version = (major or b"\x02")[0] if versioned else 2
                results.add(f"{verb.decode()} /{version}.0{_plain(path.decode())}")
    for path, version in re.findall(
        r'_get_rest_path\("([^"]*)"(?:, version=(\d))?\)',
        (package / "server" / "auth" / "routes.py").read_text(),
    ):
        results.add(f"* /{version or 2}.0{_plain(path)}")
    return results


def test_routes_are_as_old_as_their_tables_say() -> None:
    servers = {
        version: next(clients.python(version).parents[1].glob("lib/*/site-packages/mlflow"))
        for version in VERSIONS
    }
    servers[clients.CURRENT] = Path(mlflow.__file__).parent
    by_version = {version: offered(package) for version, package in servers.items()}
    known = set().union(*by_version.values())
    wrong, checked = [], 0
    for domain in DOMAINS:
        for route in routes_of(domain).values():
            path = _plain(route.path)
            names = {f"{route.method} {path}", f"* {path}"} & known
            if not isinstance(route, Rpc) or not names:
                continue
            for version, there in by_version.items():
                number = _number(version)
                expected = _number(route.since or "99") <= number
                if route.until:
                    expected = expected and number[:2] <= _number(route.until)
                checked += 1
                if expected != bool(names & there):
                    wrong.append((version, route.method, route.path, route.since))
    assert not wrong
    assert checked > 150 * len(by_version)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
