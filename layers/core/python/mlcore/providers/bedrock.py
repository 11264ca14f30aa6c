"""Models at Amazon Bedrock, by its Converse API: with an API key of Bedrock's, with access keys of
an account, or with the credentials of the server itself."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, urlsplit

from mlcore import aws
from mlcore.db.signature import Keys, Signer
from mlcore.errors import GatewayCallFailed
from mlcore.providers import converse, event_stream, transport
from mlcore.providers.environment import bedrock_url, own_region
from mlcore.providers.provider import Json, Provider, check_no_model

_API_KEY, _ACCESS_KEYS, _DEFAULT_CHAIN, _ROLE = (
    "api_key",
    "access_keys",
    "default_chain",
    "iam_role",
)
_REGION: Final = re.compile(r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}")
"""It becomes part of a host name, which nobody must choose by it."""


class Bedrock(Provider):
    """The address follows from the region; an ``api_base`` is not looked at, as MLflow's server
    does not."""

    display_name = "Amazon Bedrock"

    @property
    def configured(self) -> bool:
        return False

    def chat(self, payload: Json) -> Json:
        url, headers, request = self._asking("converse", payload)
        answer = transport.ask(url, headers, request, configured=self.configured)
        return converse.completion_of(answer, self.model.name)

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        url, headers, request = self._asking("converse-stream", payload)
        parts = transport.parts(url, headers, request, configured=self.configured)
        return converse.chunks_of(event_stream.events(parts), self.model.name)

    def _asking(self, operation: str, payload: Json) -> tuple[str, dict[str, str], Json]:
        """Address, headers and body of a request that may be sent at once."""
        check_no_model(payload)
        request = converse.request_of(payload)
        region = self._region()
        # An inference profile is named by its ARN, which has slashes.
        path = f"/model/{quote(self.model.name, safe='')}/{operation}"
        url = bedrock_url(region).rstrip("/") + path
        if self._mode == _API_KEY:
            return url, {"Authorization": f"Bearer {self._of_secret('api_key')}"}, request
        parts = urlsplit(url)
        headers = {"Host": parts.netloc, "Content-Type": transport.CONTENT_TYPE}
        body = transport.written(request)
        # Of a path, a signature covers the form that is quoted once more.
        signed = quote(parts.path, safe="/~")
        Signer("bedrock", region).sign(self._keys(), headers, body, time.time(), signed)
        return url, headers, request

    @property
    def _mode(self) -> str:
        return self.model.auth_config.get("auth_mode") or _API_KEY

    def _region(self) -> str:
        region = self.model.auth_config.get("aws_region_name")
        if not region and self._mode == _API_KEY:
            raise GatewayCallFailed(
                400,
                "aws_region_name is required for Bedrock API key authentication. The API key can "
                "only be used in the AWS Region it was generated in.",
            )
        region = region or own_region()
        if not _REGION.fullmatch(region):
            raise GatewayCallFailed(400, "The secret's aws_region_name is no AWS Region.")
        return region

    def _keys(self) -> Keys:
        mode = self._mode
        if mode == _ACCESS_KEYS:
            return Keys(
                self._of_secret("aws_access_key_id"),
                self._of_secret("aws_secret_access_key"),
                self.model.secret.get("aws_session_token") or None,
            )
        if mode == _ROLE or self.model.auth_config.get("aws_role_name"):
            raise GatewayCallFailed(
                501,
                "This server assumes no other role to call Amazon Bedrock. Use access keys, an API "
                "key, or the default credential chain without aws_role_name.",
            )
        if mode != _DEFAULT_CHAIN:
            raise GatewayCallFailed(400, "The secret's auth_mode is none of Amazon Bedrock's.")
        keys = aws.own_keys()
        if keys is None:
            raise GatewayCallFailed(502, "This server has no AWS credentials of its own.")
        return keys

    def _of_secret(self, name: str) -> str:
        value = self.model.secret.get(name, "").strip()
        if not value:
            raise GatewayCallFailed(
                400, f"The secret has no {name}, which Amazon Bedrock needs with this auth_mode."
            )
        return value
