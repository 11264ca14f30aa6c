"""Files of any size go to the product and come back, with old clients and new, from a folder and
from a bucket; the product holds none of them in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ministack
from tests.e2e import warm_clients
from tests.e2e.clients import CURRENT, FILES_SCRIPT, IN_PARTS, LARGE_FILE_SCRIPT, ran, run_script
from tests.e2e.metering_proxy import metering
from tests.servers import Server, environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
MOST_GROWTH_KIB = 30_000
LARGE = int(os.environ.get("LARGE_FILE_BYTES", "12000000"))
"""Larger than what a function can take; the emulator of S3 holds it in memory."""
LARGE_OF_MANY = 12_000_000
MOST_BYTES_OF_CALLS = 100_000
PART_URL_BYTES = 1_000
PART_BYTES = 10 << 20
"""MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE of a client where nothing is set."""


def run(server: Server, version: str, folder: Path, largest: int, small: int, **more: str) -> None:
    done = ran(FILES_SCRIPT, version, folder, server.url, str(largest), str(small), **more)
    assert done.returncode == 0, done.stdout + done.stderr + server.log.read_text()[-2000:]
    assert f"ok {version}" in done.stdout


def highest_memory(server: Server) -> int:
    """In KiB."""
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        pytest.skip("needs Linux's /proc")
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1])


@pytest.fixture(scope="module")
def own_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One whose memory no other test uses."""
    with stopped(start_product(tmp_path_factory.mktemp("product"))) as server:
        yield server


# The older one sends small files one after the other.
@pytest.mark.parametrize(("version", "small"), [(CURRENT, 150), ("2.22.1", 100)])
def test_a_folder(own_product: Server, version: str, small: int, tmp_path: Path) -> None:
    run(own_product, version, tmp_path, 1, 1)
    before = highest_memory(own_product)
    run(own_product, version, tmp_path, 60_000_000, small)
    assert highest_memory(own_product) - before < MOST_GROWTH_KIB


def test_a_folder_in_parts(own_product: Server, tmp_path: Path) -> None:
    run(own_product, CURRENT, tmp_path, 25_000_000, 1, **IN_PARTS)
    assert "/artifact-storage/" in own_product.log.read_text()
    assert "mpu/complete" in own_product.log.read_text()


@pytest.fixture(scope="module")
def product_on_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("s3")
    with ministack.running(folder) as url:
        ministack.make_bucket(url, "files")
        product = start_product(folder, ARTIFACT_BUCKET="files", AWS_ENDPOINT_URL_S3=url)
        with stopped(product) as server:
            yield server


def test_a_bucket(product_on_s3: Server, tmp_path: Path) -> None:
    run(product_on_s3, "2.22.1", tmp_path, 25_000_000, 20, **IN_PARTS)
    log = product_on_s3.log.read_text()
    assert "mpu/complete" in log
    assert " 307 " in log


@pytest.mark.timeout(300 + LARGE // 5_000_000)
def test_a_bucket_where_nothing_is_set(product_on_s3: Server, tmp_path: Path) -> None:
    """No byte of a file passes through a function, whatever its size, in either direction."""
    with metering(product_on_s3.url) as meter:
        command = [str(LARGE_FILE_SCRIPT), meter.url, str(LARGE)]
        done = warm_clients.run(
            *(sys.executable, "mlflow", command, tmp_path, environment()),
            seconds=240 + LARGE // 5_000_000,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        completed = meter.paths("POST", "/api/2.0/mlflow-artifacts/mpu/complete/")
        # An S3 that takes long to join thousands of parts is asked again.
        assert {(429, path) for path in completed} >= {
            (passage.status, passage.path) for passage in meter.passages if passage.status != 200
        }
        assert meter.size < MOST_BYTES_OF_CALLS + PART_URL_BYTES * LARGE // PART_BYTES
        assert len(meter.paths("POST", "/api/2.0/mlflow-artifacts/mpu/create/")) == 1
        assert len(meter.paths("GET", "/api/2.0/mlflow-artifacts/presigned/")) == 1


def test_files_of_all_kinds_in_a_bucket_where_nothing_is_set(
    product_on_s3: Server, tmp_path: Path
) -> None:
    with metering(product_on_s3.url) as meter:
        run_script(FILES_SCRIPT, CURRENT, tmp_path, meter.url, str(LARGE_OF_MANY), "3")
        assert not meter.paths("PUT", "/api/2.0/mlflow-artifacts/")
        assert not meter.paths("GET", "/api/2.0/mlflow-artifacts/artifacts/")


@pytest.mark.parametrize("version", ["2.22.1", "3.17.2"])
def test_older_clients_go_on_to_send_small_files_through_a_function(
    product_on_s3: Server, version: str, tmp_path: Path
) -> None:
    with metering(product_on_s3.url) as meter:
        run_script(LARGE_FILE_SCRIPT, version, tmp_path, meter.url, "100000")
        assert len(meter.paths("PUT", "/api/2.0/mlflow-artifacts/artifacts/")) == 1
