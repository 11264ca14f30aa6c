"""What is built is the same each time, and for the processors that it is said to be for."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from bench.built import LAMBDA_LIMIT, LAYER_LIMIT, UNZIPPED_LIMIT, together, zipped
from tests.engines import ROOT
from tests.rehearsal.digests import digests
from tests.rehearsal.layer_builds import build, python
from tests.servers import environment

__all__ = ["python"]

pytestmark = [pytest.mark.timeout(300)]

ELF, AT = b"\x7fELF", slice(18, 20)
MACHINES = {"arm64": 0xB7, "x86_64": 0x3E}
LAYERS = {
    "CatalogLayer": "layers/catalog",
    "CoreLayer": "layers/core",
    "TablesLayer": "layers/tables",
    "TokensLayer": "layers/tokens",
}
TABLES_LIMIT = 95_000_000
"""Bytes of the zipped layer of the system tables' engines."""
ROOM = 3 * 2**20
"""Bytes below the limit that a build leaves free, so that a new release of a library fits."""
WITH_LAYERS = """
import datetime, importlib, pkgutil, zoneinfo
import boto3, mltables, sqlglot
for module in pkgutil.walk_packages(mltables.__path__, "mltables."):
    importlib.import_module(module.name)
keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
for place in ("dynamodb eu-central-1", "sqs cn-north-1", "s3 eu-central-1"):
    service, region = place.split()
    print(boto3.client(service, region_name=region, **keys).meta.endpoint_url)
print(*sqlglot.transpile("SELECT a[1] FROM t", read="databricks", write="duckdb"))
from mltables.duckdb_connection import connect
print(*connect(None).execute("SELECT TIMESTAMPTZ '2026-01-01 02:00+02'").fetchone())
zone = zoneinfo.ZoneInfo("Australia/Lord_Howe")
print(datetime.datetime(2026, 1, 1, tzinfo=zone).utcoffset(), *zoneinfo.TZPATH)
"""


def machines(folder: Path) -> set[int]:
    """Of the compiled libraries."""
    heads = [path.read_bytes()[:20] for path in folder.rglob("*.so*") if path.is_file()]
    return {int.from_bytes(head[AT], "little") for head in heads if head.startswith(ELF)}


@pytest.mark.parametrize("layer", LAYERS)
def test_two_builds_of_a_layer_are_equal(layer: str, python: str, tmp_path: Path) -> None:
    make = partial(build, layer, LAYERS[layer], python)
    first, second = make(tmp_path / "1", "arm64"), make(tmp_path / "2", "arm64")
    assert digests(first) == digests(second)
    # The tables' engines are no part of what answers requests.
    assert zipped(first) < (TABLES_LIMIT if layer == "TablesLayer" else LAYER_LIMIT)
    assert any(path.suffix == ".pyc" for path in first.rglob("*"))
    assert machines(first) <= {MACHINES["arm64"]}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_built_for_the_other_processors(layer: str, python: str, tmp_path: Path) -> None:
    made = {name: build(layer, LAYERS[layer], python, tmp_path / name, name) for name in MACHINES}
    results = {name: machines(folder) for name, folder in made.items()}
    assert results in (
        {name: {machine} for name, machine in MACHINES.items()},
        {name: set() for name in MACHINES},
    )
    if layer == "TokensLayer":
        assert results["x86_64"], "its library is compiled"
    bytecode = [
        {path: digest for path, digest in digests(folder).items() if path.endswith(".pyc")}
        for folder in made.values()
    ]
    assert bytecode[0] == bytecode[1]


@pytest.mark.parametrize("architecture", MACHINES)
def test_the_engines_fit_beside_the_core_layer(
    architecture: str, python: str, tmp_path: Path
) -> None:
    """Lambda refuses a function that is larger with its layers than 250 MiB."""
    (tmp_path / "built").mkdir()
    for layer in ("CoreLayer", "TablesLayer"):
        made = build(layer, LAYERS[layer], python, tmp_path / layer, architecture)
        made.rename(tmp_path / "built" / layer)
    size = together(tmp_path / "built")
    assert 150 * 2**20 < size <= UNZIPPED_LIMIT - ROOM < LAMBDA_LIMIT


def test_what_the_layers_lose_is_not_missed(python: str, tmp_path: Path) -> None:
    """Addresses of services and dialects of SQL that nothing uses are left out, and time zones are
    added: Lambda's system need not have them."""
    architecture = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    layers = [
        build(layer, LAYERS[layer], python, tmp_path / layer, architecture) / "python"
        for layer in ("CoreLayer", "TablesLayer")
    ]
    done = subprocess.run(
        [python, "-c", WITH_LAYERS],
        # Time zones of this machine are none of Lambda's.
        env={
            **environment(),
            "PYTHONPATH": os.pathsep.join(map(str, layers)),
            "PYTHONTZPATH": "",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "https://dynamodb.eu-central-1.amazonaws.com",
        "https://sqs.cn-north-1.amazonaws.com.cn",
        "https://s3.eu-central-1.amazonaws.com",
        "SELECT a[2] FROM t",
        "2026-01-01 00:00:00+00:00",
        "11:00:00",
    ]


def test_two_builds_of_a_function_are_equal(python: str, tmp_path: Path) -> None:
    make = partial(build, "LoggedModelsFunction", "functions", python)
    first, second = make(tmp_path / "1", "arm64"), make(tmp_path / "2", "arm64")
    assert digests(first) == digests(second)
    assert {path.split("/")[0] for path in digests(first)} == {"logged_models"}


def test_the_revision_changes_with_any_function(python: str, tmp_path: Path) -> None:
    def revision(folder: Path) -> str:
        made = folder / "made"
        made.mkdir()
        subprocess.run(
            [
                *("make", "--silent", "-C", str(source), "build-RevisionLayer"),
                *(f"PYTHON={python}", f"ARTIFACTS_DIR={made}"),
            ],
            check=True,
            env=environment(),
        )
        [path] = made.iterdir()
        return path.read_text()

    source = tmp_path / "functions"
    shutil.copytree(ROOT / "functions", source, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("1", "2", "3"):
        (tmp_path / name).mkdir()
    first = revision(tmp_path / "1")
    assert first == revision(tmp_path / "2")
    changed = source / "file_remover" / "app.py"
    changed.write_text(changed.read_text() + "\n")
    assert first != revision(tmp_path / "3")
    assert all(f" {path.parent.name}/app.py" in first for path in source.glob("*/app.py"))
