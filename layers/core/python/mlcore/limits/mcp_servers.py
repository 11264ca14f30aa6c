"""MLflow's rules about MCP servers: names, semantic versions, statuses, icons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.entities.mcp_servers import ACTIVE, DELETED, DEPRECATED, DRAFT, LATEST, STATUSES, Json
from mlcore.errors import InvalidParameterValue

MAX_TOOLS: Final = 1000
MAX_SERVERS_PER_PAGE: Final = 1000
"""Servers per page."""
TRANSPORTS: Final = ("streamable-http", "sse")

_NAMESPACE: Final = re.compile("[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]")
_SLUG: Final = re.compile("[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]")
_RESERVED: Final = frozenset(("aliases", "endpoints", "tags", "versions"))
_MAX_VERSION_LENGTH: Final = 128
_MAX_VERSION_PART: Final = 2**31 - 1
_PART: Final = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    rf"(?:-({_PART}(?:\.{_PART})*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)

_TRANSITIONS: Final = {
    DRAFT: (ACTIVE, DELETED),
    ACTIVE: (DEPRECATED, DRAFT),
    DEPRECATED: (ACTIVE, DELETED),
}


def check_name(name: str) -> None:
    """Checks that the name of an MCP server has the form ``<reverse-dns namespace>/<slug>``. Raises
    InvalidParameterValue otherwise."""
    if not name:
        raise InvalidParameterValue("MCP server name must not be empty")
    namespace, slash, slug = name.partition("/")
    if (
        not slash
        or slug in _RESERVED
        or not _NAMESPACE.fullmatch(namespace)
        or not _SLUG.fullmatch(slug)
    ):
        raise InvalidParameterValue(
            "Invalid MCP server name. Expected '<reverse-dns namespace>/<server slug>' "
            "such as 'com.example/server-name'."
        )


class SemanticVersion(NamedTuple):
    """The parts of a semantic version that decide which version is greater (semver.org, 2.0.0)."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...]

    def precedence(self) -> str:
        """Returns a text that sorts as versions do: a release after its prereleases, numeric parts
        by value and before words, a longer prerelease after its own prefix."""
        core = f"{self.major:010d}{self.minor:010d}{self.patch:010d}"
        if not self.prerelease:
            return f"{core}2"
        return core + "".join(
            f"0{len(part):03d}{part}" if part.isdigit() else f"1{part} " for part in self.prerelease
        )


def semantic_version(version: str, parameter: str) -> SemanticVersion:
    """Parses a version such as ``1.2.3-rc.1`` into its comparable parts. Raises
    InvalidParameterValue if it is not a semantic version, is too long, or has a too large number.

    Args:
        parameter: the name of the request's field, for the error message.
    """
    message = f"Invalid semantic version for {parameter}: '{version}'"
    if len(version) > _MAX_VERSION_LENGTH:
        raise InvalidParameterValue(
            f"{message} (maximum length is {_MAX_VERSION_LENGTH} characters)"
        )
    match = _VERSION.fullmatch(version)
    if match is None:
        raise InvalidParameterValue(message)
    parts = [int(match[group]) for group in (1, 2, 3)]
    for label, part in zip(("major", "minor", "patch"), parts, strict=True):
        if part > _MAX_VERSION_PART:
            raise InvalidParameterValue(f"{message} ({label} must be <= {_MAX_VERSION_PART})")
    prerelease = tuple(match[4].split(".")) if match[4] else ()
    return SemanticVersion(parts[0], parts[1], parts[2], prerelease)


def precedence(version: str) -> str:
    """Returns the sortable text (:meth:`SemanticVersion.precedence`) of an MCP server's version,
    which was checked when it was created."""
    return semantic_version(version, "version").precedence()


def check_status(status: str) -> str:
    """Returns the status of an MCP server's version unchanged. Raises InvalidParameterValue if no
    version can have it."""
    if status not in STATUSES:
        raise InvalidParameterValue(f"Invalid status: '{status}'")
    return status


def check_first_status(status: str) -> None:
    """Checks that a new version of an MCP server may have this status: draft or active. Raises
    InvalidParameterValue otherwise."""
    if status not in (DRAFT, ACTIVE):
        raise InvalidParameterValue(
            "Initial MCP server registration status must be 'draft' or 'active'."
        )


def check_transition(status: str, new_status: str) -> None:
    """Checks that a version of an MCP server may change from one status to another. Raises
    InvalidParameterValue otherwise."""
    allowed = _TRANSITIONS.get(status, ())
    if new_status not in allowed:
        raise InvalidParameterValue(
            f"Invalid status transition from '{status}' to '{new_status}'. "
            f"Allowed transitions: {list(allowed)}"
        )


def check_transport(transport_type: str) -> str:
    """Returns the transport type of an MCP server's access endpoint unchanged. Raises
    InvalidParameterValue for an unknown type."""
    if transport_type not in TRANSPORTS:
        raise InvalidParameterValue(f"Invalid transport_type: '{transport_type}'")
    return transport_type


def check_endpoint_url(url: str) -> None:
    """Checks that the URL of an MCP server's access endpoint is not blank. Nothing else is checked,
    because this server never connects to it. Raises InvalidParameterValue."""
    if not url.strip():
        raise InvalidParameterValue(
            f"MCP access endpoint url cannot be empty or just whitespace: {url!r}"
        )


def check_target(server_version: str | None, server_alias: str | None) -> None:
    """Checks that an access endpoint names either a version or an alias of its MCP server, not
    both. Raises InvalidParameterValue otherwise."""
    if (server_version is None) == (server_alias is None):
        raise InvalidParameterValue(
            "Exactly one of server_version or server_alias must be provided"
        )


def check_alias(alias: str) -> None:
    """Checks that an alias of an MCP server is not ``latest``, which is always resolved
    automatically. Raises InvalidParameterValue otherwise."""
    if alias == LATEST:
        raise InvalidParameterValue("The alias name 'latest' is reserved for automatic resolution")


def written_icons(icons: list[Json] | None, field: str) -> list[Json] | None:
    """Returns the icons of an MCP server in a request, without the member ``source``, which icons
    have in answers only; None if the request has none. Raises InvalidParameterValue if an icon's
    ``source`` is ``version``: a version's icon would be stored as the MCP server's own."""
    if icons is None:
        return None
    for index, icon in enumerate(icons):
        if icon.get("source") == "version":
            raise InvalidParameterValue(
                f"Invalid {field}[{index}].source: 'version' is response-only and cannot be "
                "written. Writing it would persist a version-resolved icon as a server override. "
                "Omit source, or send source='server' when echoing a server icon."
            )
    return [_without_source(icon) for icon in icons]


def _without_source(icon: Mapping[str, Any]) -> Json:
    return {key: value for key, value in icon.items() if key != "source"}
