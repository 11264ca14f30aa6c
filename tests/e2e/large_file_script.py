"""Logs one file with whichever MLflow client runs it, takes it back and compares the digests. Holds
no more of the file in memory than the client does.

python large_file_script.py TRACKING_URI BYTES
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow import MlflowClient

BLOCK_BYTES = 1 << 20


def written(path: Path, size: int) -> str:
    """Fills a file with blocks that differ; returns its digest."""
    noise, digest = random.Random(size).randbytes(BLOCK_BYTES), hashlib.sha256()
    with path.open("wb") as file:
        for start in range(0, size, BLOCK_BYTES):
            block = (start.to_bytes(8, "big") + noise)[: min(BLOCK_BYTES, size - start)]
            file.write(block)
            digest.update(block)
    return digest.hexdigest()


def main(uri: str, size: int, folder: Path) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient()
    run = client.create_run("0").info.run_id
    source = folder / "large.bin"
    digest = written(source, size)
    client.log_artifact(run, str(source), "files")
    source.unlink()
    [listed] = client.list_artifacts(run, "files")
    assert (listed.path, listed.file_size) == ("files/large.bin", size)
    (folder / "back").mkdir()
    back = Path(client.download_artifacts(run, "files/large.bin", str(folder / "back")))
    with back.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest
    print("ok", mlflow.__version__)  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    with tempfile.TemporaryDirectory() as here:
        main(sys.argv[1], int(sys.argv[2]), Path(here))
