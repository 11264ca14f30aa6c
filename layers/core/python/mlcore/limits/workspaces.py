"""Rules about workspaces: names, and the locations of their files."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlparse

from mlcore import archival_configuration
from mlcore.errors import InvalidParameterValue
from mlcore.limits.artifact_locations import check_location

MIN_NAME_LENGTH: Final = 2
MAX_NAME_LENGTH: Final = 63

_PATTERN: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_RESERVED: Final = frozenset(("workspaces", "api", "ajax-api", "static-files"))
_SCHEME: Final = re.compile("[a-z][a-z0-9+.-]+:", re.IGNORECASE)


def check_name(name: str) -> None:
    if not MIN_NAME_LENGTH <= len(name) <= MAX_NAME_LENGTH:
        raise InvalidParameterValue(
            f"Workspace name '{name}' must be between {MIN_NAME_LENGTH} and "
            f"{MAX_NAME_LENGTH} characters."
        )
    if name.endswith("\n") or not re.match(_PATTERN, name):
        raise InvalidParameterValue(
            f"Workspace name '{name}' must match the pattern {_PATTERN} "
            "(lowercase alphanumeric with optional internal hyphens)."
        )
    if name in _RESERVED:
        raise InvalidParameterValue(f"Workspace name '{name}' is reserved and cannot be used.")


def artifact_root(text: str) -> str:
    """Checks the artifact root of a workspace and returns it, stripped; an empty text if the
    workspace has no root of its own. Raises InvalidParameterValue if it is not a permitted URI or
    absolute path."""
    root = text.strip()
    if not root:
        return ""
    check_location(root, "default_artifact_root")
    if not _SCHEME.match(root) and not root.startswith("/"):
        raise InvalidParameterValue(
            "Invalid value for 'default_artifact_root'. Expected a URI (for example "
            "'s3://bucket/prefix' or 'mlflow-artifacts:/prefix') or an absolute path, got "
            f"'{root}'."
        )
    return root


def archival_location(text: str) -> str:
    """Checks a workspace's location for archived traces and returns it, stripped; an empty text for
    none. Traces of a workspace with a location are not archived, because this server keeps files in
    its own store only. Raises InvalidParameterValue if it is not a permitted URI."""
    field = "trace_archival_config.location"
    location = text.strip()
    if not location:
        return ""
    check_location(location, field)
    scheme = urlparse(location).scheme
    if not scheme:
        raise InvalidParameterValue(f"Invalid value for '{field}'. Expected a URI string.")
    if scheme == "mlflow-artifacts":
        raise InvalidParameterValue(
            f"Invalid value for '{field}'. Trace archival location cannot use "
            "the proxy-only `mlflow-artifacts:` scheme."
        )
    return location


def archival_retention(text: str) -> str:
    """Checks the time after which traces of a workspace are archived, such as ``30d``, and returns
    it, stripped; an empty text for none. Raises InvalidParameterValue for any other text."""
    field = "trace_archival_config.retention"
    retention = text.strip()
    if len(retention) > archival_configuration.MAX_LENGTH:
        raise InvalidParameterValue(
            f"Invalid value for '{field}'. "
            f"Maximum length is {archival_configuration.MAX_LENGTH} characters."
        )
    if retention and archival_configuration.milliseconds(retention) is None:
        raise InvalidParameterValue(
            f"Invalid value for '{field}'. Expected a duration in the form "
            "`<int><unit>`, where unit is one of 'm', 'h', or 'd' (for example '30d' or '12h')."
        )
    return retention
