"""Works with files, as whoever signs requests for AWS does, and compares what comes back.

python sigv4_script.py TRACKING_URI SIZE…
"""

from __future__ import annotations

import hashlib
import random
import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow import MlflowClient


def main(uri: str, sizes: list[int], folder: Path) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient()
    experiment = client.create_experiment(f"signed-{random.random()}")
    made = client.create_run(experiment).info
    run, root = made.run_id, made.artifact_uri
    client.log_metric(run, "loss", 0.5)
    client.log_param(run, "a b", "é + % ?")
    source = folder / "source"
    source.mkdir()
    files = {f"{size}.bin": random.Random(size).randbytes(size) for size in sizes}
    # A file's name is in the body of an upload, so what is not signed well there is the rest.
    for name, content in files.items():
        (source / name).write_bytes(content)
        client.log_artifact(run, str(source / name), "single")
    client.log_artifacts(run, str(source), "tree")
    client.log_text(run, "text", "notes/text.txt")
    client.log_dict(run, {"a": 1}, "notes/dict.json")

    def downloaded(path: str) -> Path:
        return Path(
            mlflow.artifacts.download_artifacts(
                artifact_uri=f"{root}/{path}", dst_path=tempfile.mkdtemp()
            )
        )

    listed = mlflow.artifacts.list_artifacts(artifact_uri=f"{root}/single")
    assert {Path(file.path).name: file.file_size or 0 for file in listed} == {
        name: len(content) for name, content in files.items()
    }
    for name, content in files.items():
        received = downloaded(f"single/{name}").read_bytes()
        assert hashlib.sha256(received).digest() == hashlib.sha256(content).digest(), name
    tree = downloaded("tree")
    assert {path.name: path.read_bytes() for path in tree.iterdir()} == files
    assert downloaded("notes/text.txt").read_text() == "text"
    assert client.get_run(run).data.metrics == {"loss": 0.5}
    assert [
        match.info.run_id for match in client.search_runs([experiment], "metrics.loss < 1")
    ] == [run]
    print("ok", mlflow.__version__)  # noqa: T201


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as here:
        tempfile.tempdir = here
        main(sys.argv[1], [int(size) for size in sys.argv[2:]], Path(here))
