"""KMS on this machine: one key, in a file that only its owner may read.
Encrypts with AES-256-GCM; the encryption context is authenticated with it, as in AWS.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from local.aws.endpoint import Operation, ServiceError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_KEY_BYTES = 32


class Kms:
    """The operations Encrypt and Decrypt. The key is made at the first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def operations(self) -> dict[str, Operation]:
        """Returns the functions that answer KMS's operations, by the value of X-Amz-Target."""
        return {"TrentService.Encrypt": self.encrypt, "TrentService.Decrypt": self.decrypt}

    def encrypt(self, request: dict[str, Any]) -> dict[str, Any]:
        """Encrypts Plaintext; returns CiphertextBlob."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        plain = base64.b64decode(request["Plaintext"])
        sealed = nonce + self._cipher().encrypt(nonce, plain, _context(request))
        return {"CiphertextBlob": base64.b64encode(sealed).decode(), "KeyId": request["KeyId"]}

    def decrypt(self, request: dict[str, Any]) -> dict[str, Any]:
        """Decrypts CiphertextBlob; returns Plaintext."""
        sealed = base64.b64decode(request["CiphertextBlob"])
        nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as _cipher

        try:
            plain = self._cipher().decrypt(nonce, rest, _context(request))
        except (InvalidTag, ValueError):
            raise ServiceError(
                "InvalidCiphertextException", f"sealed with another key than {self._path}"
            ) from None
        return {"Plaintext": base64.b64encode(plain).decode(), "KeyId": request.get("KeyId", "")}

    def _cipher(self) -> AESGCM:
        # The import takes six megabytes, and few deployments keep secrets.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        return AESGCM(self._key())

    def _key(self) -> bytes:
        if not self._path.exists():
            made = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}")
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
                new.write(secrets.token_bytes(_KEY_BYTES))
                new.flush()
                os.fsync(new.fileno())
            try:
                os.link(made, self._path)
            except FileExistsError:
                pass  # another thread was first
            finally:
                made.unlink()
        return self._path.read_bytes()


class KmsClient:
    """The same key, for functions in this process: without a request over the loopback."""

    def __init__(self, kms: Kms) -> None:
        self._kms = kms

    def encrypt(self, **parameters: Any) -> dict[str, Any]:
        """Encrypts Plaintext; returns CiphertextBlob."""
        plain = base64.b64encode(parameters["Plaintext"]).decode()
        answer = self._kms.encrypt({**parameters, "Plaintext": plain})
        return {"CiphertextBlob": base64.b64decode(answer["CiphertextBlob"])}

    def decrypt(self, **parameters: Any) -> dict[str, Any]:
        """Decrypts CiphertextBlob; returns Plaintext. Raises ClientError if it was encrypted with
        another key or another context."""
        sealed = base64.b64encode(parameters["CiphertextBlob"]).decode()
        try:
            answer = self._kms.decrypt({**parameters, "CiphertextBlob": sealed})
        except ServiceError as error:
            described: Any = {"Error": {"Code": error.code, "Message": str(error)}}
            raise ClientError(described, "Decrypt") from None
        return {"Plaintext": base64.b64decode(answer["Plaintext"])}


def _context(request: dict[str, Any]) -> bytes:
    return json.dumps(request.get("EncryptionContext", {}), sort_keys=True).encode()
