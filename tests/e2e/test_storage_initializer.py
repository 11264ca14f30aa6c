"""The storage initializer for KServe, as a pod runs it: by its calls to a server with logins, and
to a bucket that must learn nothing of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from tests.engines import ROOT
from tests.servers import ADMIN, Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = ROOT / "examples" / "kserve" / "storage_initializer.py"
KUBEFLOW = "/api/model_registry/v1"
FILES = {"MLmodel": b"flavors: {}\n", "data/weights.bin": bytes(range(256)) * 40, "data/empty": b""}


def initialize(uri: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if not name.startswith("MLFLOW_")}
    return subprocess.run(
        [sys.executable, str(SCRIPT), uri, str(folder)],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Registry(NamedTuple):
    server: Server
    logged_model: str

    def login(self, who: tuple[str, str] = ADMIN) -> dict[str, str]:
        return {
            "MLFLOW_TRACKING_URI": self.server.url,
            "MLFLOW_TRACKING_USERNAME": who[0],
            "MLFLOW_TRACKING_PASSWORD": who[1],
        }


READER, STRANGER = ("reader", "a-long-password"), ("stranger", "another-password")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    product = start_product(folder, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])
    with stopped(product) as server:
        yield Registry(server, _filled(server))


def _filled(server: Server) -> str:
    """A logged model, registered in MLflow and by Kubeflow's API, that one of two users may read;
    answers its id."""

    def ask(method: str, path: str, **sent: Any) -> Any:
        answer = requests.request(method, server.url + path, auth=ADMIN, timeout=30, **sent)
        assert answer.status_code < 300, (path, answer.text)
        return answer.json() if answer.text else {}

    def post(path: str, **fields: Any) -> Any:
        return ask("POST", path, json=fields)

    api = "/api/2.0/mlflow"
    experiment = post(f"{api}/experiments/create", name="e")["experiment_id"]
    made = post(f"{api}/logged-models", experiment_id=experiment, name="net")["model"]["info"]
    artifact_path = made["artifact_uri"].removeprefix("mlflow-artifacts:/")
    for name, data in FILES.items():
        ask("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{artifact_path}/{name}", data=data)
    model_id = str(made["model_id"])
    post(f"{api}/registered-models/create", name="churn")
    source = {"source": f"models:/{model_id}", "model_id": model_id}
    post(f"{api}/model-versions/create", name="churn", **source)
    alias = {"alias": "champion", "version": "1"}
    post(f"{api}/registered-models/alias", name="churn", **alias)
    model = ask("GET", f"{KUBEFLOW}/registered_model?name=churn")["id"]
    for version, uri in (("v 2/x", f"models:/{model_id}"), ("elsewhere", "s3://elsewhere/1/x")):
        new = post(f"{KUBEFLOW}/model_versions", name=version, registeredModelId=model)
        artifact = {"artifactType": "model-artifact", "name": "a", "uri": uri}
        post(f"{KUBEFLOW}/model_versions/{new['id']}/artifacts", **artifact)
    for username, password in (READER, STRANGER):
        post(f"{api}/users/create", username=username, password=password)
    permission = {"username": STRANGER[0], "permission": "NO_PERMISSIONS"}
    post(f"{api}/experiments/permissions/create", experiment_id=experiment, **permission)
    post(f"{api}/registered-models/permissions/create", name="churn", **permission)
    return model_id


def test_it_fetches_what_a_uri_names(registry: Registry, tmp_path: Path) -> None:
    host = registry.server.url.removeprefix("http://")
    for number, uri in enumerate(
        (
            "model-registry://churn/1",
            "model-registry://churn/v%202/x",
            f"model-registry://{host}/churn/1",
            "models:/churn/1",
            "models:/churn@champion",
            f"models:/{registry.logged_model}",
        )
    ):
        folder = tmp_path / str(number)
        done = initialize(uri, folder, **registry.login(READER))
        assert done.returncode == 0, (uri, done.stderr)
        assert files_in(folder) == FILES, uri
    # Once more, into the folder that has them.
    again = initialize("models:/churn/1", tmp_path / "0", **registry.login(READER))
    assert again.returncode == 0
    assert files_in(tmp_path / "0") == FILES


def test_it_fetches_nothing_that_may_not_be_read(registry: Registry, tmp_path: Path) -> None:
    """What is missing and what is hidden end alike: without a file, and with a reason."""
    hidden = (
        "model-registry://churn/1",
        "models:/churn/1",
        "models:/churn@champion",
        f"models:/{registry.logged_model}",
    )
    missing = (
        "model-registry://none",
        "model-registry://churn/none",
        "models:/none/1",
        "models:/churn/9",
        "models:/churn@none",
        "models:/m-none",
        "models:/",
        "model-registry://",
        "hf://org/model",
        "model-registry://churn/elsewhere",
    )
    nobody = {"MLFLOW_TRACKING_URI": registry.server.url}
    wrong = registry.login((READER[0], "wrong"))
    for uris, login in (
        (hidden, registry.login(STRANGER)),
        (hidden, nobody),
        (hidden[:1], wrong),
        (missing, registry.login(READER)),
    ):
        for uri in uris:
            done = initialize(uri, tmp_path / "none", **login)
            assert done.returncode == 1, (uri, done.stdout)
            assert uri in done.stderr
            assert "Traceback" not in done.stderr
            assert files_in(tmp_path) == {}


class Recorded(BaseHTTPRequestHandler):
    """A registry whose files are in a bucket, or the bucket: keeps what each was asked with."""

    seen: list[tuple[str, dict[str, str]]]
    bucket: str

    def do_GET(self) -> None:
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.seen.append((self.path, headers))
        files = "/api/2.0/mlflow-artifacts/artifacts"
        if self.path.startswith("/ours/"):
            self._answer(200, b"weights")
        elif self.path.startswith(f"{files}/"):
            self.send_response(307)
            self.send_header("location", f"{self.bucket}/ours/key?X-Amz-Signature=1")
            self.send_header("content-length", "0")
            self.end_headers()
        elif self.path.startswith(files):
            self._answer(200, b'{"files": [{"path": "net/weights", "is_dir": false}]}')
        else:
            uri = b"s3://ours/1/net" if "ours" in self.path else b"s3://another/1/net"
            self._answer(200, b'{"artifact_uri": "%s"}' % uri)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


Recording = tuple[str, list[tuple[str, dict[str, str]]]]
"""The registry's URL, and what both servers were asked: path and headers."""


@pytest.fixture
def recorded() -> Iterator[Recording]:
    seen: list[tuple[str, dict[str, str]]] = []
    handler = type("Handler", (Recorded,), {"seen": seen, "bucket": ""})
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for _ in range(2)]
    urls = [f"http://127.0.0.1:{server.server_address[1]}" for server in servers]
    handler.bucket = urls[1]  # type: ignore[attr-defined]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield urls[0], seen
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_bucket_gets_no_login(recorded: Recording, tmp_path: Path) -> None:
    url, seen = recorded
    token = tmp_path / "token"
    token.write_text("a-token\n", encoding="utf-8")
    login = {"MLFLOW_TRACKING_TOKEN_FILE": str(token), "MLFLOW_WORKSPACE": "team-a"}
    done = initialize(
        "models:/ours/1", tmp_path / "model", MODEL_REGISTRY_BASE_URL=f"{url}/", **login
    )
    assert done.returncode == 0, done.stderr
    assert files_in(tmp_path / "model") == {"weights": b"weights"}
    to_bucket = [headers for path, headers in seen if path.startswith("/ours/")]
    to_server = [headers for path, headers in seen if not path.startswith("/ours/")]
    assert len(to_bucket) == 1
    assert not {"authorization", "x-mlflow-workspace"} & to_bucket[0].keys()
    assert {headers["authorization"] for headers in to_server} == {"Bearer a-token"}
    assert {headers["x-mlflow-workspace"] for headers in to_server} == {"team-a"}


def test_a_uri_takes_the_login_to_no_other_server_or_bucket(
    recorded: Recording, tmp_path: Path
) -> None:
    url, seen = recorded
    login = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_TRACKING_TOKEN": "t"}
    host = url.removeprefix("http://")
    done = initialize(f"model-registry://{host}/churn/1", tmp_path / "model", **login)
    assert done.returncode == 1
    assert "another server" in done.stderr
    assert seen == []
    login["MLFLOW_TRACKING_URI"] = url
    done = initialize("models:/theirs/1", tmp_path / "model", **login)
    assert done.returncode == 1
    assert "'another' is not the one" in done.stderr
    assert files_in(tmp_path / "model") == {}
