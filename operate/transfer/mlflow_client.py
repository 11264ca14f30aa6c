"""An HTTP client of an MLflow server: JSON calls, page tokens and downloads."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import urllib3

from mlcore.entities.workspaces import DEFAULT_WORKSPACE

Json = dict[str, Any]

CONNECTIONS: Final = 16
CHUNK_BYTES: Final = 8 * 1024 * 1024
_RETRIES: Final = urllib3.Retry(
    total=6,
    backoff_factor=0.3,
    status_forcelist=(429, 502, 503, 504),
    allowed_methods=None,
    raise_on_status=False,
)


class SourceFailed(Exception):
    """Raised if the server that a command reads or writes (MLflow's, or a Kubeflow registry)
    answers with an error, not with a JSON object, or not at all (``status`` is 0). Also raised if
    an entity that a transfer needs is missing, or if a name is taken at the target of an export."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    @property
    def unknown(self) -> bool:
        """Whether the source server seems to lack the API's route, as an old version
        of MLflow may."""
        return self.code == "ENDPOINT_NOT_FOUND" or (self.status in (404, 405) and not self.code)

    @property
    def forbidden(self) -> bool:
        """Whether the error means that the account with which the import logs in at the server
        has no permission."""
        return self.status == 403

    @property
    def absent(self) -> bool:
        return self.status == 404


class Server:
    """A client of an MLflow server's REST API.

    Environment:
        MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD: for servers with basic authentication.
        MLFLOW_TRACKING_TOKEN: otherwise, a bearer token.

    Args:
        files: the folder that the server's artifact proxy serves, if it is known: then locations
            that are paths below it are proxied, too.
    """

    def __init__(self, url: str, files: Path | None = None) -> None:
        self.url = url.rstrip("/")
        self.files = files
        self.workspace = DEFAULT_WORKSPACE
        user, token = (os.environ.get(f"MLFLOW_TRACKING_{name}") for name in ("USERNAME", "TOKEN"))
        self._headers: dict[str, str] = {}
        if user:
            password = os.environ.get("MLFLOW_TRACKING_PASSWORD", "")
            self._headers = urllib3.make_headers(basic_auth=f"{user}:{password}")
        elif token:
            self._headers = {"authorization": f"Bearer {token}"}
        self._pool = urllib3.PoolManager(
            maxsize=CONNECTIONS,
            block=True,
            retries=_RETRIES,
            timeout=urllib3.Timeout(connect=10, read=120),
        )

    def within(self, workspace: str) -> Server:
        """Returns a client for one workspace of the server. Not for a server without workspaces,
        which refuses the workspace header."""
        other = copy.copy(self)
        other.workspace = workspace
        other._headers = {**self._headers, "x-mlflow-workspace": workspace}
        return other

    def get(self, path: str, /, **parameters: Any) -> Json:
        return _object(self._send("GET", self._address(path, parameters)))

    def post(self, path: str, /, **fields: Any) -> Json:
        return _object(self._send("POST", self._address(path, {}), json.dumps(fields).encode()))

    def text(self, path: str, /, **parameters: Any) -> str:
        return self._send("GET", self._address(path, parameters)).data.decode()

    def pages(self, method: str, path: str, entries: str, /, **fields: Any) -> Iterator[Json]:
        """Yields the entries of all pages of a list of the MLflow server's REST API. ``entries`` is
        the field of a page that holds them."""
        call = self.post if method == "POST" else self.get
        token = None
        while True:
            page = call(path, **fields, **({"page_token": token} if token else {}))
            yield from page.get(entries, ())
            token = page.get("next_page_token")
            if not token:
                return

    def stream(self, path: str) -> Iterator[bytes]:
        """Yields in chunks the bytes of a file that the MLflow server has at ``path``."""
        answer = self._send("GET", self._address(quote(path), {}), stream=True)
        try:
            yield from answer.stream(CHUNK_BYTES)
        finally:
            answer.release_conn()

    def _address(self, path: str, parameters: Json) -> str:
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        return f"{self.url}/{path}{query}"

    def _send(
        self, method: str, address: str, body: bytes | None = None, *, stream: bool = False
    ) -> urllib3.BaseHTTPResponse:
        headers = {**self._headers, **({"content-type": "application/json"} if body else {})}
        try:
            answer = self._pool.request(
                method, address, body=body, headers=headers, preload_content=not stream
            )
            if answer.status == 200:
                return answer
            text = answer.data.decode(errors="replace")
        except urllib3.exceptions.HTTPError as error:
            raise SourceFailed(0, f"{self.url} does not answer: {error}") from error
        try:
            error_body = json.loads(text)
            code, message = error_body["error_code"], error_body.get("message", "")
        except (KeyError, TypeError, ValueError):
            code, message = "", text[:200]
        raise SourceFailed(answer.status, f"{method} {address}: {answer.status} {message}", code)


def _object(answer: urllib3.BaseHTTPResponse) -> Json:
    try:
        answered = json.loads(answer.data)
    except ValueError:
        answered = None
    if not isinstance(answered, dict):
        raise SourceFailed(404, "The address answers, but not as an MLflow server does.")
    return answered
