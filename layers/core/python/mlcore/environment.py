"""Settings from environment variables."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Final, NamedTuple

AUTHENTICATION: Final = "AUTHENTICATION"
"""Environment variable: ``none`` (default), ``basic`` or ``oidc`` (checked by the authorizer), or
``iam`` (the signature is checked by API Gateway)."""
GATEWAY_LOGIN: Final = "x-mlflow-authorization"
"""Header in which callers of the AI gateway may log in, so that ``authorization`` is free for a
provider's credentials."""
OIDC: Final = "oidc"
CLIENT_ID: Final = "OIDC_CLIENT_ID"
"""Environment variable: with oidc, this server's id at the issuer, for the sign-in of browsers;
empty for none."""
IAM: Final = "iam"


class Settings(NamedTuple):
    table_name: str
    artifact_root: str
    """Prefix of the experiments' default artifact locations, without a trailing slash unless it is
    only a scheme."""
    collection_sizes: bool = False
    """Whether each write requests the size of its partition. On AWS this is free; other engines
    have to count."""


@functools.cache
def settings() -> Settings:
    """Returns the settings of this process.

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


def artifact_bucket() -> str | None:
    """Returns the S3 bucket that holds the artifacts; None if they are in a folder of this machine,
    or if none is configured."""
    return None if os.environ.get("ARTIFACT_FOLDER") else os.environ.get("ARTIFACT_BUCKET") or None


def in_lambda() -> bool:
    """Whether this process is a Lambda function, whose requests have at most 6 MB. The local runner
    takes requests of any size."""
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def signs_in(environment: Mapping[str, str]) -> bool:
    """Whether people can sign in with a browser in a deployment with this environment."""
    return environment.get(AUTHENTICATION) == OIDC and bool(environment.get(CLIENT_ID))
