"""Encrypts the values of a gateway secret (a provider's credentials) for storage, and decrypts them
for a call. The ciphertext is bound to the secret's id.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mlcore import secrets
from mlcore.entities.gateway import Secret
from mlcore.errors import GatewayCallFailed


def seal(values: Mapping[str, str], secret_id: str) -> str:
    """Encrypts the values of a gateway secret to the text that the secret's item stores. Raises the
    errors of :func:`mlcore.secrets.seal`."""
    return secrets.seal(json.dumps(values), _encryption_context(secret_id))


def is_unset(secret: Secret) -> bool:
    """Whether a gateway secret has no encrypted values: it was imported from another server and its
    values have not been set since, or it needs none because the function's own IAM role is used."""
    return not secret.sealed


def open_values(secret: Secret) -> dict[str, str]:
    """Decrypts the values of a gateway secret and returns them by name; an empty dict if it needs
    none. Raises GatewayCallFailed (401, as for a missing key) if it was imported without its
    values, and the errors of :func:`mlcore.secrets.open_sealed`."""
    if is_unset(secret):
        if secret.masked:
            raise GatewayCallFailed(
                401,
                f"The secret '{secret.secret_name}' has no value: it was imported from another "
                "server, which does not export values. Set the value again.",
            )
        return {}
    values: dict[str, str] = json.loads(
        secrets.open_sealed(secret.sealed, _encryption_context(secret.secret_id))
    )
    return values


def _encryption_context(secret_id: str) -> dict[str, str]:
    return {"gateway_secret_id": secret_id}
