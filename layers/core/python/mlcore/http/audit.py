"""Audit: adds to a request's log line who did what. Where a login is required, every write and
every refusal is audited, and all other requests if ``AUDIT_READS`` is "true".

An entry names callers, addresses and entities. It never holds values, passwords, tokens or other
contents: of a message only fields that identify something are read, and no text of an error.

An entry about a run, trace or logged model also has its ``experiment_id``, which the process has
just read and cached. If a request is about several experiments, or about an entity whose experiment
is not cached, ``experiment_ids`` has the known ones instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from mlcore.http.request import Request
from mlcore.http.response import Response
from mlcore.http.routes import ByMethod, Route, Routes, only_reads
from mlcore.process_cache import ProcessCache

AUDIT_READS: Final = "AUDIT_READS"
"""Environment variable: "true" audits reads, too."""

MAX_LENGTH: Final = 200
"""Characters of a logged identifier; longer ones are cut."""
MAX_LISTED: Final = 10
"""Logged identifiers of a list; the number of all is logged beside them."""

REFUSALS: Final = (401, 403)
_NAMED: Final = (
    *("registered-models", "model-versions", "prompts", "mcp-servers", "skills", "scorers"),
    *("workspaces", "queries"),
)
"""Parts of paths of routes whose entity is identified by its name."""
_RIGHTS: Final = ("users", "roles", "permissions", "mlflow-serverless")
"""Parts of paths of routes about users and their rights."""
_NAMES: Final = frozenset({"name", "new_name", "alias", "version", "organization"})
_GRANTS: Final = frozenset(
    {
        *("username", "resource_type", "resource_pattern", "permission", "is_admin", "scopes"),
        *("role", "workspace"),
    }
)
_IDENTIFIERS: Final = frozenset({"run_uuid", "endpoint_name", "workspace_name", "saved"})
_NO_ENTITY: Final = frozenset({"tag_key", "key", "path"})
"""Variables of paths that are contents: keys of tags, and paths at other servers."""
_RUNS: Final[ProcessCache[str, str]] = ProcessCache("place of a run")
_TRACES: Final[ProcessCache[str, str]] = ProcessCache("place of a trace")
_LOGGED_MODELS: Final[ProcessCache[str, str]] = ProcessCache("place of a logged model")
_EXPERIMENT_CACHES: Final = {
    "run_id": _RUNS,
    "run_uuid": _RUNS,
    "run_ids": _RUNS,
    "source_run_id": _RUNS,
    "trace_id": _TRACES,
    "request_id": _TRACES,
    "trace_ids": _TRACES,
    "model_id": _LOGGED_MODELS,
    "path_model_id": _LOGGED_MODELS,
    "model_ids": _LOGGED_MODELS,
}
"""By field of a message, the repository's cache of the experiments of the entities that the field
names. Reading a cache costs no round trip."""
_EXPERIMENT: Final = "experiment"
"""The type of a resource in requests that change rights."""
_SECRET: Final = re.compile(r"mlk_|eyJ[\w-]{10}|sk-[\w-]{8}", re.A)
"""Beginnings of API keys and tokens, which somebody may send in place of an id."""


class Keeper(Protocol):
    """The interface of a store of audit entries."""

    def check(self) -> None:
        """Called before a write request is executed that gets an audit entry. Raises
        InsufficientStorage if no entry can be stored now; the request is not executed then."""

    def record(self, request: Mapping[str, Any], /) -> None:
        """Stores ``rpc``, ``method``, ``status``, ``request_id``, ``audit`` and the costs
        (:func:`mlcore.observability.costs_of`) of a request. Raises TemporarilyUnavailable or
        InsufficientStorage if they cannot be stored; the error is then the answer to the
        request."""


_keepers: Final[list[Keeper]] = []


def provide(keeper: Keeper | None) -> None:
    """Registers the store that gets the audit entry of a request before the request is answered;
    None unregisters it. The local runner registers one. In AWS there is none, because CloudWatch
    keeps the log line."""
    _keepers[:] = [] if keeper is None else [keeper]


def keep(request: Mapping[str, Any]) -> None:
    """Stores the audit entry and the costs of a request in the registered :class:`Keeper`, if there
    is one. Raises the errors of :meth:`Keeper.record`."""
    for keeper in _keepers:
        keeper.record(request)


class Trail:
    """Collects, while a request is handled, what its audit entry needs: the caller, the route, the
    message and the answer."""

    __slots__ = ("answer", "message", "parameters", "request", "route")

    def __init__(self) -> None:
        self.request: Request | None = None
        """The request with its caller; None until the caller is known."""
        self.route: Route | None = None
        self.parameters: Mapping[str, str] = {}
        """Variables of the path."""
        self.message: Any = None
        self.answer: Mapping[str, Any] = {}

    def find(self, routes: Routes, method: str, path: str) -> ByMethod:
        """Finds the route of a method and path, and sets ``route`` and ``parameters`` (the
        variables of the path). Returns the path's routes by method; ``route`` stays None if none
        has the method. Raises EndpointNotFound for an unknown path."""
        verb = "GET" if method == "HEAD" else method
        methods, self.parameters = routes.find(path, verb)
        self.route = methods.get(verb)
        return methods

    def name(self) -> str:
        """The path of the route as it is declared, for an RPC without ``/api``, such as
        ``/2.0/mlflow/runs/get``; ``unknown`` without a route."""
        return "unknown" if self.route is None else self.route.path

    def entry(
        self, about: Mapping[str, Any], response: Response, *, reads: bool
    ) -> dict[str, object] | None:
        """Returns the audit entry for the log line; None for a request that is not audited.

        Args:
            about: ``requestContext`` of the event.
            reads: whether reads are audited, too.
        """
        access = None if self.request is None else self.request.access
        if not (
            response.status in REFUSALS
            or response.actor
            or (access is not None and (reads or self._writes()))
        ):
            return None
        answers: Mapping[str, Any] = about.get("authorizer") or {}
        claims: Mapping[str, Any] = answers.get("lambda") or {}
        address = claims.get("address") or about["http"].get("sourceIp", "")
        entry: dict[str, object] = {
            "user": response.actor or (None if access is None else access.username),
            "login": "signature" if "iam" in answers else claims.get("login", "none"),
            "address": address,
            "workspace": None if self.request is None else self.request.workspace,
            "outcome": _outcome(response.status),
            "entity": self._entity(response),
        }
        if access is not None and access.key_id:
            entry["key_id"] = access.key_id
        if access is not None and access.is_admin:
            entry["is_admin"] = True
        return entry

    def check_audit(self) -> None:
        """Raises InsufficientStorage if the request is an audited write and its entry could not be
        kept."""
        if _keepers and self._writes() and self.request is not None and self.request.access:
            for keeper in _keepers:
                keeper.check()

    def _writes(self) -> bool:
        return self.route is not None and not only_reads(self.route)

    def _entity(self, response: Response) -> dict[str, object]:
        path = "" if self.route is None else self.route.path
        is_setting = "/config/" in path
        entity: dict[str, object] = {}
        for variable, value in self.parameters.items():
            name = variable.removesuffix("+")
            if name not in _NO_ENTITY or (is_setting and name == "key"):
                entity[name] = _identifier(value)
        names = _IDENTIFIERS
        if any(part in path for part in _NAMED):
            names = names | _NAMES
        if any(part in path for part in _RIGHTS):
            names = names | _GRANTS
        for name, value in _fields(self.message):
            if name in names or name.endswith(("_id", "_ids")):
                entity.setdefault(name, _identifier(value))
        _add_experiments(entity)
        for name, value in response.created.items():
            entity[name] = _identifier(value)
        if (
            response.status < _FIRST_ERROR
            and self.route is not None
            and self.route.method == "POST"
        ):
            for name, value in _ids_in(self.answer):
                entity.setdefault(name, _identifier(value))
        _open_scim_id(entity)
        return {name: value for name, value in entity.items() if value not in (None, "")}


_FIRST_ERROR: Final = 400


def _add_experiments(entity: dict[str, object]) -> None:
    """Adds the experiments of the runs, traces and logged models that a request names, and of the
    experiment whose rights it changes."""
    if entity.get("resource_type") == _EXPERIMENT and isinstance(entity.get("resource_id"), str):
        entity.setdefault("experiment_id", entity["resource_id"])
    named = [
        (known.get(entity_id) if isinstance(entity_id, str) else None)
        for field, known in _EXPERIMENT_CACHES.items()
        for entity_id in _listed(entity.get(field))
    ]
    stated = [entity.get("experiment_id"), *_listed(entity.get("experiment_ids"))]
    experiment_ids = dict.fromkeys(
        str(experiment_id) for experiment_id in (*stated, *named) if experiment_id is not None
    )
    if len(experiment_ids) == 1 and None not in named and "experiment_ids" not in entity:
        entity["experiment_id"] = next(iter(experiment_ids))
    elif named and experiment_ids:
        entity["experiment_ids"] = list(experiment_ids)


def _open_scim_id(entity: dict[str, object]) -> None:
    """Replaces the SCIM id of a user by the number and the name that are in it. An erasure finds
    the name in ``username``, not in an encoded text."""
    scim_id = entity.get("scim_id")
    if not isinstance(scim_id, str):
        return
    from mlcore.entities.scim import parse_scim_id  # noqa: PLC0415 -- requests of directories only

    user = parse_scim_id(scim_id)
    if user is not None:
        entity["scim_id"], entity["username"] = user


def _listed(value: object) -> list[object]:
    if value in (None, "", []):
        return []
    return value if isinstance(value, list) else [value]


def _outcome(status: int) -> str:
    if status in REFUSALS:
        return "refused"
    return "done" if status < _FIRST_ERROR else "failed"


def _fields(message: Any) -> Iterable[tuple[str, Any]]:
    """Returns (name, value) of each field of a message that the request set."""
    if isinstance(message, tuple):
        names = getattr(message, "_fields", ())
        return zip(names, message, strict=False)
    return tuple(getattr(message, "__dict__", {}).items())


def _ids_in(answer: Mapping[str, Any], depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Yields (field, id) of the ids in the answer to a creation: at its top, or in its only
    object."""
    for name, value in answer.items():
        if name.endswith("_id"):
            yield name, value
    if len(answer) == 1 and depth:
        (inner,) = answer.values()
        if isinstance(inner, Mapping):
            yield from _ids_in(inner, depth - 1)
    if "info" in answer and isinstance(answer["info"], Mapping):
        yield from _ids_in(answer["info"], 0)


def _identifier(value: Any) -> object:
    """Returns a value of an identifying field as it is logged (shortened, secrets masked); None for
    a value that cannot identify anything."""
    if isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return "(secret)" if _SECRET.search(value) else value[:MAX_LENGTH]
    if isinstance(value, list | tuple):
        listed = [
            identifier
            for identifier in map(_identifier, value[:MAX_LISTED])
            if identifier is not None
        ]
        return [*listed, f"of {len(value)}"] if len(value) > MAX_LISTED else listed
    return None
