"""Encrypts the address and the secret of an alert's destination for storage, and decrypts them for
a delivery. The ciphertext is bound to the destination's id and the workspace, as the secret of a
webhook is."""

from __future__ import annotations

import json
from typing import NamedTuple

from mlcore import secrets
from mlcore.entities.alerts import AlertDestination


class Address(NamedTuple):
    url: str
    secret: str
    """The secret that signs the deliveries; empty if they are not signed."""


def seal(address: Address, workspace: str, destination_id: str) -> str:
    """Encrypts the address (URL and secret) of an alert's destination to the text that the alert's
    item stores."""
    text = json.dumps(address._asdict(), ensure_ascii=False)
    return secrets.seal(text, _encryption_context(workspace, destination_id))


def open_address(destination: AlertDestination, workspace: str) -> Address:
    """Decrypts and returns the address (URL and secret) to which a destination sends alerts. The
    destination must have an address."""
    context = _encryption_context(workspace, destination.destination_id)
    return Address(**json.loads(secrets.open_sealed(destination.sealed, context)))


def moved(destination: AlertDestination, workspace: str, new_workspace: str) -> AlertDestination:
    """Returns the destination of messages of an alert that moves to another workspace: the
    destination's address is encrypted again for that workspace."""
    if not destination.sealed:
        return destination
    address = open_address(destination, workspace)
    sealed = seal(address, new_workspace, destination.destination_id)
    return destination._replace(sealed=sealed)


def _encryption_context(workspace: str, destination_id: str) -> dict[str, str]:
    # The roles of the functions may encrypt and decrypt with this key only.
    return {"workspace": workspace, "webhook_id": destination_id}
