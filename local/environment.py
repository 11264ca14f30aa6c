"""The environment that the functions see, set before any of them is imported."""

from __future__ import annotations

import os
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from local.definitions import FunctionDefinition
from local.log import report

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
    # What functions prepare while they start in Lambda they prepare while they start here.
    "AWS_LAMBDA_RUNTIME_API": "local",
    # The engine here adds up all items of a partition to answer this.
    "COLLECTION_SIZES": "false",
}
_LAPTOP = {"WEBHOOK_ALLOW_LOOPBACK": "true"}
"""A receiver on this machine may be reached over plain http, unless the user decides otherwise."""

_WEBHOOK_CHOICES = ("MLFLOW_WEBHOOK_ALLOWED_SCHEMES", "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS")

_OWN_ENGINE_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
"""AWS's documented example key: no engine on this machine checks it, and no real one leaves it."""

_EVERYWHERE = ("0.0.0.0", "::")
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")
_NAMES_OF_THIS_MACHINE = (
    "localhost,localhost:*,127.0.0.1,127.0.0.1:*,0.0.0.0,0.0.0.0:*,[::1],[[]::1]:*"
)

_REAL_IDENTITY = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE")


def table_name(environ: MutableMapping[str, str] = os.environ) -> str:
    """The table's name on this machine."""
    return environ.get("TABLE_NAME") or DEFAULT_TABLE_NAME


def region(environ: MutableMapping[str, str] = os.environ) -> str:
    """The region that functions and engine are told."""
    return environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or DEFAULT_REGION


def foreign_engine(environ: MutableMapping[str, str] = os.environ) -> str | None:
    """The endpoint of an engine that somebody else runs, if the user named one."""
    return environ.get("AWS_ENDPOINT_URL_DYNAMODB") or None


def keep_files(folder: Path, environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Where artifacts are kept: in the folder, unless the user names another or a bucket."""
    if environ.get("ARTIFACT_BUCKET"):
        return None
    return Path(environ.setdefault("ARTIFACT_FOLDER", str(folder)))


def keep_tables(folder: Path, environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Where the system tables are kept: in the folder, unless the user names another or a
    bucket."""
    if environ.get("SYSTEM_TABLES_BUCKET"):
        return None
    return Path(environ.setdefault("SYSTEM_TABLES_FOLDER", str(folder)))


def administrator(environ: MutableMapping[str, str] = os.environ) -> tuple[str, str]:
    """Name and password that the first administrator gets."""
    return (
        environ.get("MLFLOW_AUTH_ADMIN_USERNAME") or "admin",
        environ.get("MLFLOW_AUTH_ADMIN_PASSWORD") or DEFAULT_PASSWORD,
    )


def answer_to_own_names(host: str, environ: MutableMapping[str, str] = os.environ) -> None:
    """Who listens on this machine alone is asked by its names; a page whose name was made to lead
    here is refused, as MLflow's server does, unless the user says which hosts there are."""
    if host in _THIS_MACHINE:
        environ.setdefault("MLFLOW_SERVER_ALLOWED_HOSTS", _NAMES_OF_THIS_MACHINE)


def answer_at(host: str, port: int, environ: MutableMapping[str, str] = os.environ) -> None:
    """Lets the functions find the API that they are part of."""
    name = "localhost" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    environ["API_URL"] = f"http://{name}:{port}"


def point_to(service_endpoint: str, environ: MutableMapping[str, str] = os.environ) -> None:
    """Lets the functions find the services that this process answers for, KMS and SQS."""
    environ["AWS_ENDPOINT_URL_KMS"] = environ["AWS_ENDPOINT_URL_SQS"] = service_endpoint


def prepare(
    functions: Iterable[FunctionDefinition],
    endpoint: str,
    *,
    own_engine: bool,
    environ: MutableMapping[str, str] = os.environ,
) -> None:
    """Sets what the functions need.

    What the user has set wins over the template, except credentials of our own engine.

    All functions share this process, so one variable has one value: where two functions disagree
    the first wins, and the log says so.
    """
    name, place = table_name(environ), region(environ)
    environ.update(
        {
            "TABLE_NAME": name,
            "AWS_REGION": place,
            "AWS_DEFAULT_REGION": place,
            "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        }
    )
    given = dict(environ)
    environ.setdefault("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", endpoint)
    if own_engine:
        environ["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] = endpoint
        environ.update(_OWN_ENGINE_CREDENTIALS)
        for variable in _REAL_IDENTITY:
            environ.pop(variable, None)
    elif "AWS_PROFILE" not in environ:
        for variable, value in _OWN_ENGINE_CREDENTIALS.items():
            environ.setdefault(variable, value)
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
