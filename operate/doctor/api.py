"""Calls, over HTTP, the MLflow server that a checkup checks. Uses the credentials that MLflow's
client would use."""

from __future__ import annotations

import base64
import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from operate.doctor.interruption import Interruption
from operate.doctor.outcome import Wrong
from operate.module_loading import CannotRun

TIMEOUT_SECONDS: Final = 60
MESSAGE_LENGTH: Final = 300
"""How many characters of an answer are quoted in an outcome."""


class ApiAnswer(NamedTuple):
    """The status, headers and content of a server's answer."""

    status: int
    headers: Mapping[str, str]
    """The headers of the answer, by name in lower case."""
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    @property
    def body(self) -> Any:
        """The answer's content, parsed as JSON.

        Raises:
            Wrong: the content is not JSON.
        """
        try:
            return json.loads(self.content)
        except ValueError:
            raise Wrong(f"the answer is no JSON: {self.text[:MESSAGE_LENGTH]!r}") from None


class Login(NamedTuple):
    """The credentials for the tracking server, from MLflow's environment variables; a missing one
    is an empty text."""

    user: str = ""
    password: str = ""
    token: str = ""
    signs: bool = False
    """Whether requests are signed with AWS credentials (``MLFLOW_TRACKING_AWS_SIGV4``)."""

    @property
    def is_given(self) -> bool:
        return bool(self.user or self.token or self.signs)

    def headers(self) -> dict[str, str]:
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user:
            pair = f"{self.user}:{self.password}".encode()
            return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return {}

    def secrets(self) -> list[str]:
        """Returns the secrets of the login, which must not appear in any output: password, token
        and Authorization value."""
        header = self.headers().get("Authorization", "").rpartition(" ")[2]
        return [text for text in (self.password, self.token, header) if text]


def login_of_environment(environ: Mapping[str, str] = os.environ) -> Login:
    return Login(
        environ.get("MLFLOW_TRACKING_USERNAME", ""),
        environ.get("MLFLOW_TRACKING_PASSWORD", ""),
        environ.get("MLFLOW_TRACKING_TOKEN", ""),
        environ.get("MLFLOW_TRACKING_AWS_SIGV4", "").lower() in ("true", "1"),
    )


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes urllib return a redirect as the answer. Following it could send the login to another
    host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Api:
    """A client of the server that ``doctor``'s checkup checks, with the login to use."""

    def __init__(self, url: str, login: Login, profile: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CannotRun("--url: an address of http or https is needed")
        if parts.username or parts.password:
            raise CannotRun("--url: give the login by MLFLOW_TRACKING_USERNAME and …_PASSWORD")
        self.url = url.rstrip("/")
        self.login = login
        self.interruption = Interruption()
        self._profile = profile
        self._opener = urllib.request.build_opener(_NoRedirect)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        login: Login | None = None,
        query: Mapping[str, str] | None = None,
    ) -> ApiAnswer:
        """Sends a request and returns the answer, whatever its status.

        Args:
            path: the path, which begins with a slash.
            body: a value to send as JSON; None sends no body.
            login: the login to use; None for this object's own.

        Raises:
            KeyboardInterrupt: a signal arrived since the last call; nothing is sent.
            Wrong: the server does not answer.
            CannotRun: requests have to be signed, but AWS credentials or a region are missing.
        """
        self.interruption.check()
        target = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else json.dumps(body).encode()
        login = self.login if login is None else login
        sent = {**login.headers(), **(headers or {})}
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        if login.signs:
            sent = self._signed(method, target, sent, content)
        request = urllib.request.Request(  # noqa: S310 -- the scheme is checked above
            target, content, sent, method=method
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as reply:
                return ApiAnswer(reply.status, _lower(reply.headers), reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return ApiAnswer(error.code, _lower(error.headers), error.read())
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise Wrong(f"{method} {path}: no answer: {reason}") from error

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """Sends a request to the API and returns the JSON of the answer.

        Args:
            path: the path below ``/api``, such as ``2.0/mlflow/runs/get``.

        Raises:
            Wrong: the server does not answer, reports an error, or its answer is no JSON.
        """
        answer = self.call(method, f"/api/{path}", body, query=query)
        if not 200 <= answer.status < 300:
            raise Wrong(f"{method} {path}: {answer.status} {answer.text[:MESSAGE_LENGTH]}")
        return answer.body if answer.content else {}

    def post(self, path: str, **fields: Any) -> Any:
        return self.ask("POST", f"2.0/mlflow/{path}", fields)

    def get(self, path: str, **query: str) -> Any:
        return self.ask("GET", f"2.0/mlflow/{path}", **query)

    def _signed(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes | None
    ) -> dict[str, str]:
        # A quarter of a second, for who signs.
        from botocore.auth import SigV4Auth  # noqa: PLC0415
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415
        from botocore.session import Session  # noqa: PLC0415

        session = Session(profile=self._profile)
        credentials, region = session.get_credentials(), session.get_config_variable("region")
        if credentials is None or not region:
            raise CannotRun("MLFLOW_TRACKING_AWS_SIGV4 needs AWS credentials and a region")
        request = AWSRequest(method, target, dict(headers), content or b"")
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region).add_auth(request)
        return dict(request.headers.items())


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
