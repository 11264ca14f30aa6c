"""Prints what an installed MLflow offers to those who speak with it, as JSON.

Runs in the interpreter of any MLflow from 3.1 on, so it imports nothing of this project. A surface
that a version does not have is empty.

python tests/parity/surfaces.py
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] = "true"
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

_PROTOS: tuple[str, ...] = (
    "service",
    "model_registry",
    "mlflow_artifacts",
    "webhooks",
    "assessments",
    "datasets",
)
_PROTOS += ("issues", "label_schemas", "review_queues", "prompt_optimization", "jobs", "scorers")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"mlflow.{name}")
    except ImportError:
        return None


def plain_path(path: str) -> str:
    """Returns a path with its variables nameless."""
    return re.sub(r"\{[^}]*\}|<[^>]*>", "{}", path)


def routes() -> dict[str, str]:
    """``METHOD path`` of every route of the server, its logins and its gateway included."""
    server, auth = _module("server"), _module("server.auth")
    with_login = {**os.environ}
    os.environ.setdefault("MLFLOW_FLASK_SERVER_SECRET_KEY", "x")
    entries = _of_flask(server.app)
    fastapi = _module("server.fastapi_app")
    if fastapi is not None:
        entries |= _of_starlette(fastapi.app.routes)
    if auth is not None:
        listed = vars(_module("server.auth.routes"))
        paths = {value for name, value in listed.items() if name.isupper()}
        entries |= {f"* {plain_path(path)}" for path in paths if isinstance(path, str)}
    os.environ.clear()
    os.environ.update(with_login)
    return dict.fromkeys(entries, "")


def _of_flask(app: Any) -> set[str]:
    return {
        f"{method} {plain_path(rule.rule)}"
        for rule in app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }


def _of_starlette(listed: Iterable[Any], prefix: str = "") -> set[str]:
    results: set[str] = set()
    for route in listed:
        router = getattr(route, "original_router", None)  # new FastAPI includes routers late
        if router is not None:
            inner = prefix + getattr(route.include_context, "prefix", "")
            results |= _of_starlette(router.routes, inner)
            continue
        results |= {
            f"{method} {plain_path(prefix + route.path)}"
            for method in (getattr(route, "methods", None) or set()) - {"HEAD", "OPTIONS"}
        }
    return results


def fields() -> dict[str, str]:
    """``Message.field`` to its type, of all protobuf messages of the services."""
    results: dict[str, str] = {}
    for name in _PROTOS:
        module = _module(f"protos.{name}_pb2")
        if module is not None:
            for message in module.DESCRIPTOR.message_types_by_name.values():
                _add_fields(results, message)
    return results


def _add_fields(fields: dict[str, str], message: Any) -> None:
    for field in message.fields:
        is_repeated = getattr(field, "is_repeated", None)
        if is_repeated is None:  # an older protobuf
            is_repeated = field.label == field.LABEL_REPEATED
        repeated = "repeated " if is_repeated else ""
        kind = field.message_type or field.enum_type
        of = kind.full_name if kind is not None else str(field.type)
        fields[f"{message.full_name}.{field.name}"] = f"{repeated}{of} = {field.number}"
    for nested in message.nested_types:
        _add_fields(fields, nested)


def error_codes() -> dict[str, str]:
    """Error codes to their HTTP statuses."""
    statuses = _module("exceptions").ERROR_CODE_TO_HTTP_STATUS
    values = _module("protos.databricks_pb2").ErrorCode.DESCRIPTOR.values_by_name
    return {name: str(statuses.get(name, 500)) for name in values}


def columns() -> dict[str, str]:
    """``table.column`` to its type."""
    results: dict[str, str] = {}
    for name in ("store.tracking.dbmodels.models", "store.model_registry.dbmodels.models"):
        results |= _columns_of(_module(name).Base.metadata)
    login = _module("server.auth.db.models")
    return results if login is None else results | _columns_of(login.Base.metadata)


def _columns_of(metadata: Any) -> dict[str, str]:
    return {
        f"{table.name}.{column.name}": str(column.type)
        for table in metadata.tables.values()
        for column in table.columns
    }


def permissions() -> dict[str, str]:
    """Permissions and types of resources."""
    module = _module("server.auth.permissions")
    if module is None:
        return {}
    results = {f"permission {name}": "" for name in getattr(module, "ALL_PERMISSIONS", {})}
    for name, value in vars(module).items():
        if name.startswith("RESOURCE_TYPE") and isinstance(value, str):
            results[f"resource {value}"] = ""
    for value in getattr(module, "VALID_RESOURCE_TYPES", ()):
        results[f"resource {value}"] = ""
    return results


def variables() -> dict[str, str]:
    """Environment variables to their defaults."""
    module = _module("environment_variables")
    return {
        value.name: str(value.default)
        for value in vars(module).values()
        if hasattr(value, "name") and hasattr(value, "default")
    }


def retries() -> dict[str, str]:
    """What the client repeats: statuses, and paths of POSTs that it repeats on any of them."""
    module = _module("utils.rest_utils")
    request = _module("utils.request_utils")
    results: dict[str, str] = {}
    for owner in (module, request):
        for name, value in vars(owner).items() if owner is not None else ():
            if "RETR" in name and isinstance(value, list | tuple | set | frozenset):
                for item in value:
                    results[f"{name} {getattr(item, '__name__', item)}"] = ""
    return results


SURFACES: dict[str, Callable[[], dict[str, str]]] = {
    "routes": routes,
    "fields": fields,
    "error codes": error_codes,
    "columns": columns,
    "permissions": permissions,
    "environment variables": variables,
    "retries of the client": retries,
}


if __name__ == "__main__":
    json.dump({name: collect() for name, collect in SURFACES.items()}, sys.stdout, sort_keys=True)
