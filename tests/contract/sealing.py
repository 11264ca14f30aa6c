"""KMS in this process: the local runner's, without its endpoint."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from local.aws.kms import Kms
from mlcore import secrets


class SealingClient:
    """Encrypt and Decrypt as boto3 calls them."""

    def __init__(self, folder: Path) -> None:
        self._kms = Kms(folder / "key")

    def encrypt(self, **parameters: Any) -> dict[str, Any]:
        plain = base64.b64encode(parameters["Plaintext"]).decode()
        answer = self._kms.encrypt({**parameters, "Plaintext": plain})
        return {"CiphertextBlob": base64.b64decode(answer["CiphertextBlob"])}

    def decrypt(self, **parameters: Any) -> dict[str, Any]:
        sealed = base64.b64encode(parameters["CiphertextBlob"]).decode()
        answer = self._kms.decrypt({**parameters, "CiphertextBlob": sealed})
        return {"Plaintext": base64.b64decode(answer["Plaintext"])}


def seal_here(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Secrets are sealed with a key in the folder."""
    patch.setenv("SECRETS_KEY_ID", "key")
    made = SealingClient(folder)
    patch.setattr(secrets, "_client", lambda: made)
