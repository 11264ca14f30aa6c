"""Protection against hostile web pages, as MLflow's server has it: CORS, Host header, framing.

The settings are MLflow's. Two defaults differ, because API Gateway has a public name: pages of the
API's own origin may call it, and the Host header is checked only if a list is set (API Gateway
serves only its own names).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from mlcore.http.response import Response

_API: Final = ("/api/", "/ajax-api/", "/mcp", "/scim/")
_HOST_FREE: Final = ("/health", "/version")
_STATE_CHANGING: Final = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_LOCAL_HOSTS: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_TEXT: Final = "text/plain; charset=utf-8"


class Security:
    """The rules against hostile web pages that a deployment's environment sets.

    Environment:
        MLFLOW_SERVER_CORS_ALLOWED_ORIGINS: origins, with ``*`` as a wildcard, comma-separated.
        MLFLOW_SERVER_ALLOWED_HOSTS: values of the Host header, likewise; a pattern of an address
            (``10.*``) matches no name.
        MLFLOW_SERVER_X_FRAME_OPTIONS: SAMEORIGIN (default), DENY, or NONE for no such header.
        MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE: "true" switches all rules off.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._off = environment.get("MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE") == "true"
        self._origins = _listed(environment.get("MLFLOW_SERVER_CORS_ALLOWED_ORIGINS", ""))
        hosts = _listed(environment.get("MLFLOW_SERVER_ALLOWED_HOSTS", ""))
        self._hosts = () if "*" in hosts else hosts
        self._headers = {} if self._off else {"x-content-type-options": "nosniff"}
        framing = environment.get("MLFLOW_SERVER_X_FRAME_OPTIONS", "SAMEORIGIN").upper()
        if framing not in ("", "NONE") and not self._off:
            self._headers["x-frame-options"] = framing

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> Response | None:
        """Returns the response that refuses a request because of its host or origin, or the
        response to a CORS preflight; None if the request may continue."""
        if self._off:
            return None
        if self._hosts and path not in _HOST_FREE:
            host = headers.get("host", "")
            if not host or not _names(host, self._hosts):
                text = "Invalid Host header - possible DNS rebinding attack detected"
                return Response(403, text, _TEXT)
        origin = headers.get("origin")
        if not origin:
            return None
        if method == "OPTIONS" and "access-control-request-method" in headers:
            return self._preflight(origin, headers)
        changes = method in _STATE_CHANGING and path.startswith(_API)
        if changes and not self._trusts(origin, headers):
            return Response(403, "Cross-origin request blocked", _TEXT)
        return None

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Returns the CORS, framing and ``nosniff`` headers of a response.

        Args:
            headers: those of the request.
        """
        added = dict(self._headers)
        if self._off:
            return added
        if "*" in self._origins:
            # Without credentials: any page may read responses that need no login.
            return added | {"access-control-allow-origin": "*"}
        added["vary"] = "Origin"
        origin = headers.get("origin")
        if origin and self._may_read(origin):
            added["access-control-allow-origin"] = origin
            added["access-control-allow-credentials"] = "true"
            added["access-control-expose-headers"] = "*"
        return added

    def _preflight(self, origin: str, headers: Mapping[str, str]) -> Response:
        requested = headers.get("access-control-request-headers")
        allowed = {"access-control-allow-headers": requested} if requested else {}
        allowed["access-control-allow-methods"] = "GET, POST, PUT, DELETE, OPTIONS, PATCH"
        allowed["access-control-max-age"] = "600"
        if self._may_read(origin):
            return Response(200, "OK", _TEXT, allowed)
        return Response(400, "Disallowed CORS origin", _TEXT, allowed)

    def _may_read(self, origin: str) -> bool:
        """Whether pages of the origin may read responses: listed origins, and localhost over
        HTTP."""
        if _matches(origin, self._origins):
            return True
        return origin.startswith("http://") and _host(origin) in _LOCAL_HOSTS

    def _trusts(self, origin: str, headers: Mapping[str, str]) -> bool:
        """Whether the page that sent a request is one of this deployment, of this machine or of a
        listed origin.

        A browser says in Sec-Fetch-Site whether the page has the same origin, which holds behind a
        CDN that replaces Host. Without this header the origin must name the host that was called.
        """
        if _matches(origin, self._origins) or _host(origin) in _LOCAL_HOSTS:
            return True
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site == "same-origin"
        return origin.partition("://")[2].lower() == headers.get("host", "").lower() != ""


def _listed(setting: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in setting.split(",")) if setting else ()


def _matches(value: str, patterns: tuple[str, ...]) -> bool:
    return any(
        fnmatchcase(value, pattern) if "*" in pattern else value == pattern for pattern in patterns
    )


def _names(host: str, patterns: tuple[str, ...]) -> bool:
    """Whether a Host header matches one of the patterns. A pattern of an address, such as ``10.*``,
    matches addresses only: ``10.example.com`` is a name that anybody may point to this machine."""
    is_address = host.partition(":")[0].replace(".", "").isdigit()
    return _matches(
        host,
        tuple(
            pattern
            for pattern in patterns
            if is_address
            or "*" not in pattern
            or not pattern.rstrip("*").replace(".", "").isdigit()
        ),
    )


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None
