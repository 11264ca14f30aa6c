"""What a function knows of a request beside its message: who calls, where, and in which workspace.
Holds neither the body nor the query, which are in the message."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.auth.requirements import Reader, everything
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import AUTHENTICATION, IAM, workspaces_enabled
from mlcore.http.sent import Event, Sent

_WORKSPACE_HEADER: Final = "x-mlflow-workspace"
_SIGNATURE: Final = "X-Amz-Signature"
_IN_WORKSPACE: Final = re.compile(
    r"/workspaces/(?P<workspace>[^/:]+)(?::[0-9]{1,5})?(?P<path>/.*)", re.DOTALL
)


class Request(NamedTuple):
    """What a service function may need beyond its message."""

    headers: Mapping[str, str]
    """Names in lower case."""
    workspace: str
    request_id: str
    method: str = "GET"
    path: str = "/"
    """Percent-decoded, as API Gateway passes it."""
    has_query: bool = False
    """Whether the URL has a query string that is no signature for AWS."""
    is_signed_by_query: bool = False
    """Whether the URL carries the signature for AWS."""
    access: Any = None
    """The caller, a :class:`mlcore.policies.access.Access`; None where nobody needs to log in."""

    def caller(self) -> Any:
        """The caller of an RPC that exists only where callers log in. Raises EndpointNotFound."""
        if self.access is None:
            raise errors.EndpointNotFound(f"No endpoint has the path {self.path}.")
        return self.access

    def username(self) -> str | None:
        """Who calls; None where nobody needs to log in."""
        return None if self.access is None else str(self.access.username)

    def may_read(self, resource_type: str) -> Reader:
        """Which resources of a type the caller sees in a list."""
        reader: Reader = everything if self.access is None else self.access.lists(resource_type)
        return reader

    def granting(self, resource_type: str, resource_id: str) -> list[Any]:
        """What lets the caller manage what the request makes, to be written with it."""
        return [] if self.access is None else list(self.access.granting(resource_type, resource_id))

    def moving_grants(self, name: str, new_name: str | None) -> list[Any]:
        """What takes the grants on a model along with its new name, or away with the model; to be
        written with that."""
        return [] if self.access is None else list(self.access.moving_grants(name, new_name))

    def leaving_grants(self, resource_type: str, resource_id: str) -> list[Any]:
        """What takes the grants on a resource that is deleted; to be written with that."""
        if self.access is None:
            return []
        return list(self.access.leaving_grants(resource_type, resource_id))

    def is_signed(self) -> bool:
        """Whether the headers carry a signature for AWS, which nobody else must get."""
        return os.environ.get(AUTHENTICATION) == IAM and not self.is_signed_by_query


def request_of(sent: Sent, workspace: str, request_id: str) -> Request:
    """The request, before anybody knows who calls."""
    arguments = sent.query()
    signed = _SIGNATURE in arguments
    return Request(
        sent.headers,
        workspace,
        request_id,
        sent.method,
        sent.path,
        has_query=sent.has_query() and not signed,
        is_signed_by_query=signed,
    )


def headers_of(event: Event) -> dict[str, str]:
    """The headers of a request, names in lower case."""
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def workspace_of(headers: Mapping[str, str], path: str = "", named: str = "") -> str:
    """The workspace that a header names, or else the path (``named``); what the server can do is
    told whatever the header says.

    Raises:
        InvalidParameterValue: header and path name different ones.
        FeatureDisabled: one is named although MLFLOW_ENABLE_WORKSPACES is not on.
    """
    name = headers.get(_WORKSPACE_HEADER, "").strip()
    if name and named and name != named:
        raise errors.InvalidParameterValue(
            f"The header {_WORKSPACE_HEADER} names another workspace than the path does."
        )
    name = name or named
    if not name or path.rstrip("/").endswith("/mlflow/server-info"):
        return DEFAULT_WORKSPACE
    if not workspaces_enabled():
        raise errors.FeatureDisabled(
            "Workspace APIs are not available: workspaces are not enabled on this server"
        )
    return name


def split_workspace(path: str, below: str) -> tuple[str, str]:
    """A path without the workspace before it, and that workspace; "" where the path names none.

    ``/workspaces/team-a/api/model_registry/…`` is ``/api/model_registry/…`` in ``team-a``, for
    clients that cannot send a header. Kubeflow's clients in Python put a port behind their server's
    address, so behind the workspace: ``/workspaces/team-a:443/api/…`` means the same.

    Args:
        below: what the paths begin with that may follow a workspace; "" for none.
    """
    match = _IN_WORKSPACE.fullmatch(path) if below else None
    if match is None or not match["path"].startswith(below):
        return path, ""
    return match["path"], match["workspace"]


def check_workspace(name: str) -> None:
    """Raises InvalidParameterValue, ResourceDoesNotExist: there is no such workspace."""
    if name == DEFAULT_WORKSPACE:
        return
    from mlcore.limits import workspaces as limits  # noqa: PLC0415 -- few requests name one
    from mlcore.repos.workspaces import workspaces  # noqa: PLC0415

    limits.check_name(name)
    workspaces.check_exists(name)
