"""Where files are in a bucket the UI fetches them there, as another origin, by the template's
rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from tests import ministack
from tests.arch import project
from tests.browser.conftest import visiting
from tests.differential.rest import Call, Side, post
from tests.engines import REGION
from tests.servers import start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
TEXT = "what was written into the bucket"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The addresses of the product and of its bucket."""
    folder = tmp_path_factory.mktemp("bucket")
    with ministack.running(folder) as bucket:
        ministack.make_bucket(bucket, "files")
        declared = project.resources("AWS::S3::Bucket")["ArtifactBucket"]["CorsConfiguration"]
        [rule] = declared["CorsRules"]
        service = boto3.client("s3", endpoint_url=bucket, region_name=REGION)
        rule = {
            {"ExposedHeaders": "ExposeHeaders", "MaxAge": "MaxAgeSeconds"}.get(name, name): value
            for name, value in rule.items()
        }
        service.put_bucket_cors(Bucket="files", CORSConfiguration={"CORSRules": [rule]})
        product = start_product(folder, ARTIFACT_BUCKET="files", AWS_ENDPOINT_URL_S3=bucket)
        with stopped(product) as server:
            yield server.url, bucket


def test_a_file_of_a_run(browser: Any, served: tuple[str, str]) -> None:
    url, bucket = served
    api = Side(url)
    made = api.send(post("runs/create", {"experiment_id": "0", "run_name": "files"})).body
    run = made["run"]["info"]["run_id"]
    path = f"/api/2.0/mlflow-artifacts/artifacts/0/{run}/artifacts/note.txt"
    content = "application/octet-stream"
    assert api.send(Call("PUT", path, raw=TEXT.encode(), content_type=content)).status == 200
    api.close()
    requests: list[str] = []
    with visiting(browser, url) as visitor:
        visitor.page.on(
            "request", lambda request: requests.append(f"{request.method} {request.url}")
        )
        visitor.open(f"/experiments/0/runs/{run}/artifacts/note.txt")
        visitor.looks("artifact-of-a-bucket", "note.txt", TEXT)
    assert any(
        request.startswith(f"GET {bucket}/files/0/{run}/artifacts/note.txt?")
        for request in requests
    )
    assert not any("/mlflow-artifacts/artifacts/" in request for request in requests)
