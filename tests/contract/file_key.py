"""A key of KMS in a file, without anything of the product: releases are tested with it, whose
modules are of another version than those of this tree."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class FileKey:
    """Answers as boto3's client of KMS does. Processes with the same file have the same key."""

    def __init__(self, path: Path) -> None:
        with contextlib.suppress(FileExistsError), path.open("xb") as file:
            file.write(secrets.token_bytes(32))
        self._cipher = AESGCM(path.read_bytes())

    def encrypt(self, **parameters: Any) -> dict[str, Any]:
        nonce, context = secrets.token_bytes(_NONCE_BYTES), _bytes_of(parameters)
        sealed = self._cipher.encrypt(nonce, parameters["Plaintext"], context)
        return {"CiphertextBlob": nonce + sealed, "KeyId": parameters["KeyId"]}

    def decrypt(self, **parameters: Any) -> dict[str, Any]:
        blob = parameters["CiphertextBlob"]
        nonce, sealed = blob[:_NONCE_BYTES], blob[_NONCE_BYTES:]
        return {"Plaintext": self._cipher.decrypt(nonce, sealed, _bytes_of(parameters))}


def _bytes_of(parameters: Mapping[str, Any]) -> bytes:
    return json.dumps(parameters.get("EncryptionContext", {}), sort_keys=True).encode()
