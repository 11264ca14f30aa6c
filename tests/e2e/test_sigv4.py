"""Authentication=iam with MLflow's own client and the plugin that it signs requests by, against an
API and a bucket that check each signature."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.environment import _EXAMPLE_CREDENTIALS
from tests import ministack
from tests.doubles import s3_front
from tests.doubles.signatures import Caller, Service
from tests.e2e import warm_clients
from tests.e2e.clients import CURRENT, PARTS, SIGNING, SIGNING_OLD, python
from tests.e2e.iam_runner import ARN, ENVIRONMENT
from tests.engines import ROOT, free_port
from tests.servers import REMEMBERED, Server, environment, start, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("sigv4_script.py")
REGION = "us-east-1"
CALLER = Caller("AKIDCALLER", "the-secret-of-the-caller", "the-token-of-the-caller")
FUNCTION = Caller(*_EXAMPLE_CREDENTIALS.values())
"""Whom the functions sign as."""
SIZES = (0, 1, 10_000, 3_000_000, 30_000_000)
ALL_IN_PARTS = {"MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE": "0"}
PROXY = "/api/2.0/mlflow-artifacts/artifacts/"


class Deployment(NamedTuple):
    server: Server
    bucket: s3_front.Front


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("iam")
    service = Service("s3", REGION, FUNCTION)
    with ministack.running(folder) as url, s3_front.serving(url, service) as bucket:
        ministack.make_bucket(url, "files")
        port = free_port()
        command = [
            *(sys.executable, "-m", "tests.e2e.iam_runner", "--port", str(port), "--ephemeral"),
            *("--parameter", "Authentication=iam", "--parameter", f"IamAdministrators={ARN}"),
        ]
        server = start(
            command,
            port,
            folder,
            ROOT,
            printed="\nready\n",
            ARTIFACT_BUCKET="files",
            AWS_ENDPOINT_URL_S3=bucket.url,
            AWS_REGION=REGION,
            AWS_DEFAULT_REGION=REGION,
            **dict(zip(ENVIRONMENT, map(str, (*CALLER, REGION)), strict=True)),
        )
        with stopped(server):
            yield Deployment(server, bucket)


def run(
    deployment: Deployment,
    client: str,
    folder: Path,
    arguments: tuple[int | str, ...],
    more: dict[str, str],
    script: Path = SCRIPT,
) -> Any:
    command = [str(script), deployment.server.url, *map(str, arguments)]
    variables = environment(
        MLFLOW_TRACKING_URI=deployment.server.url,
        MLFLOW_TRACKING_AWS_SIGV4="true",
        MLFLOW_HTTP_REQUEST_MAX_RETRIES="1",
        AWS_ACCESS_KEY_ID=CALLER.access_key,
        AWS_SECRET_ACCESS_KEY=CALLER.secret_key,
        AWS_SESSION_TOKEN=str(CALLER.token),
        AWS_DEFAULT_REGION=REGION,
        **REMEMBERED,
        **more,
    )
    if client != CURRENT:
        return warm_clients.run(str(python(client)), "mlflow", command, folder, variables)
    return subprocess.run(
        [sys.executable, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env=variables,
    )


def call(
    deployment: Deployment,
    method: str,
    path: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    signer: Any = SigV4Auth,
    redirected: bool = False,
) -> Any:
    """Signed by botocore, as other clients do."""
    request = AWSRequest(method, deployment.server.url + path, headers=headers or {}, data=body)
    signer(Credentials(*CALLER), "execute-api", REGION).add_auth(request)
    return requests.request(
        method,
        str(request.url),
        data=body,
        headers=dict(request.headers),
        timeout=30,
        allow_redirects=redirected,
    )


def test_the_client_works_with_files(deployment: Deployment, tmp_path: Path) -> None:
    done = run(deployment, SIGNING, tmp_path, SIZES, ALL_IN_PARTS)
    assert done.returncode == 0, done.stdout + done.stderr + "\n".join(deployment.bucket.refused)
    assert f"ok {PARTS}" in done.stdout
    assert deployment.bucket.refused == []
    # All of them went by URLs, however small.
    assert any(
        request.startswith("PUT") and request.endswith("/single/0.bin")
        for request in deployment.bucket.presigned
    )
    assert any(
        request.startswith("GET") and request.endswith("/single/10000.bin")
        for request in deployment.bucket.presigned
    )


def test_a_client_since_3_18_needs_no_setting(deployment: Deployment, tmp_path: Path) -> None:
    """The newest client, which is the tests' own, with the plugin from the environment of an older
    one."""
    [plugin] = python(SIGNING).parents[1].glob("lib/python3*/site-packages/requests_auth_aws_sigv4")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / plugin.name).symlink_to(plugin)
    more = {"PYTHONPATH": str(tmp_path / "plugins")}
    done = run(deployment, CURRENT, tmp_path, SIZES, more)
    assert done.returncode == 0, done.stdout + done.stderr + "\n".join(deployment.bucket.refused)
    assert f"ok {CURRENT}" in done.stdout
    assert deployment.bucket.refused == []


def test_without_the_setting_the_client_itself_fails(
    deployment: Deployment, tmp_path: Path
) -> None:
    """What docs/clients.md says; when the plugin learns to sign files, it says otherwise."""
    done = run(deployment, SIGNING, tmp_path, (10,), {})
    assert done.returncode != 0
    assert "has no attribute 'encode'" in done.stderr


def test_an_older_client(deployment: Deployment, tmp_path: Path) -> None:
    """It knows no URLs for downloads: files come in the answer, as large as that may be."""
    more = {"MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD": "true", **ALL_IN_PARTS}
    done = run(deployment, SIGNING_OLD, tmp_path, (0, 1, 10_000, 4_000_000), more)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok 2.22.1" in done.stdout
    done = run(deployment, SIGNING_OLD, tmp_path, (6_000_000,), more)
    assert done.returncode != 0
    assert "mlflow-artifacts/presigned/PATH" in done.stderr
    assert deployment.bucket.refused == []


NAMES = """
import mlflow, sys, tempfile
client = mlflow.MlflowClient()
made = client.create_run(client.create_experiment(tempfile.mkdtemp())).info
client.log_text(made.run_id, "text", sys.argv[2])
mlflow.artifacts.download_artifacts(
    artifact_uri=made.artifact_uri + "/" + sys.argv[2], dst_path=tempfile.mkdtemp()
)
"""


@pytest.mark.parametrize(("name", "sent"), [("a b.txt", "a+b.txt"), ("é.txt", "/%C3%A9.txt")])
def test_names_that_the_plugin_signs_wrongly(
    deployment: Deployment, tmp_path: Path, name: str, sent: str
) -> None:
    """Also of docs/clients.md: a space in a query is to be signed as "%20", and what is
    percent-encoded in a path as encoded twice."""
    script = tmp_path / "names.py"
    script.write_text(NAMES)
    done = run(deployment, SIGNING, tmp_path, (name,), ALL_IN_PARTS, script)
    assert "403" in done.stderr
    assert sent in done.stderr


def test_nothing_is_redirected(deployment: Deployment) -> None:
    for size, status in ((4_000_000, 200), (6_000_000, 400)):
        path = f"{PROXY}large/{size}.bin"
        made = call(
            deployment,
            "POST",
            "/api/2.0/mlflow-artifacts/mpu/create/large",
            f'{{"path": "{size}.bin", "num_parts": 1}}'.encode(),
            headers={"Content-Type": "application/json"},
        ).json()
        [part] = made["credentials"]
        etag = requests.put(part["url"], data=bytes(size), timeout=30).headers["ETag"]
        fields = {"path": f"{size}.bin", "upload_id": made["upload_id"]}
        completed = call(
            deployment,
            "POST",
            "/api/2.0/mlflow-artifacts/mpu/complete/large",
            json.dumps({**fields, "parts": [{"part_number": 1, "etag": etag}]}).encode(),
            headers={"Content-Type": "application/json"},
        )
        assert completed.status_code == 200, completed.text
        for headers, length in (({}, size), ({"Range": "bytes=0-9"}, 10)):
            answer = call(deployment, "GET", path, headers=headers)
            in_full = 206 if headers else 200
            assert answer.status_code == (in_full if status == 200 else status), answer.text
            assert len(answer.content) == length or "presigned" in answer.json()["message"]
        # A signature in the URL does not go with a redirect.
        answer = call(deployment, "GET", path, signer=SigV4QueryAuth, redirected=True)
        assert answer.status_code == 200
        assert len(answer.content) == size
    assert deployment.bucket.refused == []


def test_an_upload_that_did_not_arrive_as_it_was_sent(deployment: Deployment) -> None:
    headers = {"Content-Type": "text/plain"}
    answer = call(deployment, "PUT", f"{PROXY}a.txt", b"\xff\xfe", headers=headers)
    assert answer.status_code == 400
    assert "MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE=0" in answer.json()["message"]
    assert (
        call(deployment, "PUT", f"{PROXY}a.txt", "é".encode(), headers=headers).status_code == 200
    )
    assert call(deployment, "GET", f"{PROXY}a.txt").content == "é".encode()


def test_the_fronts_refuse(deployment: Deployment) -> None:
    """What S3 and API Gateway refuse, or all of this would prove nothing."""
    url = deployment.server.url + PROXY + "a.txt"
    assert requests.get(url, timeout=30).status_code == 403
    call(deployment, "PUT", f"{PROXY}b.txt", b"b", headers={"Content-Type": "a/b"})
    presigned = call(deployment, "GET", "/api/2.0/mlflow-artifacts/presigned/b.txt").json()["url"]
    assert requests.get(presigned, timeout=30).content == b"b"
    for headers in (
        {"x-amz-security-token": str(CALLER.token)},
        {"x-amz-date": "20260101T000000Z"},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=x"},
    ):
        assert requests.get(presigned, headers=headers, timeout=30).status_code == 403
    assert requests.get(presigned.replace("b.txt", "c.txt"), timeout=30).status_code == 403
    assert requests.put(presigned, data=b"x", timeout=30).status_code == 403
    deployment.bucket.refused.clear()
