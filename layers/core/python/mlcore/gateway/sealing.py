"""The values of a gateway's secret, sealed for its item and opened for a call; bound to the
secret."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mlcore import secrets
from mlcore.entities.gateway import Secret


def sealed(values: Mapping[str, str], secret_id: str) -> str:
    """What the item keeps. Raises InvalidParameterValue: they are too long."""
    return secrets.seal(json.dumps(values), _context(secret_id))


def opened(secret: Secret) -> dict[str, str]:
    """The values in the clear, for no longer than a call takes."""
    values: dict[str, str] = json.loads(
        secrets.open_sealed(secret.sealed, _context(secret.secret_id))
    )
    return values


def _context(secret_id: str) -> dict[str, str]:
    return {"gateway_secret_id": secret_id}
