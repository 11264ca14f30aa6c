"""The values of a gateway's secret, sealed for its item and opened for a call; bound to the
secret."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mlcore import secrets
from mlcore.entities.gateway import Secret
from mlcore.errors import GatewayCallFailed


def sealed(values: Mapping[str, str], secret_id: str) -> str:
    """What the item keeps. Raises InvalidParameterValue: they are too long."""
    return secrets.seal(json.dumps(values), _context(secret_id))


def is_unset(secret: Secret) -> bool:
    """Whether it came from another server, and nobody has set its values since. (One that has none
    to be set, as of the function's own role, is so for good.)"""
    return not secret.sealed


def opened(secret: Secret) -> dict[str, str]:
    """The values in the clear, for no longer than a call takes.

    Raises:
        GatewayCallFailed: they were left behind on another server; 401, as without a key.
    """
    if is_unset(secret):
        if secret.masked:
            raise GatewayCallFailed(
                401,
                f"The secret '{secret.secret_name}' has no value: it came from another server, "
                "which tells none. Set it anew.",
            )
        return {}
    values: dict[str, str] = json.loads(
        secrets.open_sealed(secret.sealed, _context(secret.secret_id))
    )
    return values


def _context(secret_id: str) -> dict[str, str]:
    return {"gateway_secret_id": secret_id}
