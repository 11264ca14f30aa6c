"""Logs files with whichever MLflow client runs it, takes them back and compares sums.

python files_script.py TRACKING_URI BYTES_OF_THE_LARGEST NUMBER_OF_SMALL_FILES
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import mlflow
from mlflow import MlflowClient


def sums(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def fails(call: Callable[[], object]) -> bool:
    """Each version has an exception of its own for what is missing."""
    try:
        call()
    except Exception:
        return True
    return False


def main(uri: str, largest: int, small: int, folder: Path) -> None:
    mlflow.set_tracking_uri(uri)
    source = folder / "source"
    sizes = {"empty.bin": 0, "one.bin": 1, "a b é.txt": 100, "five.bin": 5_000_000}
    sizes["largest.bin"] = largest
    (source / "many" / "deep").mkdir(parents=True)
    for name, size in sizes.items():
        (source / name).write_bytes(random.Random(name).randbytes(size))
    for number in range(small):
        (source / "many" / "deep" / f"{number}.txt").write_text(str(number))
    client = MlflowClient()
    experiment = client.create_experiment(f"files {mlflow.__version__} {random.random()}")
    made = client.create_run(experiment).info
    run, root = made.run_id, made.artifact_uri
    for name in sizes:
        client.log_artifact(run, str(source / name), "single")
    client.log_artifacts(run, str(source), "tree")
    client.log_text(run, "text", "notes/text.txt")
    client.log_dict(run, {"a": 1}, "notes/dict.json")

    def listed(path: str = "") -> dict[str, int | None]:
        artifacts = mlflow.artifacts.list_artifacts(artifact_uri=f"{root}/{path}".rstrip("/"))
        return {
            Path(artifact.path).name: None if artifact.is_dir else artifact.file_size or 0
            for artifact in artifacts
        }

    def downloaded(path: str) -> Path:
        uri = f"{root}/{path}"
        return Path(
            mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=tempfile.mkdtemp())
        )

    assert listed() == {"single": None, "tree": None, "notes": None}, listed()
    assert listed("single") == sizes, listed("single")
    assert len(listed("tree/many/deep")) == small
    assert listed("notes/text.txt") == listed("none") == {}
    assert sums(downloaded("tree")) == sums(source)
    for name in sizes:
        assert downloaded(f"single/{name}").read_bytes() == (source / name).read_bytes(), name
    assert downloaded("notes/text.txt").read_text() == "text"
    client.log_text(run, "other", "notes/text.txt")
    assert downloaded("notes/text.txt").read_text() == "other"
    assert fails(lambda: downloaded("none"))
    print("ok", mlflow.__version__)  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    with tempfile.TemporaryDirectory() as here:
        tempfile.tempdir = here
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(here))
