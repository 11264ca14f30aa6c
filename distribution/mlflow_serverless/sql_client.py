"""Runs SQL on a server and returns a result that converts to pandas, Polars or Arrow::

    import mlflow_serverless

    result = mlflow_serverless.sql("SELECT status FROM system.mlflow.runs_latest")
    result.df()

The server and the credentials are those of MLflow's client. Only the standard library is needed
until a result is converted.
"""

from __future__ import annotations

import base64
import configparser
import io
import json
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ARROW: Final = "application/vnd.apache.arrow.stream"
TRIES: Final = 30
"""How often a query is sent while the server answers that too many queries run."""
SECONDS: Final = 60
MOST_RETRY_SECONDS: Final = 10.0


class SqlError(Exception):
    """Raised if the server refuses a query or cannot be reached."""

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status; 0 if there was no answer."""
        self.code = code
        """MLflow's error code, such as ``INVALID_PARAMETER_VALUE``; empty if there is none."""


class SqlResult:
    """The result of a query, which converts its rows to tables of several libraries."""

    def __init__(self, stream: bytes) -> None:
        self.stream = stream
        """The rows as a stream of Arrow's IPC format."""

    def arrow(self) -> Any:
        """Returns a ``pyarrow.Table``. Needs pyarrow."""
        return _needed("pyarrow.ipc", "pyarrow").open_stream(self.stream).read_all()

    def df(self) -> Any:
        """Returns a ``pandas.DataFrame``. Needs pandas and pyarrow."""
        _needed("pandas", "pandas")
        return self.arrow().to_pandas()

    def pl(self) -> Any:
        """Returns a ``polars.DataFrame``. Needs Polars."""
        return _needed("polars", "polars").read_ipc_stream(io.BytesIO(self.stream))


def sql(
    query: str | None = None,
    /,
    *,
    saved: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    fresh: bool = False,
    url: str | None = None,
    workspace: str | None = None,
) -> SqlResult:
    """Runs a query, or a saved query, on a server.

    Args:
        query: the SQL; ``:name`` stands for a parameter.
        saved: the name of a saved query, instead of ``query``.
        parameters: values by name. They are sent beside the SQL and are never part of it.
        fresh: publish all writes before the query. Only a server on a laptop can do this.
        url: the server; by default ``MLFLOW_TRACKING_URI``.
        workspace: by default ``MLFLOW_WORKSPACE``.

    Raises:
        SqlError: the server refuses the query or cannot be reached.
        ValueError: not exactly one of ``query`` and ``saved`` is given, or there is no server.
    """
    if (query is None) == (saved is None):
        raise ValueError("give either a query or the name of a saved one")
    address, authorization = _server(url or os.environ.get("MLFLOW_TRACKING_URI") or "")
    body = {"parameters": dict(parameters or {}), "fresh": fresh, "format": "arrow"}
    body |= {"sql": query} if saved is None else {"saved": saved}
    headers = {"Content-Type": "application/json", "Accept": ARROW}
    if authorization:
        headers["Authorization"] = authorization
    if workspace or os.environ.get("MLFLOW_WORKSPACE"):
        headers["X-MLFLOW-WORKSPACE"] = workspace or os.environ["MLFLOW_WORKSPACE"]
    request = urllib.request.Request(  # noqa: S310 -- _server has checked the scheme
        f"{address}/api/3.0/mlflow-serverless/sql", json.dumps(body).encode(), headers
    )
    return SqlResult(_answer(request))


def _answer(request: urllib.request.Request) -> bytes:
    opener = urllib.request.build_opener(
        _NoRedirect, urllib.request.HTTPSHandler(context=_tls_context())
    )
    for left in reversed(range(TRIES)):
        try:
            with opener.open(request, timeout=SECONDS) as response:
                content: bytes = response.read()
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.TOO_MANY_REQUESTS or not left:
                raise _refusal(error) from error
            time.sleep(_retry_seconds(error.headers.get("Retry-After")))
        except OSError as error:
            raise SqlError(f"{request.host} does not answer: {error}") from error
        else:
            return content
    raise AssertionError


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because it could send the credentials to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _retry_seconds(header: str | None) -> float:
    try:
        return min(MOST_RETRY_SECONDS, max(0.0, float(header or 1)))
    except ValueError:
        return 1.0


def _refusal(error: urllib.error.HTTPError) -> SqlError:
    text = error.read().decode(errors="replace")
    try:
        answer = json.loads(text)
        return SqlError(str(answer["message"]), error.code, str(answer.get("error_code", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        # The answer to a missing login is plain text.
        return SqlError(text.strip() or f"the server answered {error.code}", error.code)


def _server(uri: str) -> tuple[str, str]:
    """Returns the URL of a server without credentials, and the value of the header
    ``Authorization``; "" if there are no credentials. Raises ValueError if no server is named, or
    if requests must be signed with AWS credentials."""
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("name a server: MLFLOW_TRACKING_URI=https://… or sql(…, url=…)")
    if os.environ.get("MLFLOW_TRACKING_AWS_SIGV4", "").lower() in ("true", "1"):
        raise ValueError("MLFLOW_TRACKING_AWS_SIGV4: sql() does not sign requests; use an API key")
    host = parts.netloc.rpartition("@")[2]
    address = f"{parts.scheme}://{host}{parts.path}".rstrip("/")
    stored = _stored_credentials()
    user = os.environ.get("MLFLOW_TRACKING_USERNAME") or stored.get("mlflow_tracking_username")
    password = os.environ.get("MLFLOW_TRACKING_PASSWORD") or stored.get("mlflow_tracking_password")
    if parts.username is not None:
        user = urllib.parse.unquote(parts.username)
        password = urllib.parse.unquote(parts.password or "")
    if user and password:
        return address, f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    token = os.environ.get("MLFLOW_TRACKING_TOKEN")
    return address, f"Bearer {token}" if token else ""


def _stored_credentials() -> Mapping[str, str]:
    """Returns the login in MLflow's file ``~/.mlflow/credentials``, if there is one."""
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read(Path.home() / ".mlflow" / "credentials")
        return file["mlflow"]
    except (configparser.Error, KeyError, OSError, RuntimeError, UnicodeDecodeError):
        return {}


def _tls_context() -> ssl.SSLContext:
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    return ssl.create_default_context(cafile=os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH"))


def _needed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"the result needs {package}: pip install {package}") from error
