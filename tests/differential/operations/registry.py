# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""Registered models, their versions, stages, tags and aliases."""

from __future__ import annotations

from mlflow import MlflowClient

from .record import Record

MODEL_FILTERS = (
    *("name LIKE '{}%'", "name ILIKE '{}%'", "name = '{} 1'", "tags.a = '1' AND name LIKE '{}%'"),
    *("name != '{} 1' AND name LIKE '{}%'", "name > 'a'", "version = 1", "tags.a > '1'", "foo = 1"),
    *("name IN ('{} 1')", "name NOT IN ('{} 1') AND name LIKE '{}%'", "name", "name = 5", "''"),
    *("tags.`mlflow.prompt.is_prompt` = 'true' AND name LIKE '{}%'", "run_id = 'x'"),
)
MODEL_ORDERS = ("name", "name DESC", "last_updated_timestamp", "timestamp", "start time", "version")
VERSION_FILTERS = (
    *("name = '{} 1'", "name LIKE '{}%'", "name = '{} 1' AND version_number > 1"),
    *("version_number = 1 AND name = '{} 1'", "run_id = 'x'", "source_path = 's3://b/m'"),
    *("version = 1", "version = '1'", "tags.t = 'v' AND name LIKE '{}%'", "name = '{} 1' AND foo"),
    *("run_id IN ('x')", "run_id IN ()", "version_number = 'x'", "name = 5", "stage = 'None'"),
    *(
        "name = '{} 1' and tags.t LIKE 'v%'",
        "current_stage = 'Staging'",
        "source = 'x'",
        "type = 1",
    ),
)
VERSION_ORDERS = (
    *("version_number", "version_number DESC", "name", "creation_timestamp", "start time", "foo"),
    *("last_updated_timestamp DESC", "version", "timestamp"),
)
SOURCES = ("s3://b/m", "file:///etc/passwd", "relative", "", "s3://b/../m", "http://h/m?x", "x:y")


def models(record: Record, client: MlflowClient, name: str) -> None:
    do = record.do
    for number in range(4):
        tags = {"a": str(number)} if number else None
        do("create_registered_model", client.create_registered_model, f"{name} {number}", tags, "d")
    for bad in (f"{name} 1", "", " ", "a/b", "a:b", ".", "x" * 300, None):
        do(f"create_registered_model {str(bad)[:5]}", client.create_registered_model, bad)
    for model_name in (f"{name} 0", f"{name} 9", "", "a/b"):
        do("get_registered_model", client.get_registered_model, model_name)
    for key, value in (("k", "v"), ("k", "w"), ("é x", "☃"), ("", "v"), ("k" * 251, "v"), ("n", 5)):
        do(f"set tag {key[:5]}", client.set_registered_model_tag, f"{name} 0", key, value)
    for key in ("k", "k", "missing", ""):
        do(f"delete tag {key}", client.delete_registered_model_tag, f"{name} 0", key)
    do("set tag missing", client.set_registered_model_tag, f"{name} 9", "k", "v")
    for description in ("new", "", None):
        do("update", client.update_registered_model, f"{name} 0", description)
    do("update missing", client.update_registered_model, f"{name} 9", "x")
    do("rename", client.rename_registered_model, f"{name} 3", f"{name} r")
    do("rename taken", client.rename_registered_model, f"{name} r", f"{name} 1")
    do("rename gone", client.rename_registered_model, f"{name} 3", f"{name} x")
    do("rename bad", client.rename_registered_model, f"{name} r", "")
    do("get renamed", client.get_registered_model, f"{name} r")
    for text in MODEL_FILTERS:
        where = text.replace("{}", name)
        do(f"search models {text}", client.search_registered_models, where)
    for order in MODEL_ORDERS:
        mine = {"filter_string": f"name LIKE '{name}%'", "order_by": [order]}
        do(f"search models by {order}", client.search_registered_models, **mine)
    for most in (1, 2, 0, -1, 1001):
        mine = {"filter_string": f"name LIKE '{name}%'", "max_results": most}
        do(f"search models {most}", client.search_registered_models, **mine)
    do("search models token", client.search_registered_models, page_token="bad")
    do("delete", client.delete_registered_model, f"{name} r")
    do("delete again", client.delete_registered_model, f"{name} r")


def versions(record: Record, client: MlflowClient, name: str, run_id: str, model_id: str) -> None:
    do, model = record.do, f"{name} 1"
    for number in range(6):
        tags = {"t": f"v{number}"} if number % 2 else None
        more = {"run_id": run_id} if number == 2 else {"description": f"d{number}"}
        do(
            "create_model_version",
            client.create_model_version,
            model,
            "s3://b/m",
            tags=tags,
            **more,
        )
    for source in SOURCES:
        do(f"create_model_version {source}", client.create_model_version, model, source)
    do("create of a run", client.create_model_version, model, f"runs:/{run_id}/m", run_id)
    do("create of a model", client.create_model_version, model, f"models:/{model_id}")
    do("create of nothing", client.create_model_version, model, "models:/m-" + "0" * 32)
    do("create link", client.create_model_version, model, "s3://b/m", run_link="http://h/run")
    do("create nowhere", client.create_model_version, f"{name} 9", "s3://b/m")
    for number in ("1", "3", "99", "0", "-1", "x", ""):
        do(f"get_model_version {number}", client.get_model_version, model, number)
        do(f"download uri {number}", client.get_model_version_download_uri, model, number)
        do(f"stages {number}", client.get_model_version_stages, model, number)
    for description in ("new", "", None):
        do("update_model_version", client.update_model_version, model, "1", description)
    do("update missing", client.update_model_version, model, "99", "x")
    for key, value in (("k", "v"), ("k", "w"), ("", "v"), ("k" * 251, "v"), ("é", "☃"), ("n", 5)):
        do(f"set version tag {key[:4]}", client.set_model_version_tag, model, "1", key, value)
    for key in ("k", "k", "missing"):
        do(f"delete version tag {key}", client.delete_model_version_tag, model, "1", key)
    do("set tag of a stage", client.set_model_version_tag, model, key="a", value="b", stage="None")
    do("set tag of no stage", client.set_model_version_tag, model, key="a", value="b", stage="x")
    _move(record, client, name, model)
    _name(record, client, model)
    _find_versions(record, client, name, model)
    do("versions of a run", client.search_model_versions, f"run_id = '{run_id}'")
    do("copy", client.copy_model_version, f"models:/{model}/2", f"{name} copy")
    do("copy alias", client.copy_model_version, f"models:/{model}@champion", f"{name} copy")
    do("copy missing", client.copy_model_version, f"models:/{model}/99", f"{name} copy")
    do("copied", client.search_model_versions, f"name = '{name} copy'")
    _leave(record, client, name, model)


def _move(record: Record, client: MlflowClient, name: str, model: str) -> None:
    do = record.do
    moves = (
        *(
            ("4", "Archived"),
            ("2", "Staging"),
            ("5", "staging"),
            ("3", "Production"),
            ("1", "None"),
        ),
        *(("1", "Production"), ("6", "production"), ("6", "bad"), ("99", "Staging"), ("x", "None")),
    )
    for number, stage in moves:
        archive = number == "6"
        do(
            *(f"transition {number} {stage}", client.transition_model_version_stage),
            *(model, number, stage, archive),
        )
        do("get_latest_versions", client.get_latest_versions, model)
        do("get_registered_model", client.get_registered_model, model)
    do("archive none", client.transition_model_version_stage, model, "1", "None", True)
    for stages in (["None"], ["Staging", "Production"], ["staging"], [], ["bad"]):
        do(f"get_latest_versions {stages}", client.get_latest_versions, model, stages)
    do("get_latest_versions nothing", client.get_latest_versions, f"{name} 2")
    do("get_latest_versions missing", client.get_latest_versions, f"{name} 9")


def _name(record: Record, client: MlflowClient, model: str) -> None:
    do = record.do
    for alias, number in (
        *(("champion", "2"), ("champion", "3"), ("other", "3"), ("v1", "1"), ("latest", "1")),
        *(("", "1"), ("a b", "1"), ("x", "99"), ("x" * 256, "1"), ("1", "1"), ("é", "1")),
    ):
        do(f"alias {alias[:5]}", client.set_registered_model_alias, model, alias, number)
    for alias in ("champion", "other", "missing", "latest", "LATEST", ""):
        do(f"by alias {alias}", client.get_model_version_by_alias, model, alias)
    do("get with aliases", client.get_model_version, model, "3")
    do("model with aliases", client.get_registered_model, model)
    for alias in ("other", "other", "missing", "a b"):
        do(f"delete alias {alias}", client.delete_registered_model_alias, model, alias)


def _find_versions(record: Record, client: MlflowClient, name: str, model: str) -> None:
    do = record.do
    for text in VERSION_FILTERS:
        do(f"search versions {text}", client.search_model_versions, text.replace("{}", name))
    for order in VERSION_ORDERS:
        mine = {"filter_string": f"name = '{model}'", "order_by": [order]}
        do(f"search versions by {order}", client.search_model_versions, **mine)
    for most in (1, 3, 0, -1, 200_001):
        mine = {"filter_string": f"name = '{model}'", "max_results": most}
        do(f"search versions {most}", client.search_model_versions, **mine)


def _leave(record: Record, client: MlflowClient, name: str, model: str) -> None:
    do = record.do
    do("delete_model_version", client.delete_model_version, model, "3")
    do("delete_model_version again", client.delete_model_version, model, "3")
    do("get deleted", client.get_model_version, model, "3")
    do("latest after", client.get_latest_versions, model)
    do("model after", client.get_registered_model, model)
    do("next", client.create_model_version, model, "s3://b/next")
    do("rename", client.rename_registered_model, model, f"{name} moved")
    do("versions moved", client.search_model_versions, f"name = '{name} moved'")
    do("versions left", client.search_model_versions, f"name = '{model}'")
    do("search after", client.search_registered_models, f"name LIKE '{name}%'")
