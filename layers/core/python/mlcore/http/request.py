"""What a service function knows about a request besides its message: headers, workspace, path and
caller. Body and query are in the message only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore import errors
from mlcore.auth.requirements import Reader, reads_everything
from mlcore.entities.evaluation.jobs import NOBODY, Creator
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import AUTHENTICATION, IAM, workspaces_enabled
from mlcore.http.raw_request import Event, Sent

_BASE_PATH: Final = "API_BASE_PATH"
"""Environment variable: base path of a custom domain name, without slashes."""
_WORKSPACE_HEADER: Final = "x-mlflow-workspace"
_SIGNATURE: Final = "X-Amz-Signature"
_IN_WORKSPACE: Final = re.compile(
    r"/workspaces/(?P<workspace>[^/:]+)(?::[0-9]{1,5})?(?P<path>/.*)", re.DOTALL
)


class Request(NamedTuple):
    """The context of a request, which each service function gets together with the message.
    ``access`` has the caller's rights; None without login."""

    headers: Mapping[str, str]
    """Headers, with names in lower case."""
    workspace: str
    request_id: str
    method: str = "GET"
    path: str = "/"
    """The path, percent-decoded as API Gateway passes it."""
    query_text: str = ""
    """The query string as it came, percent-encoded: for a redirect that leads back to this URL. Its
    parameters are in the message."""
    is_signed_by_query: bool = False
    """Whether the query string contains an AWS signature."""
    access: Any = None
    """The caller, a :class:`mlcore.policies.access.Access`; None without login."""
    cookies: tuple[str, ...] = ()
    """The cookies, ``name=value`` each. API Gateway passes them apart from the headers."""

    def caller(self) -> Any:
        """The caller's rights. Raises EndpointNotFound where no login is required, for RPCs that
        exist only with login."""
        if self.access is None:
            raise errors.EndpointNotFound(f"No endpoint has the path {self.path}.")
        return self.access

    def has_query(self) -> bool:
        """Whether the URL has a query string; False if it contains an AWS signature."""
        return bool(self.query_text) and not self.is_signed_by_query

    def username(self) -> str | None:
        """Returns the name of the caller; None without login."""
        return None if self.access is None else str(self.access.username)

    def creator(self) -> Creator:
        """Returns the caller as the one who starts a job; reads the user's number, if the policy
        has not. Raises ResourceDoesNotExist if the user was deleted after the login was
        checked."""
        if self.access is None:
            return NOBODY
        return Creator(self.access.username, self.access.user_id(), self.access.key_id or None)

    def may_read(self, resource_type: str) -> Reader:
        """Returns a function that says, by id, whether a list may show a resource of this type to
        the caller."""
        reader: Reader = (
            reads_everything if self.access is None else self.access.list_filter(resource_type)
        )
        return reader

    def granting(self, resource_type: str, resource_id: str) -> list[Any]:
        """Returns the writes that give the caller MANAGE on a new resource, for the transaction
        that creates it; none without login."""
        return [] if self.access is None else list(self.access.granting(resource_type, resource_id))

    def moving_grants(self, name: str, new_name: str | None) -> list[Any]:
        """Returns the writes that move the grants on a model to its new name, or delete them if the
        name is None; for the transaction that renames or deletes the model."""
        return [] if self.access is None else list(self.access.moving_grants(name, new_name))

    def leaving_grants(self, resource_type: str, resource_id: str) -> list[Any]:
        """Returns the writes that delete grants on a resource, for the transaction that deletes the
        resource. They cover at most ``GRANTS_AT_ONCE`` grants; more are deleted at once."""
        if self.access is None:
            return []
        return list(self.access.leaving_grants(resource_type, resource_id))

    def is_signed(self) -> bool:
        """Whether the headers contain an AWS signature, which must not be passed on."""
        return os.environ.get(AUTHENTICATION) == IAM and not self.is_signed_by_query


def request_of(sent: Sent, workspace: str, request_id: str) -> Request:
    """Returns the Request that describes an HTTP request, with ``access`` (rights) still None."""
    arguments = sent.query()
    signed = _SIGNATURE in arguments
    return Request(
        sent.headers,
        workspace,
        request_id,
        sent.method,
        sent.path,
        query_text=sent.query_text(),
        is_signed_by_query=signed,
        cookies=sent.cookies(),
    )


def base_path(environment: Mapping[str, str]) -> str:
    """Returns the base path of the deployment's domain name, with a slash before it; "" for
    none."""
    base = environment.get(_BASE_PATH, "")
    return f"/{base}" if base else ""


def path_of(event: Event, base: str) -> str:
    """Returns the URL path in an API Gateway event without the custom domain's base path. API
    Gateway's own domain name, which CloudFront uses, has no base path."""
    path: str = event.get("rawPath") or "/"
    about = event["requestContext"]
    if not base or about.get("domainPrefix") == about.get("apiId"):
        return path
    stripped = path.removeprefix(base)
    return (stripped or "/") if stripped[:1] in ("", "/") else path


def headers_of(event: Event) -> dict[str, str]:
    """Returns the headers of an API Gateway event, with their names in lower case."""
    return {name.lower(): value for name, value in (event.get("headers") or {}).items()}


def workspace_of(headers: Mapping[str, str], path: str = "", named: str = "") -> str:
    """Returns the workspace that the header or the path (``named``) names, else the default one.
    For ``server-info`` it is always the default one.

    Raises:
        InvalidParameterValue: header and path name different ones.
        FeatureDisabled: a workspace is named, but MLFLOW_ENABLE_WORKSPACES is off.
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
    """Returns the path without its workspace prefix, and the workspace ("" if the path has none).

    ``/workspaces/team-a/api/model_registry/…`` is ``/api/model_registry/…`` in ``team-a``, for
    clients that cannot send a header. Kubeflow's Python clients append a port to the server's
    address, and thus to the workspace: ``/workspaces/team-a:443/api/…`` means the same.

    Args:
        below: prefix of the paths that may follow a workspace; "" for none.
    """
    match = _IN_WORKSPACE.fullmatch(path) if below else None
    if match is None or not match["path"].startswith(below):
        return path, ""
    return match["path"], match["workspace"]


def check_workspace(name: str) -> None:
    """Checks that a workspace with this name exists. Raises InvalidParameterValue for a malformed
    name, ResourceDoesNotExist for a missing workspace."""
    if name == DEFAULT_WORKSPACE:
        return
    from mlcore.limits import workspaces as limits  # noqa: PLC0415 -- few requests name one
    from mlcore.repos.workspaces import workspaces  # noqa: PLC0415

    limits.check_name(name)
    workspaces.check_exists(name)
