"""Encrypts and decrypts secrets with KMS; only functions that need the key may use it. This module
neither caches nor logs them.

The local runner stands in for KMS, with a key in the data folder.
"""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Mapping
from typing import Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from mlcore.aws_clients import create_client
from mlcore.db import transport as transports
from mlcore.db.client import transport
from mlcore.db.failures import NOT_SAVED
from mlcore.errors import (
    InsufficientStorage,
    InternalError,
    InvalidParameterValue,
    RequestLimitExceeded,
    TemporarilyUnavailable,
)

MAX_BYTES: Final = 4096
"""Maximum that KMS encrypts in one call."""

_PERMANENT: Final = frozenset(
    ("AccessDeniedException", "InvalidCiphertextException", "NotFoundException")
)


class KeyClient(Protocol):
    """The interface of clients that execute KMS's operations Encrypt and Decrypt. Binary fields of
    requests and answers are bytes."""

    def encrypt(self, **parameters: Any) -> dict[str, Any]:
        """Executes KMS's operation Encrypt; the returned answer has ``CiphertextBlob``. Raises
        ClientError as botocore's client does."""

    def decrypt(self, **parameters: Any) -> dict[str, Any]:
        """Executes KMS's operation Decrypt; the returned answer has ``Plaintext``. Raises
        ClientError as botocore's client does."""


_in_process: Final[list[KeyClient]] = []


def register(client: KeyClient | None) -> None:
    """Sets a client in this process that is used instead of KMS; None goes back to KMS. The local
    runner sets one, because a call over the loopback would take a third of the gateway's time."""
    _in_process[:] = [] if client is None else [client]


def seal(secret: str, context: Mapping[str, str]) -> str:
    """Encrypts a secret; :func:`open_sealed` decrypts it, given the same context. Must be called
    before anything is written.

    Raises:
        InvalidParameterValue: the secret is longer than 4,096 bytes.
        InternalError: KMS denies access, or the key does not exist.
        InsufficientStorage: the key of a laptop cannot be saved, because the disk is full.
        RequestLimitExceeded: KMS cannot be reached, or fails in another way. Clients repeat a
            request that creates after this error, and not after TemporarilyUnavailable.
    """
    plain = secret.encode()
    if len(plain) > MAX_BYTES:
        raise InvalidParameterValue(f"A secret has at most {MAX_BYTES} bytes.")
    try:
        answer = _call(
            "encrypt", KeyId=os.environ["SECRETS_KEY_ID"], Plaintext=plain, context=context
        )
    except TemporarilyUnavailable as error:
        raise RequestLimitExceeded(error.message) from error
    return base64.b64encode(answer["CiphertextBlob"]).decode()


def open_sealed(sealed: str, context: Mapping[str, str]) -> str:
    """Decrypts a secret that :func:`seal` encrypted.

    Raises:
        InternalError: KMS denies access, the key does not exist, or the text or context is wrong.
        TemporarilyUnavailable: KMS cannot be reached, or fails in another way.
    """
    answer = _call(
        "decrypt",
        KeyId=os.environ["SECRETS_KEY_ID"],
        CiphertextBlob=base64.b64decode(sealed),
        context=context,
    )
    plain: bytes = answer["Plaintext"]
    return plain.decode()


def read_from_secrets_manager(secret: str) -> str:
    """Returns the text of a secret in Secrets Manager, by its ARN. Raises TemporarilyUnavailable if
    it cannot be read."""
    try:
        answer = create_client("secretsmanager").get_secret_value(SecretId=secret)
    except (BotoCoreError, ClientError) as error:
        raise TemporarilyUnavailable(f"The secret {secret} cannot be read: {error}") from None
    return str(answer.get("SecretString", ""))


def _call(operation: str, *, context: Mapping[str, str], **parameters: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = getattr(_in_process[0] if _in_process else _client(), operation)(
            EncryptionContext=dict(context), **parameters
        )
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code == NOT_SAVED:
            raise InsufficientStorage(error.response["Error"]["Message"]) from None
        if code in _PERMANENT:
            raise InternalError(f"The key of this server's secrets refuses ({code}).") from None
        raise TemporarilyUnavailable("Secrets cannot be read or stored now. Try again.") from None
    except BotoCoreError:
        raise TemporarilyUnavailable("Secrets cannot be read or stored now. Try again.") from None
    return answer


class _Client:
    """Calls those operations of KMS that are needed, without botocore's client, which would take 10
    MB."""

    def __init__(self) -> None:
        self._transport = transport("kms", transports.Protocol("TrentService.", "1.1"))
        self.close = self._transport.close

    def encrypt(self, **parameters: Any) -> dict[str, Any]:
        return self._call("Encrypt", parameters, "CiphertextBlob")

    def decrypt(self, **parameters: Any) -> dict[str, Any]:
        return self._call("Decrypt", parameters, "Plaintext")

    def _call(self, operation: str, parameters: dict[str, Any], blob: str) -> dict[str, Any]:
        answer = self._transport.call(operation, parameters)
        return {**answer, blob: base64.b64decode(answer[blob])}


@functools.cache
def _client() -> Any:
    return _Client()
