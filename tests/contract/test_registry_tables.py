"""What the system tables say of registered models and their versions, after random histories of
writes that are landed and published under every kind of accident."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from typing import Any

import polars
import pytest

from mlcore.repos.registry import registered_models
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.kubeflow_api import KubeflowApi, properties
from tests.contract.lake import Tables, tables
from tests.contract.publisher_kills import follow_with_accidents, kill
from tests.contract.registry_calls import new_model, new_version
from tests.contract.registry_world import RegistryWorld

__all__ = ["kill", "tables"]

OPERATIONS = int(os.environ.get("TABLES_OPERATIONS", "60"))
SEED = int(os.environ.get("TABLES_SEED", "1"))


def _map(listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: pair["value"] for pair in listed}


def _seen(tables: Tables, table: str, ids: tuple[str, ...], names: set[str]) -> dict[Any, Any]:
    """The rows of a table, each once, by id, in the columns that the model knows."""
    rows: dict[Any, Any] = {}
    for row in tables.rows(table):
        key = tuple(row[name] for name in ids)
        assert key not in rows, "each row once"
        row |= {name: _map(row[name]) for name in ("tags", "aliases") if name in row}
        rows[key] = {name: row[name] for name in names}
        assert row["create_month"] == row["create_time"].strftime("%Y-%m")
    return rows


def check(tables: Tables, world: RegistryWorld) -> None:
    models = {(key,): row for key, row in world.model_rows().items()}
    names = {name for row in models.values() for name in row}
    assert _seen(tables, "registered_models", ("registered_model_id",), names) == models
    versions = world.version_rows()
    names = {name for row in versions.values() for name in row}
    ids = ("registered_model_id", "version")
    assert _seen(tables, "model_versions", ids, names) == versions


@pytest.mark.parametrize("seed", range(SEED, SEED + min(2, EXAMPLES)))
def test_a_random_history_is_published_once(
    store: Store, tables: Tables, kill: list[int], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    upkeep = pytest.importorskip("mltables.table_maintenance")
    # So small that a step has several parts, and a month several full and several small files.
    monkeypatch.setattr("mltables.entity_staging.BATCH_ROWS", 2)
    monkeypatch.setattr("mltables.row_replacement.FULL_FILE_ROWS", 3)
    monkeypatch.setattr("mltables.row_replacement.SMALL_FILES", 2)
    world = RegistryWorld(store, seed)
    follow_with_accidents(tables.stream, random.Random(seed + 1), kill, world.step, OPERATIONS)
    check(tables, world)
    upkeep.maintain_tables()
    check(tables, world)
    assert list(pytest.importorskip("mltables.verification").verify()) == []


def test_backfill_brings_what_no_stream_tells(store: Store, tables: Tables) -> None:
    """Also to the tables of a deployment that had none of the registry, a second time nothing, and
    rows that are missing or wrong."""
    whole = pytest.importorskip("mltables.backfill")
    verification = pytest.importorskip("mltables.verification")
    world = RegistryWorld(store, SEED)
    for _ in range(60):
        world.step()
    assert {problem for problem, *_ in verification.verify()} == {"missing"}
    lines: list[str] = []
    whole.backfill(lines.append)
    assert any(line.startswith("registered_models: ") for line in lines)
    check(tables, world)
    assert list(verification.verify()) == []
    assert set(whole.backfill()[1:]) == {0}
    world.delete = world.delete_version = world.create
    for _ in range(20):
        world.step()
    tables.stream.fresh()  # lost
    whole.backfill()
    check(tables, world)
    for _ in range(20):
        world.step()
    tables.follow()
    check(tables, world)


def test_each_column_has_its_type_and_content(store: Store, tables: Tables) -> None:
    kubeflow = KubeflowApi()
    made = kubeflow.post(
        "registered_models",
        name="served",
        externalId="out there",
        customProperties=properties(accuracy=0.5, layers=3, checked=True, team="a b"),
    )
    version = kubeflow.post(
        f"registered_models/{made['id']}/versions",
        name="one",
        registeredModelId=made["id"],
        author="ann",
        customProperties=properties(size=7),
    )
    new_version(store.api, "served", run_id="run", tags=[{"key": "mlflow.x", "value": "y"}])
    body = {"name": "served", "alias": "champion", "version": "2"}
    store.api.post("registered-models/alias", **body)
    tables.follow()
    frame = tables.frame("registered_models")
    time = polars.Datetime("us", "UTC")
    kinds = dict(frame.schema)
    times = {"create_time", "last_update_time", "update_time"}
    assert {name for name, kind in kinds.items() if kind == time} == times
    assert kinds["kubeflow_id"] == polars.Int64
    assert kinds["is_prompt"] == polars.Boolean
    (row,) = frame.to_dicts()
    assert all(isinstance(row.pop(name), datetime) for name in times)
    stored = registered_models.get("default", "served")
    maps = {name: _map(row.pop(name)) for name in ("tags", "custom_properties", "latest_versions")}
    assert maps["tags"] == {"accuracy": "0.5", "checked": "true", "layers": "3", "team": "a b"}
    assert maps["custom_properties"] == {
        "accuracy": "0.5",
        "checked": "true",
        "layers": "3",
        "team": '"a b"',
    }
    assert maps["latest_versions"] == {"None": 2}
    assert row.pop("create_month") == datetime.now(UTC).strftime("%Y-%m")
    assert row == {
        "account_id": "000000000000",
        "workspace_id": "default",
        "registered_model_id": stored.incarnation,
        "name": "served",
        "is_prompt": False,
        "description": None,
        "aliases": [{"key": "champion", "value": 2}],
        "kubeflow_id": int(made["id"]),
        "external_id": "out there",
    }
    first, second = sorted(tables.rows("model_versions"), key=lambda row: int(row["version"]))
    assert (first["user_id"], first["kubeflow_id"]) == ("ann", int(version["id"]))
    assert _map(first["custom_properties"]) == {"size": "7"}
    assert (second["run_id"], second["source"], second["status"]) == ("run", "s3://b/m", "READY")
    assert (_map(second["tags"]), second["custom_properties"]) == ({"mlflow.x": "y"}, [])
    champion = tables.ask(
        "SELECT v.version FROM system.mlflow.model_versions v "
        "JOIN system.mlflow.registered_models m USING (registered_model_id) "
        "WHERE m.aliases['champion'] = v.version"
    )
    assert champion["rows"] == [[2]]


def test_tags_that_the_item_has_no_room_for_are_in_the_row(store: Store, tables: Tables) -> None:
    new_model(store.api, "large", versions=1)
    tags = {f"tag {number}": str(number % 10) * 5000 for number in range(80)}
    for key, value in tags.items():
        store.api.post("registered-models/set-tag", name="large", key=key, value=value)
        body = {"name": "large", "version": "1", "key": key, "value": value}
        store.api.post("model-versions/set-tag", **body)
    assert registered_models.get("default", "large").document.overflowed
    tables.follow()
    for table in ("registered_models", "model_versions"):
        (row,) = tables.rows(table)
        assert _map(row["tags"]) == tags
    store.api.post("registered-models/set-tag", name="large", key="tag 79", value="changed")
    tables.follow()
    (row,) = tables.rows("registered_models")
    assert _map(row["tags"]) == {**tags, "tag 79": "changed"}


def test_who_may_not_read_a_workspace_learns_nothing_of_its_models(
    store: Store, tables: Tables
) -> None:
    """Neither by counting and guessing nor by an error."""
    new_model(store.api, "secret", versions=1)
    tables.follow()
    model_id = registered_models.get("default", "secret").incarnation
    for table in ("registered_models", "model_versions"):
        assert tables.ask(f"SELECT count(*) FROM system.mlflow.{table}")["rows"] == [[1]]
    wheres = (
        "true",
        "name = 'secret'",
        f"registered_model_id = '{model_id}'",
        "CAST(name AS INT) = 1",
        "create_time > TIMESTAMP '2020-01-01'",
    )
    statements = [
        f"SELECT count(*) FROM system.mlflow.{table} WHERE {where}"
        for table in ("registered_models", "model_versions")
        for where in wheres
    ]
    for readable in ([], ["team"], ["Default"], ["default "], ["%"]):
        assert tables.counts(statements, readable) == [0] * len(statements)
