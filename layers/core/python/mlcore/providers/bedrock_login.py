"""Signs requests to Amazon Bedrock for a model: by a Bedrock API key, an account's access keys, or
the server's own credentials."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, urlsplit

from mlcore import aws_clients
from mlcore.db.signature import Credentials, Signer
from mlcore.errors import GatewayCallFailed
from mlcore.providers import transport
from mlcore.providers.environment import bedrock_url, own_region
from mlcore.providers.model import Model

Json = dict[str, Any]

_API_KEY, _ACCESS_KEYS, _DEFAULT_CHAIN, _ROLE = (
    "api_key",
    "access_keys",
    "default_chain",
    "iam_role",
)
_REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}")
"""The region becomes part of a host name, so it must not be able to select another host."""


class BedrockLogin:
    """The credentials and the region with which a model at Amazon Bedrock is called."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def credentials(self) -> Iterable[str]:
        """Returns all secret values that requests to the model contain."""
        keys = aws_clients.process_credentials() if self._mode == _DEFAULT_CHAIN else None
        own = () if keys is None else tuple(filter(None, keys))
        return (*self._model.secret.values(), *own)

    def signed(
        self, model: str, operation: str, body: Json, more: Iterable[tuple[str, str]] = ()
    ) -> tuple[str, dict[str, str]]:
        """Returns the URL and the signed headers of a request to Bedrock about a model.

        Args:
            operation: the end of the path, for example ``converse``.
            more: further headers, with names in lower case.

        Raises:
            GatewayCallFailed: the secret does not say how to log in, or names a way that this
                server does not have.
        """
        region = self._region()
        # The model may be the ARN of an inference profile, which contains slashes.
        path = f"/model/{quote(model, safe='')}/{operation}"
        url = bedrock_url(region).rstrip("/") + path
        if self._mode == _API_KEY:
            return url, {**dict(more), "Authorization": f"Bearer {self._secret_value('api_key')}"}
        parts = urlsplit(url)
        headers = {"Host": parts.netloc, "Content-Type": transport.CONTENT_TYPE, **dict(more)}
        # A signature covers the path quoted a second time.
        signed = quote(parts.path, safe="/~")
        data = transport.encode_body(body)
        Signer("bedrock", region).sign(self._keys(), headers, data, time.time(), signed)
        return url, headers

    @property
    def _mode(self) -> str:
        return self._model.auth_config.get("auth_mode") or _API_KEY

    def _region(self) -> str:
        region = self._model.auth_config.get("aws_region_name")
        if not region and self._mode == _API_KEY:
            raise GatewayCallFailed(
                400,
                "aws_region_name is required for Bedrock API key authentication. The API key can "
                "only be used in the AWS Region it was generated in.",
            )
        region = region or own_region()
        if not _REGION.fullmatch(region):
            raise GatewayCallFailed(400, "The secret's aws_region_name is not an AWS Region.")
        return region

    def _keys(self) -> Credentials:
        mode = self._mode
        if mode == _ACCESS_KEYS:
            return Credentials(
                self._secret_value("aws_access_key_id"),
                self._secret_value("aws_secret_access_key"),
                self._model.secret.get("aws_session_token") or None,
            )
        if mode == _ROLE or self._model.auth_config.get("aws_role_name"):
            # Whoever may create secrets could name any role that trusts this server's account.
            raise GatewayCallFailed(
                501,
                "This server does not assume another role to call Amazon Bedrock. Use access keys, "
                "an API key, or the default credential chain without aws_role_name.",
            )
        if mode != _DEFAULT_CHAIN:
            raise GatewayCallFailed(
                400, "The secret's auth_mode does not exist for Amazon Bedrock."
            )
        keys = aws_clients.process_credentials()
        if keys is None:
            raise GatewayCallFailed(502, "This server has no AWS credentials of its own.")
        return keys

    def _secret_value(self, name: str) -> str:
        value = self._model.secret.get(name, "").strip()
        if not value:
            raise GatewayCallFailed(
                400, f"The secret has no {name}, which Amazon Bedrock needs with this auth_mode."
            )
        return value
