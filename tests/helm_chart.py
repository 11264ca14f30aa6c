"""Checks the Helm chart with Helm's own engine and linter: ``make scan``.

    .tools/wrappers/bin/python tests/helm_chart.py

Exits 1 at the first wrong thing.
"""

from __future__ import annotations

import http.server
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import yaml
from helm_python.chart import Chart, lint  # type: ignore[import-not-found]
from helm_python.errors import HelmError  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "distribution/helm"
PASSWORD = 'quote " and {{ braces }}'
LEAST = {"admin": {"password": PASSWORD}}
MOST = {
    "admin": {"username": "ann", "existingSecret": "team-admin"},
    "image": {"repository": "registry.example/mlflow", "tag": "2"},
    "imagePullSecrets": ["pull"],
    "workspaces": False,
    "parameters": {"RunRetentionDays": "30\n- --ephemeral"},
    "environment": {"HTTPS_PROXY": "http://proxy:3128"},
    "volume": {"size": "1Ti", "storageClass": "fast", "accessMode": "ReadWriteOncePod"},
    "ingress": {
        "host": "mlflow.example.com",
        "className": "nginx",
        "tlsSecret": "certificate",
        "annotations": {"a/b": "true"},
    },
    "allowedHosts": ["mlflow.internal"],
    "allowedNamespaces": ["team-a", "ingress-nginx"],
}
REFUSED: tuple[dict[str, Any], ...] = (
    {},
    {"admin": {"password": "short"}},
    {**LEAST, "replicas": 2},
    {**LEAST, "image": {"repository": ""}},
    {**LEAST, "volume": {"accessMode": "ReadWriteMany"}},
    {**LEAST, "volume": {"size": "20Gi}, extra: {"}},
    {**LEAST, "parameters": {"Authentication=none --parameter X": "1"}},
    {**LEAST, "environment": {"MLFLOW_AUTH_ADMIN_PASSWORD": "password in plain text"}},
    {**LEAST, "allowedHosts": ["a,*"]},
    {**LEAST, "allowedNamespaces": ["Team A"]},
    {**LEAST, "ingress": {"host": "*"}},
)


class FullDisk(http.server.BaseHTTPRequestHandler):
    """Answers 503 to /health, as the server does while its disk is full."""

    def do_GET(self) -> None:
        assert self.path == "/health", self.path
        self.send_error(503)

    def log_message(self, *parts: object) -> None:
        pass


Objects = dict[str, dict[str, Any]]


def rendered(values: dict[str, Any]) -> Objects:
    """Returns the objects of release ``mlflow`` in namespace ``ml`` by kind, after strict lint.

    Raises:
        AssertionError: the linter reports a warning or an error.
        HelmError: the values do not fit the schema, or a template fails.
    """
    chart = Chart.load(str(CHART))
    chart.validate_schema(values)
    report = lint(str(CHART), values, strict=True, namespace="ml")
    serious = [message for message in report["messages"] if message["severity"] > 1]
    assert not report["errors"], report["errors"]
    assert not serious, serious
    texts = chart.render(values, name="mlflow", namespace="ml").values()
    objects = [item for text in texts for item in yaml.safe_load_all(text) if item]
    by_kind = {item["kind"]: item for item in objects}
    assert len(by_kind) == len(objects), sorted(item["kind"] for item in objects)
    return by_kind


def check_least() -> None:
    """The defaults with a password: one replica on a volume, without rights."""
    objects = rendered(LEAST)
    assert set(objects) == {"StatefulSet", "Secret", "Service"}, set(objects)
    assert objects["Secret"]["stringData"] == {"password": PASSWORD}
    spec = objects["StatefulSet"]["spec"]
    assert spec["replicas"] == 1
    pod = spec["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    security = pod["securityContext"]
    image_user = f"USER {security['runAsUser']}:{security['runAsGroup']}\n"
    assert image_user in (ROOT / "Containerfile").read_text(), image_user
    assert security["fsGroup"] == security["runAsGroup"]
    [server] = pod["containers"]
    assert server["image"] == f"mlflow-serverless:{version()}", server["image"]
    assert server["args"] == ["--host=0.0.0.0", "--auth", "--workspaces"], server["args"]
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    environment = {entry["name"]: entry for entry in server["env"]}
    secret = environment["MLFLOW_AUTH_ADMIN_PASSWORD"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": objects["Secret"]["metadata"]["name"], "key": "password"}
    assert PASSWORD not in yaml.safe_dump(objects["StatefulSet"])
    hosts = environment["MLFLOW_SERVER_ALLOWED_HOSTS"]["value"].split(",")
    assert {"localhost:*", "mlflow", "mlflow.ml", "mlflow.ml.svc.cluster.local"} <= set(hosts)
    assert "*" not in hosts
    mounts = {mount["name"]: mount["mountPath"] for mount in server["volumeMounts"]}
    assert mounts == {"data": "/data", "tmp": "/tmp"}, mounts
    assert server["startupProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    check_liveness(server["livenessProbe"]["exec"]["command"])
    [claim] = spec["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "data"
    labels = spec["template"]["metadata"]["labels"]
    for selector in (spec["selector"]["matchLabels"], objects["Service"]["spec"]["selector"]):
        assert selector.items() <= labels.items(), selector
    ports = [port["name"] for port in server["ports"]]
    assert [port["targetPort"] for port in objects["Service"]["spec"]["ports"]] == ports


def check_liveness(command: list[str]) -> None:
    """The probe passes if the server answers, with an error too, and fails if nothing listens."""
    program, *arguments = command
    assert program == "python", command

    def outcome(port: int) -> int:
        moved = [argument.replace("5000", str(port)) for argument in arguments]
        done = subprocess.run([sys.executable, *moved], check=False, stderr=subprocess.DEVNULL)
        return done.returncode

    with http.server.HTTPServer(("127.0.0.1", 0), FullDisk) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert outcome(server.server_port) == 0
    assert outcome(server.server_port) == 1


def check_most() -> None:
    """Each value is in the place where Kubernetes reads it."""
    objects = rendered(MOST)
    kinds = {"StatefulSet", "Service", "Ingress", "NetworkPolicy"}
    assert set(objects) == kinds, set(objects)
    spec = objects["StatefulSet"]["spec"]
    pod = spec["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    [server] = pod["containers"]
    assert server["image"] == "registry.example/mlflow:2"
    parameter = "--parameter=RunRetentionDays=30\n- --ephemeral"
    assert server["args"] == ["--host=0.0.0.0", "--auth", parameter], server["args"]
    environment = {entry["name"]: entry for entry in server["env"]}
    secret = environment["MLFLOW_AUTH_ADMIN_PASSWORD"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": "team-admin", "key": "password"}
    assert environment["HTTPS_PROXY"]["value"] == "http://proxy:3128"
    hosts = environment["MLFLOW_SERVER_ALLOWED_HOSTS"]["value"].split(",")
    assert {"mlflow.example.com", "mlflow.internal"} <= set(hosts)
    assert spec["volumeClaimTemplates"][0]["spec"] == {
        "accessModes": ["ReadWriteOncePod"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Ti"}},
    }
    ingress = objects["Ingress"]
    assert ingress["metadata"]["annotations"] == {"a/b": "true"}
    assert ingress["spec"]["tls"] == [
        {"hosts": ["mlflow.example.com"], "secretName": "certificate"}
    ]
    [rule] = objects["NetworkPolicy"]["spec"]["ingress"]
    [peer] = rule["from"]
    [expression] = peer["namespaceSelector"]["matchExpressions"]
    assert expression["values"] == ["team-a", "ingress-nginx"]


def check_refusals() -> None:
    """Wrong values are refused before anything is installed."""
    for values in REFUSED:
        try:
            Chart.load(str(CHART)).validate_schema(values)
        except HelmError:
            continue
        raise AssertionError(f"accepted: {values}")


def version() -> str:
    """Returns the project's version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["version"])


if __name__ == "__main__":
    metadata = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert metadata["version"] == metadata["appVersion"] == version(), metadata
    check_least()
    check_most()
    check_refusals()
