"""The environment, read once into one immutable value."""

from __future__ import annotations

import functools
import os
from typing import Final, NamedTuple

AUTHENTICATION: Final = "AUTHENTICATION"
"""Environment: ``none`` (default); ``basic`` and ``oidc``, which the authorizer understands; or
``iam``, where API Gateway has checked the signature."""
OIDC: Final = "oidc"
IAM: Final = "iam"


class Settings(NamedTuple):
    table_name: str
    artifact_root: str
    """Prefix of default experiment artifact locations, without a trailing slash unless it is only a
    scheme."""
    collection_sizes: bool = False
    """Whether each write asks how large the partition is that it wrote to. AWS answers without
    effort; other engines count."""


@functools.cache
def settings() -> Settings:
    """Settings of this process.

    Raises:
        KeyError: TABLE_NAME is not set.
    """
    return Settings(
        table_name=os.environ["TABLE_NAME"],
        artifact_root=os.environ.get("ARTIFACT_ROOT", "mlflow-artifacts:/"),
        collection_sizes=os.environ.get("COLLECTION_SIZES", "").lower() == "true",
    )


def workspaces_enabled() -> bool:
    """Whether requests may name a workspace."""
    return os.environ.get("MLFLOW_ENABLE_WORKSPACES", "").lower() in ("1", "true")
