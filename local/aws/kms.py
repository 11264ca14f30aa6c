"""KMS on this machine: one key, in a file that only its owner may read.
Encrypts with AES-256-GCM; the encryption context is authenticated with it, as in AWS.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from local.aws.endpoint import Operation, ServiceError
from local.log import report
from local.store.database import FILE_ADVICE
from mlcore.db.failures import NOT_SAVED

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_KEY_BYTES = 32


class Kms:
    """Stands in for KMS: its operations Encrypt and Decrypt. Creates the key at the first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def operations(self) -> dict[str, Operation]:
        """Returns the functions that execute KMS's operations, by the value of the header
        X-Amz-Target that selects each."""
        return {"TrentService.Encrypt": self.encrypt, "TrentService.Decrypt": self.decrypt}

    def encrypt(self, request: dict[str, Any]) -> dict[str, Any]:
        """KMS's operation Encrypt: encrypts Plaintext and returns CiphertextBlob."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        plain = base64.b64decode(request["Plaintext"])
        sealed = nonce + self._cipher().encrypt(nonce, plain, _context(request))
        return {"CiphertextBlob": base64.b64encode(sealed).decode(), "KeyId": request["KeyId"]}

    def decrypt(self, request: dict[str, Any]) -> dict[str, Any]:
        """KMS's operation Decrypt: decrypts CiphertextBlob and returns Plaintext. Raises
        ServiceError if it was encrypted with another key or another context, or if the key cannot
        be saved or read."""
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
        # The import takes six megabytes, and few users store secrets.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        return AESGCM(self._key())

    def _key(self) -> bytes:
        """Returns the key; creates it if there is none.

        Raises:
            ServiceError: the key cannot be saved or read, or its file is incomplete.
        """
        try:
            if not self._path.exists():
                self._make()
        except OSError as error:
            report(f"the key of the secrets cannot be saved: {error}")
            advice = FILE_ADVICE.get(error.errno or 0)
            if advice is None:
                raise _unavailable(error) from error
            raise ServiceError(NOT_SAVED, advice) from error
        try:
            key = self._path.read_bytes()
        except OSError as error:
            report(f"the key of the secrets cannot be read: {error}")
            raise _unavailable(error) from error
        if len(key) != _KEY_BYTES:
            message = f"{self._path} has {len(key)} bytes, and a key of secrets has {_KEY_BYTES}"
            report(f"{message}: restore it from a backup")
            raise ServiceError("NotFoundException", message)
        return key

    def _make(self) -> None:
        """Saves a new key atomically, unless another thread has saved one first."""
        made = self._path.with_name(f"{self._path.name}.{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
                new.write(secrets.token_bytes(_KEY_BYTES))
                new.flush()
                os.fsync(new.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(made, self._path)
        finally:
            made.unlink(missing_ok=True)


class KmsClient:
    """A client of :class:`Kms` for functions in this process, which makes no request over the
    loopback."""

    def __init__(self, kms: Kms) -> None:
        self._kms = kms

    def encrypt(self, **parameters: Any) -> dict[str, Any]:
        """KMS's operation Encrypt: encrypts Plaintext and returns CiphertextBlob. Raises
        ClientError if the key cannot be saved or read."""
        plain = base64.b64encode(parameters["Plaintext"]).decode()
        with _translated("Encrypt"):
            answer = self._kms.encrypt({**parameters, "Plaintext": plain})
        return {"CiphertextBlob": base64.b64decode(answer["CiphertextBlob"])}

    def decrypt(self, **parameters: Any) -> dict[str, Any]:
        """KMS's operation Decrypt: decrypts CiphertextBlob and returns Plaintext. Raises
        ClientError if it was encrypted with another key or another context, or if the key cannot be
        saved or read."""
        sealed = base64.b64encode(parameters["CiphertextBlob"]).decode()
        with _translated("Decrypt"):
            answer = self._kms.decrypt({**parameters, "CiphertextBlob": sealed})
        return {"Plaintext": base64.b64decode(answer["Plaintext"])}


@contextlib.contextmanager
def _translated(operation: str) -> Iterator[None]:
    """Raises botocore's exception instead of a ServiceError inside the ``with`` block."""
    try:
        yield
    except ServiceError as error:
        described: Any = {"Error": {"Code": error.code, "Message": str(error)}}
        raise ClientError(described, operation) from None


def _unavailable(error: OSError) -> ServiceError:
    return ServiceError("KMSInternalException", f"the key's file cannot be used: {error.strerror}")


def _context(request: dict[str, Any]) -> bytes:
    return json.dumps(request.get("EncryptionContext", {}), sort_keys=True).encode()
