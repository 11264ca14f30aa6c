"""Models at Amazon Bedrock, called by its Converse API with a Bedrock API key, an account's access
keys, or the server's own credentials."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, urlsplit

from mlcore import aws_clients
from mlcore.db.signature import Credentials, Signer
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
"""The region becomes part of a host name, so it must not be able to select another host."""


class Bedrock(Provider):
    """A model at Amazon Bedrock. Its URL is derived from the region; ``api_base`` is ignored, as on
    MLflow's server."""

    display_name = "Amazon Bedrock"

    @property
    def configured(self) -> bool:
        return False

    def chat(self, payload: Json) -> Json:
        url, headers, request = self._prepared_request("converse", payload)
        answer = transport.ask(
            url, headers, request, configured=self.configured, redactor=self.redactor
        )
        return converse.completion_of(answer, self.model.name)

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        url, headers, request = self._prepared_request("converse-stream", payload)
        parts = transport.chunks(url, headers, request, configured=self.configured)
        return converse.chunks_of(event_stream.events(parts, self.redactor), self.model.name)

    def _credentials(self) -> Iterable[str]:
        keys = aws_clients.process_credentials() if self._mode == _DEFAULT_CHAIN else None
        own = () if keys is None else tuple(filter(None, keys))
        return (*self.model.secret.values(), *own)

    def _prepared_request(self, operation: str, payload: Json) -> tuple[str, dict[str, str], Json]:
        """Returns the URL, the signed headers and the body of a request for a chat."""
        check_no_model(payload)
        request = converse.request_of(payload)
        region = self._region()
        # The model may be the ARN of an inference profile, which contains slashes.
        path = f"/model/{quote(self.model.name, safe='')}/{operation}"
        url = bedrock_url(region).rstrip("/") + path
        if self._mode == _API_KEY:
            return url, {"Authorization": f"Bearer {self._secret_value('api_key')}"}, request
        parts = urlsplit(url)
        headers = {"Host": parts.netloc, "Content-Type": transport.CONTENT_TYPE}
        body = transport.encode_body(request)
        # A signature covers the path quoted a second time.
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
            raise GatewayCallFailed(400, "The secret's aws_region_name is not an AWS Region.")
        return region

    def _keys(self) -> Credentials:
        mode = self._mode
        if mode == _ACCESS_KEYS:
            return Credentials(
                self._secret_value("aws_access_key_id"),
                self._secret_value("aws_secret_access_key"),
                self.model.secret.get("aws_session_token") or None,
            )
        if mode == _ROLE or self.model.auth_config.get("aws_role_name"):
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
        value = self.model.secret.get(name, "").strip()
        if not value:
            raise GatewayCallFailed(
                400, f"The secret has no {name}, which Amazon Bedrock needs with this auth_mode."
            )
        return value
