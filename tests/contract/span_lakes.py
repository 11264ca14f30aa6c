"""Lakes with the same traces and spans, in files that differ in whether they have columns of
attributes."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from mlcore import errors
from mlcore.system_tables import storage
from mltables.span_attribute_columns import KEYS, ROOT_KEYS
from mltables.trace_metadata_columns import KEYS as METADATA_KEYS
from mltables.trace_metadata_columns import PUBLISHED
from sql import execution
from tests.contract import span_files

PARENTS = ("NULL", "NULL", "''", "'00000000000000aa'")
WORKSPACES = ("default", "team-a", "team-b")
READABLE = ["default", "team-b"]
VALUES = ("", " ", "a", "A", "é", "7", "12", "-1.5", "null", "TOOL", "LLM", '{"total_tokens": 3}')
EVENTS = ("exception", "retried", "retried", "", 'a "b" \\ é\n')
NEARLY = ("", "mlflow.spantype", "mlflow.spanType ", "mlflow", "MLFLOW.SPANTYPE", "own", "user_id")
"""Keys that have no column."""


def _attributes(rng: random.Random, secret: str) -> str:
    keys = rng.sample((*KEYS, *NEARLY), rng.randrange(8))
    entries = {key: rng.choice(VALUES) + secret for key in keys}
    contents = random.Random(str(entries))
    entries |= {
        key: contents.choice(VALUES) + secret for key in ROOT_KEYS if contents.random() < 0.7
    }
    return _map({**entries, **({KEYS[0]: rng.choice(VALUES) + secret} if keys else {})})


def _events(rng: random.Random) -> str:
    names = [rng.choice(EVENTS) for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))]
    texts = "MAP {}::MAP(VARCHAR, VARCHAR)"
    events = [
        f"{{'time_unix_nano': {number}, 'name': '{name}', 'attributes': {texts}}}"
        for number, name in enumerate(names)
    ]
    return f"[{', '.join(events)}]"


def _metadata(rng: random.Random, secret: str) -> dict[str, str]:
    keys = rng.sample(METADATA_KEYS[1:], rng.randrange(len(METADATA_KEYS)))
    keys += rng.sample(tuple(PUBLISHED), rng.randrange(len(PUBLISHED) + 1))
    own = {key: rng.choice(VALUES) + secret for key in (*keys, "note")}
    return {**own, METADATA_KEYS[0]: rng.choice("ab") + secret} if rng.random() < 0.8 else own


def _map(entries: dict[str, str]) -> str:
    pairs = ", ".join(f"'{key}': '{value}'" for key, value in entries.items())
    return f"MAP {{{pairs}}}::MAP(VARCHAR, VARCHAR)"


def _assessments(rng: random.Random, of_trace: str, secret: str) -> Iterator[str]:
    """Some assessments of a trace, as SQL.

    Args:
        of_trace: the columns that they share with their trace.
    """
    for _ in range(rng.randrange(4)):
        moment = f"TIMESTAMPTZ '2026-02-01 00:00:0{rng.randrange(4)}+00'"
        value = rng.choice((f"'\"yes{secret}\"'", "'true'", "'3'", f"'[\"{secret}\"]'", "NULL"))
        code, reason = (
            rng.choice(("NULL", f"'{text}{secret}'")) for text in ("FAILED", "because ")
        )
        kind, source = rng.choice(("feedback", "expectation")), rng.choice(("HUMAN", "CODE"))
        yield (
            f"{of_trace}, 'a-{rng.randrange(16**12):x}', '{rng.choice(('fine', 'score'))}', "
            f"'{kind}', {value}, NULL, {code}, NULL, '{source}', '{rng.choice('ab')}{secret}', "
            f"{moment}, {moment}, NULL, NULL, {reason}, NULL, {rng.random() < 0.5}, MAP {{}}"
        )


def _rows(rng: random.Random, workspace: str, day: int) -> tuple[list[str], ...]:
    """Traces, their spans and their assessments, as SQL."""
    traces, spans, assessments = [], [], []
    others = random.Random(f"{workspace} {day}")
    secret = "" if workspace in READABLE else "SECRET"
    for _ in range(rng.randrange(1, 4)):
        trace, experiment = f"tr-{rng.randrange(16**12):x}", rng.choice(("1", "2"))
        moment = f"TIMESTAMPTZ '2026-01-0{day} 10:00:00+00'"
        own = _metadata(random.Random(trace), secret)
        further = random.Random(f"{trace} spans")
        user, session, run = (
            f"'{own[key]}'" if key in own else "NULL"
            for key in ("mlflow.trace.user", "mlflow.trace.session", "mlflow.sourceRun")
        )
        traces.append(
            f"'0', {moment}, '{workspace}', '{experiment}', '{trace}', NULL, 'gateway/x', {moment},"
            f" {rng.randrange(99)}, 'OK', {user}, {session}, {run}, NULL, NULL, 1, 2, 3, NULL,"
            f" NULL, NULL, NULL, NULL, [], {_map(own)}, MAP {{}}"
        )
        spans += [
            f"'0', '{workspace}', '{experiment}', '{trace}', {moment}, "
            f"'{rng.randrange(16**12):x}', {further.choice(PARENTS)}, 'name {rng.randrange(3)}', "
            f"'SPAN_KIND_INTERNAL', "
            f"{moment}, {rng.randrange(9)}, {rng.choice(('NULL', '9'))}, "
            f"{_attributes(rng, secret)}, {_events(further)}, [], "
            "{'message': '', 'code': 'STATUS_CODE_OK'}"
            for _ in range(rng.randrange(5))
        ]
        of_trace = f"'0', '{workspace}', '{experiment}', '{trace}', {moment}"
        assessments += _assessments(others, of_trace, secret)
    return traces, spans, assessments


def _write(files: dict[tuple[str, int], list[str]], rng: random.Random, columns: str) -> None:
    """Writes each day of rows into some files.

    Args:
        columns: which files of spans have columns: ``all``, ``none`` or ``some``.
    """
    from mltables.duckdb_connection import connect  # noqa: PLC0415
    from mltables.lake import Lake  # noqa: PLC0415
    from mltables.snapshot import Snapshot  # noqa: PLC0415
    from mltables.table_commit import TableCommit  # noqa: PLC0415
    from mltables.table_definitions import OF_TRACES, open_or_create  # noqa: PLC0415

    with (
        Lake() as lake,
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        for table in OF_TRACES:
            snapshot = Snapshot(lake, table, open_or_create(lake, table))
            change = TableCommit(connection, lake, snapshot, Path(folder))
            for (name, day), rows in files.items():
                if name != table.name:
                    continue
                shuffled = rng.sample(rows, len(rows))
                half = len(rows) // 2
                for part in (shuffled[:half], shuffled[half:]):
                    values = "), (".join(part)
                    is_plain = {"all": False, "none": True, "some": rng.random() < 0.5}[columns]
                    with span_files.without_columns() if is_plain else nullcontext():
                        if part:
                            names = f"rows({table.names})"
                            typed = ", ".join(
                                f"{n}::{kind} AS {n}" for n, kind, *_ in table.columns
                            )
                            made = f"SELECT {typed} FROM (VALUES ({values})) {names}"
                            change.add(f"{made} ORDER BY trace_id", f"2026-01-0{day}")
            change.commit()


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Folders with the same rows in files that all, none or some have columns; in ``alone`` the
    rows of workspaces that a reader may read only. All files of a worker share them."""
    folders = _folders(tmp_path_factory.getbasetemp() / "span-columns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYSTEM_TABLES_SCRATCH", str(folders["alone"].with_name("scratch")))
        use(folders["alone"], patch)
        yield folders
    storage.store.cache_clear()


@functools.cache
def _folders(base: Path) -> dict[str, Path]:
    base.mkdir()
    files: dict[tuple[str, int], list[str]] = {}
    readable: dict[tuple[str, int], list[str]] = {}
    rng = random.Random(4)
    for workspace in WORKSPACES:
        for day in (1, 2, 3, 4):
            names = ("traces", "spans", "assessments")
            for name, rows in zip(names, _rows(rng, workspace, day), strict=True):
                files.setdefault((name, day), []).extend(rows)
                if workspace in READABLE:
                    readable.setdefault((name, day), []).extend(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYSTEM_TABLES_SCRATCH", str(base / "scratch"))
        for name in ("all", "none", "some", "alone"):
            patch.setenv(storage.FOLDER, str(base / name))
            storage.store.cache_clear()
            _write(readable if name == "alone" else files, rng, "some" if name == "alone" else name)
            marked = span_files.assert_columns_are_the_map()
            assert (any(marked), all(marked)) == {
                "all": (True, True),
                "none": (False, False),
            }.get(name, (True, False))
    return {name: base / name for name in ("all", "none", "some", "alone")}


def use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system tables of the product are those in the folder."""
    monkeypatch.setenv(storage.FOLDER, str(folder))
    storage.store.cache_clear()


def asked(sql: str, workspaces: list[str] | None = None) -> Any:
    """The answer to a caller who may read these workspaces, or all."""
    return execution.run_query({"sql": sql, "parameters": {}, "workspaces": workspaces})


def error_of(sql: str, workspaces: list[str] | None = None) -> str:
    with pytest.raises(errors.InvalidParameterValue) as refused:
        asked(sql, workspaces)
    return str(refused.value)
