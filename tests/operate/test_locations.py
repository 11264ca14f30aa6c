"""Which files of an old server lie in the folder that its proxy serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from operate.transfer.source_reader import proxy_path, target_location

FOLDER = Path("/data/in coming/mlruns")


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("mlflow-artifacts:/0/r/artifacts", "0/r/artifacts"),
        ("http://old/api/2.0/mlflow-artifacts/artifacts/0/r", "0/r"),
        ("file:///data/in%20coming/mlruns/0/r/artifacts", "0/r/artifacts"),
        ("/data/in coming/mlruns/0/r/artifacts", "0/r/artifacts"),
        ("./mlruns/0/r", "0/r"),
        ("file:///home/ann/mlruns/0/r/artifacts", "0/r/artifacts"),  # moved since
        # The folder itself, its parent's files, and what is elsewhere.
        ("file:///data/in%20coming/mlruns", None),
        ("file:///data/in%20coming/other/0", None),
        ("/home/ann/models/0", None),
        ("s3://bucket/mlruns/0/r", None),
        ("models:/mlruns/1", None),
        ("", None),
        # No way out of the folder.
        ("/data/in coming/mlruns/../../etc/passwd", None),
        ("file:///home/ann/mlruns/%2e%2e/x", None),
    ],
)
def test_a_location(location: str, path: str | None) -> None:
    assert proxy_path(location, FOLDER) == path
    expected = location if path is None else f"mlflow-artifacts:/{path}"
    assert target_location(location, FOLDER) == expected


@pytest.mark.parametrize("location", ["/data/mlruns/0/r", "file:///data/mlruns/0/r"])
def test_of_a_server_elsewhere_no_path_is_known(location: str) -> None:
    assert proxy_path(location) is None
