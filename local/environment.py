"""Sets the environment variables that the local Lambda functions read, before any of these
functions is imported."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from local.log import report
from local.template_definitions import FunctionDefinition

DEFAULT_TABLE_NAME = "mlflow-serverless"
DEFAULT_REGION = "us-east-1"
DEFAULT_PASSWORD = "password1234"  # noqa: S105 - MLflow's own, which the runner warns of

_QUIET = {
    "POWERTOOLS_TRACE_DISABLED": "true",
    "POWERTOOLS_METRICS_DISABLED": "true",
    "POWERTOOLS_METRICS_NAMESPACE": "mlflow-serverless",
    "POWERTOOLS_SERVICE_NAME": "local",
    "POWERTOOLS_LOG_LEVEL": "WARNING",
    "AWS_EC2_METADATA_DISABLED": "true",
    # Functions prepare themselves when they are loaded, as in Lambda.
    "AWS_LAMBDA_RUNTIME_API": "local",
    # The store must add up all items of a partition to answer this.
    "COLLECTION_SIZES": "false",
}
_LAPTOP = {"WEBHOOK_ALLOW_LOOPBACK": "true"}
"""Webhook receivers on this machine may use plain http, unless the user sets another rule."""

_WEBHOOK_CHOICES = ("MLFLOW_WEBHOOK_ALLOWED_SCHEMES", "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS")

_EXAMPLE_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
"""AWS's documented example key, which nothing on this machine checks."""

_EVERYWHERE = ("0.0.0.0", "::")
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_NAMES_OF_THIS_MACHINE = (
    "localhost,localhost:*,127.0.0.1,127.0.0.1:*,0.0.0.0,0.0.0.0:*,[::1],[[]::1]:*"
)
_PRIVATE_ADDRESSES = (
    "10.*,192.168.*,"
    + ",".join(f"172.{second}.*" for second in range(16, 32))
    + ",[[]fc*,[[]fd*,[[]fe80:*"
)
"""Addresses by which other machines of a private network reach this one: those that MLflow's server
accepts without a setting, and link-local ones."""

THIS_MACHINE = "127.0.0.1,localhost"
"""Names and addresses of this machine. Requests to them bypass HTTP proxies."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

_REAL_IDENTITY = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE")


def table_name(environ: MutableMapping[str, str] = os.environ) -> str:
    """Returns the name of the local DynamoDB table: ``TABLE_NAME`` in ``environ``, or a default."""
    return environ.get("TABLE_NAME") or DEFAULT_TABLE_NAME


def region(environ: MutableMapping[str, str] = os.environ) -> str:
    """Returns the AWS region that the functions get: that of the environment, or a default."""
    return environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or DEFAULT_REGION


def foreign_engine(environ: MutableMapping[str, str] = os.environ) -> str | None:
    """Returns the endpoint URL of a DynamoDB engine that the user runs, from the environment; None
    if the table is in this product's own store.
    """
    return environ.get("AWS_ENDPOINT_URL_DYNAMODB") or None


def keep_files(folder: Path, environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Sets ARTIFACT_FOLDER to ``folder`` unless the user has set it. Returns the folder for
    artifacts, or None if ARTIFACT_BUCKET is set: files are then in S3.
    """
    if environ.get("ARTIFACT_BUCKET"):
        return None
    return Path(environ.setdefault("ARTIFACT_FOLDER", str(folder)))


def keep_tables(folder: Path, environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Sets SYSTEM_TABLES_FOLDER to ``folder`` unless the user has set it. Returns the folder for
    system tables, or None if SYSTEM_TABLES_BUCKET is set: they are then in S3.
    """
    if environ.get("SYSTEM_TABLES_BUCKET"):
        return None
    return Path(environ.setdefault("SYSTEM_TABLES_FOLDER", str(folder)))


def administrator(environ: MutableMapping[str, str] = os.environ) -> tuple[str, str]:
    """Returns the name and the password of the first administrator, from the environment or by
    default.
    """
    return (
        environ.get("MLFLOW_AUTH_ADMIN_USERNAME") or "admin",
        environ.get("MLFLOW_AUTH_ADMIN_PASSWORD") or DEFAULT_PASSWORD,
    )


def own_host_names(host: str) -> str:
    """Returns the Host headers that a local server listening on ``host`` accepts if the user names
    none, in the form of MLFLOW_SERVER_ALLOWED_HOSTS: the names of this machine; unless ``host`` is
    localhost, 127.0.0.1 or ::1, also private addresses, the machine's own name, and ``host``."""
    if host in _THIS_MACHINE:
        return _NAMES_OF_THIS_MACHINE
    names = {socket.gethostname(), host} - {"", "0.0.0.0", "::"}
    own = [
        f"{escaped}{port}"
        for name in sorted(names)
        for escaped in ((f"[[]{name}]" if ":" in name else name),)
        for port in (("", ":*") if ":" not in name else ("*",))
    ]
    return ",".join([_NAMES_OF_THIS_MACHINE, _PRIVATE_ADDRESSES, *own])


def answer_to_own_names(host: str, environ: MutableMapping[str, str] = os.environ) -> None:
    """Limits the accepted Host headers to :func:`own_host_names`, unless the environment names
    others. This stops DNS rebinding, as MLflow's server does."""
    environ.setdefault("MLFLOW_SERVER_ALLOWED_HOSTS", own_host_names(host))


def reach_this_machine_directly(environ: MutableMapping[str, str] = os.environ) -> bool:
    """Adds this machine to NO_PROXY if the user has set a proxy, because the proxy could not reach
    it. Returns whether that was necessary."""
    if not any(environ.get(name) for spelled in _PROXIES for name in (spelled, spelled.lower())):
        return False
    known = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    names = [name.strip() for name in known.split(",") if name.strip()]
    missing = [name for name in THIS_MACHINE.split(",") if name not in names]
    if "*" in names or not missing:
        return False
    environ["NO_PROXY"] = environ["no_proxy"] = ",".join([*names, *missing])
    return True


def answer_at(host: str, port: int, environ: MutableMapping[str, str] = os.environ) -> None:
    """Sets API_URL, the URL at which functions call this API. The address for browsers has the
    host of their requests, unless the user sets PUBLIC_URL, for example for a proxy in front of
    this server."""
    name = "localhost" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    environ["API_URL"] = f"http://{name}:{port}"
    environ.setdefault("PUBLIC_URL", "")


def point_to(service_endpoint: str, environ: MutableMapping[str, str] = os.environ) -> None:
    """Sets the endpoint URLs of KMS and SQS to ``service_endpoint``, where the local stand-ins for
    these services answer.
    """
    environ["AWS_ENDPOINT_URL_KMS"] = environ["AWS_ENDPOINT_URL_SQS"] = service_endpoint


def prepare(
    functions: Iterable[FunctionDefinition],
    endpoint: str,
    *,
    own_store: bool,
    environ: MutableMapping[str, str] = os.environ,
) -> None:
    """Sets the environment variables that the Lambda functions read, which run in this process.
    A variable that the user has set wins over the template's value. AWS credentials are an
    exception: if ``own_store`` (the table is in the local server's own store, not in a DynamoDB),
    placeholders replace real credentials. All functions share the variables: if two functions
    declare different values for a variable, the first value wins and a line is logged.
    """
    name, region_name = table_name(environ), region(environ)
    environ.update(
        {
            "TABLE_NAME": name,
            "AWS_REGION": region_name,
            "AWS_DEFAULT_REGION": region_name,
            "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        }
    )
    given = dict(environ)
    _set_credentials(environ, own_store=own_store)
    if not own_store:
        environ.setdefault("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", endpoint)
    for variable, value in _QUIET.items():
        environ.setdefault(variable, value)
    if not any(variable in given for variable in _WEBHOOK_CHOICES):
        for variable, value in _LAPTOP.items():
            environ.setdefault(variable, value)
    declared: dict[str, str] = {}
    for function in functions:
        for variable, value in function.environment.items():
            first = declared.setdefault(variable, value)
            if first != value and variable not in _QUIET:
                report(
                    f"{function.name}: {variable}={value!r} is ignored, "
                    f"another function says {first!r}"
                )
    for variable, value in declared.items():
        if variable not in given and variable not in _QUIET and not variable.startswith("AWS_"):
            environ[variable] = value


def _set_credentials(environ: MutableMapping[str, str], *, own_store: bool) -> None:
    """Sets placeholder AWS credentials. If the table is in the own store, they replace all
    credentials; if it is in an engine that the user runs, only missing ones are set.
    """
    if own_store:
        environ.update(_EXAMPLE_CREDENTIALS)
        for variable in _REAL_IDENTITY:
            environ.pop(variable, None)
    elif "AWS_PROFILE" not in environ:
        for variable, value in _EXAMPLE_CREDENTIALS.items():
            environ.setdefault(variable, value)
