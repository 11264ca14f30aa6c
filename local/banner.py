"""What the local server prints when it is ready: addresses, folder, login, and how to stop it."""

from __future__ import annotations

import http.client
import os
from collections.abc import Mapping
from typing import NamedTuple

from local import environment
from local.data_folder import DataFolder
from local.http.server import is_loopback
from local.version import VERSION
from mlcore.mlflow_version import MLFLOW_VERSION

WELL_KNOWN_ADMIN_WARNING = (
    "WARNING: the administrator {name!r} has the default password, which everybody knows. Set "
    "MLFLOW_AUTH_ADMIN_PASSWORD before the first start on a folder, or change it now:\n"
    "  {program} create-admin --name {name} --replace --data DIR"
)
OPEN_WARNING = (
    "WARNING: --host {host} is open to other machines, and nobody logs in: everybody who reaches "
    "this machine reads, changes and deletes all data. --auth asks for a login."
)


HEALTH_SECONDS = 30


class BannerValues(NamedTuple):
    """The values that are shown when the local server is ready, such as its address."""

    host: str
    """The address that the runner listens on."""
    port: int
    folder: DataFolder
    table: str
    """The endpoint of the store, or of the engine that the user runs."""
    own_store: bool
    indexer: bool
    authentication: str
    """The value of the template's parameter ``Authentication``."""
    proxied: bool
    """Whether programs of this shell would ask a proxy for an address of this machine."""


def reachable_name(host: str) -> str:
    """Returns the host name or address, in the form of a URL, by which programs of this machine
    reach a server that listens on ``host``.
    """
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{name}]" if ":" in name else name


def text(facts: BannerValues, environ: Mapping[str, str] = os.environ) -> str:
    """Returns the lines that the local server prints at its start, as one text. Programs that start
    the server parse the lines with the address, ``data``, ``table`` and ``ready``.
    """
    url = f"http://{reachable_name(facts.host)}:{facts.port}"
    kind = " (thrown away at the end)" if facts.folder.ephemeral else ""
    owner = "in this process" if facts.own_store else "from AWS_ENDPOINT_URL_DYNAMODB"
    lines = [
        f"mlflow-serverless  {url}",
        f"  version  {VERSION}, the API and web UI of MLflow {MLFLOW_VERSION}",
        f"  pages    {url}/ and {url}/dashboards; first commands: {url}/dashboards/start",
        f"  data     {facts.folder.path}{kind}",
        f"  table    {facts.table} ({owner})",
        f"  indexer  {'on' if facts.indexer else 'off'}",
        f"  client   export MLFLOW_TRACKING_URI={url}",
    ]
    if facts.authentication == "basic":
        name, _ = environment.administrator()
        lines.append(
            f"  login    {name}; export MLFLOW_TRACKING_USERNAME={name} MLFLOW_TRACKING_PASSWORD=…"
        )
    if facts.proxied:
        lines.append(f"  proxy    clients need export NO_PROXY={environment.THIS_MACHINE}")
    if not is_loopback(facts.host):
        lines.append("  hosts    localhost, private addresses and the name of this machine")
        if environ.get("MLFLOW_SERVER_ALLOWED_HOSTS") != environment.own_host_names(facts.host):
            lines[-1] = "  hosts    those that MLFLOW_SERVER_ALLOWED_HOSTS names"
    lines += [
        "  log      the lines below",
        "  stop     Ctrl-C",
        "ready",
    ]
    return "\n".join(lines)


def health_status(host: str, port: int) -> str:
    """Sends ``GET /health`` to the local server and returns the status code as text; if there is no
    answer, a text that says why.
    """
    connection = http.client.HTTPConnection(host, port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/health")
        return str(connection.getresponse().status)
    except OSError as error:
        return str(error)
    finally:
        connection.close()
