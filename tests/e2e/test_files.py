"""Files of any size go to the product and come back, with old clients and new, from a folder and
from a bucket; the product holds none of them in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ministack
from tests.e2e.clients import CURRENT, FILES_SCRIPT, IN_PARTS, python
from tests.servers import REMEMBERED, Server, environment, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
MOST_GROWTH_KIB = 30_000


def run(server: Server, version: str, folder: Path, largest: int, small: int, **more: str) -> None:
    interpreter = sys.executable if version == CURRENT else str(python(version))
    done = subprocess.run(
        [interpreter, str(FILES_SCRIPT), server.url, str(largest), str(small)],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=folder,
        env=environment(MLFLOW_HTTP_REQUEST_MAX_RETRIES="1", **REMEMBERED, **more),
    )
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
@pytest.mark.parametrize(("version", "small"), [(CURRENT, 500), ("2.22.1", 100)])
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


@pytest.mark.parametrize("version", [CURRENT, "2.22.1"])
def test_a_bucket(product_on_s3: Server, version: str, tmp_path: Path) -> None:
    run(product_on_s3, version, tmp_path, 25_000_000, 20, **IN_PARTS)
    log = product_on_s3.log.read_text()
    assert "mpu/complete" in log
    assert " 307 " in log
