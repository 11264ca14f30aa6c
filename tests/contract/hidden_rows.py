"""A lake whose rows a caller may only read in part, and the same lake without the hidden rows."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mlcore.system_tables import storage

READABLE = ("team-a", "team-c")


WORKSPACES = ("default", "team-a", "team-b", "team-c", "team-d")


SECRET = "SECRET"


OWN = "of the reader["


CODES = ("STATUS_CODE_OK", "STATUS_CODE_ERROR")


TABLES = {
    "h": "run_metrics_history",
    "r": "runs_latest",
    "e": "experiments_latest",
    "t": "traces",
    "a": "assessments",
    "p": "spans",
    "l": "audit_log",
    "m": "registered_models",
    "v": "model_versions",
    "d": "evaluation_datasets",
    "c": "evaluation_dataset_records",
    "j": "jobs",
}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Folders with all tables: with rows of others, with different ones, and without. All files of
    a worker share them."""
    pytest.importorskip("mltables.permitted_rows")
    folders = _folders(tmp_path_factory.getbasetemp() / "hidden-rows")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYSTEM_TABLES_SCRATCH", str(folders["alone"].with_name("scratch")))
        patch.setenv(storage.FOLDER, str(folders["alone"]))
        yield folders


@functools.cache
def _folders(base: Path) -> dict[str, Path]:
    base.mkdir()
    readable = _all_rows(7, READABLE)
    hidden = [workspace for workspace in WORKSPACES if workspace not in READABLE]
    others: dict[str, dict[str, list[str]]] = {
        "others": _all_rows(8, hidden),
        "altered": _all_rows(9, hidden[1:], runs=40),
        "alone": {name: [] for name in TABLES.values()},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYSTEM_TABLES_SCRATCH", str(base / "scratch"))
        for seed, (name, rows) in enumerate(others.items()):
            patch.setenv(storage.FOLDER, str(base / name))
            _write({table: readable[table] + rows[table] for table in rows}, random.Random(seed))
    return {name: base / name for name in others}


def _all_rows(seed: int, workspaces: Sequence[str], runs: int = 12) -> dict[str, list[str]]:
    """Rows of each table as SQL, the texts of hidden ones different from those of any other."""
    rows = _rows(random.Random(seed), workspaces, runs)
    return rows | _entity_rows(random.Random(seed), workspaces, runs)


def _text(rng: random.Random, workspaces: Sequence[str]) -> str:
    if any(workspace in READABLE for workspace in workspaces):
        return rng.choice(("7", "0.5", "-3", "2024-01-05", OWN, "12", "x[", ""))
    return f"{SECRET}[{rng.randrange(10**9)}"


def _entity_rows(rng: random.Random, workspaces: Sequence[str], most: int) -> dict[str, list[str]]:
    """Rows of the tables of entities outside of experiments, made by the types of their columns."""
    from mltables.entity_tables import OF_ENTITIES  # noqa: PLC0415 -- not without the engines

    def value(column: str, kind: str, identity: str, time: str) -> str:
        if kind == "BIGINT":
            return str(rng.randrange(10**6))
        if column in identity.split(", "):
            return f"'{rng.randrange(16**12):012x}'"
        text = f"'{_text(rng, workspaces)}'"
        return {
            "TIMESTAMP WITH TIME ZONE": time,
            "BOOLEAN": rng.choice(("true", "false")),
            "DOUBLE": rng.choice(("0.0", "-0.0", "'nan'", "1e300", "3")) + "::DOUBLE",
            "MAP(VARCHAR, VARCHAR)": f"MAP {{'k': {text}}}",
            "MAP(VARCHAR, BIGINT)": f"MAP {{'k': {rng.randrange(9)}}}",
            "VARCHAR[]": f"[{text}]",
            "VARCHAR": text,
        }[kind]

    results: dict[str, list[str]] = {}
    for table in OF_ENTITIES:
        rows = results.setdefault(table.name, [])
        for workspace in workspaces:
            for _ in range(rng.randrange(1, most)):
                month = f"2024-0{rng.randrange(1, 4)}"
                time = f"TIMESTAMPTZ '{month}-01 10:00:{rng.randrange(60):02}+00'"
                values = [
                    f"'{workspace}'"
                    if column == "workspace_id"
                    else value(column, kind, table.identity, time)
                    for column, kind, *_ in table.columns
                ]
                rows.append(", ".join([*values, f"'{month}'"]))
    return results


def _rows(rng: random.Random, workspaces: Sequence[str], runs: int) -> dict[str, list[str]]:
    """Rows of the tables of runs and traces, and of the audit."""
    results: dict[str, list[str]] = {name: [] for name in TABLES.values()}

    def text() -> str:
        return _text(rng, workspaces)

    def moment() -> str:
        month, second = rng.randrange(1, 4), rng.randrange(60)
        return f"TIMESTAMPTZ '2024-0{month}-0{rng.randrange(1, 3)} 10:00:{second:02}+00'"

    def day(time: str, length: int) -> str:
        return repr(time.removeprefix("TIMESTAMPTZ '")[:length])

    def number() -> str:
        return rng.choice(("0.0", "-0.0", "'nan'", "1e300", f"{rng.uniform(-9, 9)}", "3"))

    def real() -> str:
        return f"{number()}::DOUBLE"

    for workspace in workspaces:
        for _ in range(rng.randrange(1, runs)):
            inserted = moment()
            results["audit_log"].append(
                f"'0', {moment()}, {inserted}, '{rng.randrange(16**12):012x}', '{workspace}', "
                f"{rng.choice(('NULL', repr(text())))}, '{text()}', 'password', NULL, "
                f"{rng.choice(('true', 'false'))}, '{text()}', '{text()}', 'POST', "
                f"{rng.choice((200, 403))}, 'done', '{text()}', {rng.randrange(10**6)}, "
                f"'{text()}', '{text()}', {rng.choice(('NULL', '12.5::DOUBLE'))}, "
                f"{rng.randrange(9)}::DOUBLE, 2.0::DOUBLE, 3, NULL, {day(inserted, 10)}"
            )
        for _ in range(3):
            experiment = f"{rng.randrange(10**6)}"
            results["experiments_latest"].append(
                f"'0', {moment()}, NULL, '{experiment}', '{workspace}', '{text()}', {moment()}"
            )
            for _ in range(rng.randrange(1, runs)):
                run, start = f"{rng.randrange(16**12):012x}", moment()
                metrics = ", ".join(
                    f"{{'metric_name': '{name}', 'latest_value': {number()}::DOUBLE, "
                    f"'min_value': {number()}::DOUBLE, 'max_value': {number()}::DOUBLE}}"
                    for name in ("loss", "acc")
                )
                results["runs_latest"].append(
                    f"'0', {moment()}, NULL, '{workspace}', '{run}', '{experiment}', '{text()}', "
                    f"{start}, {rng.choice(('NULL', moment()))}, '{text()}', "
                    f"'{rng.choice(('FINISHED', 'FAILED'))}', MAP {{'p': '{text()}'}}, "
                    f"MAP {{'k': '{text()}', 'mlflow.user': '{text()}'}}, [{metrics}], "
                    f"{day(start, 7)}"
                )
                results["run_metrics_history"] += [
                    f"'0', {inserted}, '{rng.randrange(16**12):x}', '{workspace}', '{experiment}', "
                    f"'{run}', '{rng.choice(('loss', text()))}', {moment()}, "
                    f"{rng.choice((0, 1, -2, 2**40))}, {number()}::DOUBLE, "
                    f"{day(inserted, 10)}"
                    for inserted in (moment() for _ in range(rng.randrange(6)))
                ]
            for _ in range(rng.randrange(1, runs)):
                trace, asked_at = f"{rng.randrange(16**12):012x}", moment()
                tokens = ", ".join(rng.choice(("NULL", "7", "123456789")) for _ in range(5))
                costs = ", ".join(rng.choice(("NULL", real())) for _ in range(3))
                call = (
                    f"'mlflow.gateway.endpointId': '{text()}', 'mlflow.auth.username': '{text()}'"
                )
                metadata = f"MAP {{'k': '{text()}'{rng.choice(('', f', {call}'))}}}"
                results["traces"].append(
                    f"'0', {moment()}, '{workspace}', '{experiment}', '{trace}', '{text()}', "
                    f"'{text()}', {asked_at}, {rng.choice(('NULL', '17'))}, "
                    f"'{rng.choice(('OK', 'ERROR'))}', '{text()}', '{text()}', NULL, '{text()}', "
                    f"'{text()}', {tokens}, {costs}, ['{text()}/1'], {metadata}, "
                    f"MAP {{'k': '{text()}'}}, {day(asked_at, 10)}"
                )
                results["assessments"] += [
                    f"'0', '{workspace}', '{experiment}', '{trace}', {asked_at}, "
                    f"'{rng.randrange(16**12):x}', '{text()}', 'feedback', '{text()}', "
                    f"{rng.choice(('NULL', real()))}, NULL, '{text()}', 'HUMAN', '{text()}', "
                    f"{moment()}, {moment()}, '{text()}', NULL, '{text()}', NULL, "
                    f"{rng.choice(('true', 'false'))}, MAP {{'k': '{text()}'}}, {day(asked_at, 10)}"
                    for _ in range(rng.randrange(3))
                ]
                model = f"'mlflow.llm.provider': '{text()}', 'mlflow.llm.model': '{text()}'"
                attributes = f"MAP {{'k': '{text()}', {model}}}"
                event = f"{{'time_unix_nano': 5, 'name': '{text()}', 'attributes': {attributes}}}"
                link = f"{{'trace_id': '{text()}', 'span_id': 'b', 'attributes': {attributes}}}"
                results["spans"] += [
                    f"'0', '{workspace}', '{experiment}', '{trace}', {asked_at}, "
                    f"'{rng.randrange(16**12):x}', NULL, '{text()}', 'SPAN_KIND_INTERNAL', "
                    f"{moment()}, {rng.randrange(10**15)}, {rng.choice(('NULL', '9'))}, "
                    f"{attributes}, [{event}], [{link}], "
                    f"{{'message': '{text()}', 'code': '{rng.choice(CODES)}'}}, {day(asked_at, 10)}"
                    for _ in range(rng.randrange(3))
                ]
    return results


def _write(rows: dict[str, list[str]], rng: random.Random) -> None:
    """In any order, in some files for each partition."""
    from deltalake import write_deltalake  # noqa: PLC0415 -- most tests do without the engines

    from mltables import duckdb_connection, table_definitions  # noqa: PLC0415
    from mltables.lake import Lake  # noqa: PLC0415

    with duckdb_connection.connect(None) as connection:
        for table in table_definitions.TABLES:
            listed = list(rows[table.name])
            rng.shuffle(listed)
            for part in (listed[0::3], listed[1::3], listed[2::3]):
                delta = table_definitions.open_or_create(Lake(), table)
                if part:
                    kinds = [(name, kind) for name, kind, *_ in table.columns]
                    kinds += [(table.partition, "VARCHAR")] if table.partition else []
                    cast = ", ".join(f"{name}::{kind} AS {name}" for name, kind in kinds)
                    values = ", ".join(f"({row})" for row in part)
                    names = ", ".join(name for name, _ in kinds)
                    write_deltalake(
                        delta,
                        connection.sql(f"SELECT {cast} FROM (VALUES {values}) AS t({names})"),
                        mode="append",
                        writer_properties=table_definitions.writer_properties(table),
                    )
