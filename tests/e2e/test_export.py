"""What the product holds goes into a database of MLflow's own server whole, however often and
however interrupted, and MLflow's client reads the same from both."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import urllib3

from tests.e2e.import_administrator import admin, clean, command, killed_at
from tests.e2e.store_reading import ALL, fill, plain
from tests.engines import ROOT
from tests.servers import Server, start_product, start_stock, stopped

pytest.importorskip("mlflow")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mlflow

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RUNS = int(os.environ.get("EXPORT_RUNS", "12"))
TRACES = int(os.environ.get("EXPORT_TRACES", "12"))
STAGES = ("run ", "trace tr-")
"""What the journal names when the export has come so far."""


class Exported(NamedTuple):
    product: Server
    folder: Path
    stock: Server
    """MLflow's own server on what was exported."""


def target_of(folder: Path, data: Path) -> tuple[str, ...]:
    """The arguments of an export of a data folder into a database in ``folder/stock``."""
    target = folder / "stock"
    target.mkdir()
    return (
        f"--to={target / 'mlflow.db'}",
        f"--artifacts={target / 'artifacts'}",
        f"--data={data}",
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    folder = tmp_path_factory.mktemp("export")
    arguments = target_of(folder, folder / "data")
    with stopped(start_product(folder, "--data", str(folder / "data"))) as product:
        fill(product.url, runs=RUNS, models=2, traces=TRACES)
        output = admin("export", *arguments, f"--journal={folder / 'journal.jsonl'}")
        assert "0 differences, 0 failures" in output
        with stopped(start_stock(folder / "stock")) as stock:
            yield Exported(product, folder, stock)


def test_a_killed_export_goes_on_and_a_second_one_writes_nothing(
    exported: Exported, tmp_path: Path
) -> None:
    journal = tmp_path / "journal.jsonl"
    arguments = target_of(tmp_path, exported.folder / "data")
    kills = [
        killed_at(stage, journal, "export", *arguments, f"--journal={journal}") for stage in STAGES
    ]
    assert any(kills)
    assert "0 differences, 0 failures" in admin("export", *arguments, f"--journal={journal}")
    # Without what the journal remembers everything is read again.
    repeated = admin("export", *arguments, f"--journal={tmp_path / 'another.jsonl'}")
    assert "0 differences, 0 failures" in repeated
    assert sum(map(int, re.findall(r"\((\d+) written\)", repeated))) == 0
    before = content(exported.folder / "stock/mlflow.db")
    assert content(tmp_path / "stock/mlflow.db") == before


def content(database: Path) -> dict[str, int]:
    """The number of rows of each table."""
    with closing(sqlite3.connect(database)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
        return {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for (name,) in tables
        }


def both(exported: Exported) -> tuple[Any, Any]:
    return mlflow.MlflowClient(exported.product.url), mlflow.MlflowClient(exported.stock.url)


def test_experiments_and_runs_with_every_point(exported: Exported) -> None:
    seen = []
    for client in both(exported):
        experiments = client.search_experiments(view_type=ALL)
        ids = [experiment.experiment_id for experiment in experiments]
        runs = client.search_runs(ids, run_view_type=ALL, max_results=5000)
        histories = {
            (run.info.run_id, key): plain(client.get_metric_history(run.info.run_id, key))
            for run in runs
            for key in run.data.metrics
        }
        assert len(runs) == RUNS + 1
        assert len(histories) > RUNS
        seen.append((plain(experiments), plain(runs), histories))
    assert seen[0] == seen[1]


def test_models_and_prompts(exported: Exported) -> None:
    seen = []
    for client in both(exported):
        logged = client.search_logged_models(["1", "2"])
        prompts = [client.get_prompt_version("greet", number) for number in (1, 2)]
        seen.append(
            (
                plain(list(logged)),
                plain(list(client.search_registered_models())),
                plain(list(client.search_model_versions())),
                plain([client.get_model_version_by_alias("model 0's", "champion")]),
                [
                    (prompt.template, prompt.commit_message, plain(prompt.tags))
                    for prompt in prompts
                ],
                client.get_prompt_version_by_alias("greet", "prod").version,
            )
        )
        assert len(logged) == 3
    assert seen[0] == seen[1]


def test_traces_with_spans_and_assessments(exported: Exported) -> None:
    seen = []
    for client in both(exported):
        traces = client.search_traces(locations=["1"], max_results=500)
        assert len(traces) == TRACES
        assert sum(len(trace.info.assessments) for trace in traces) > 3
        assert all(trace.data.spans for trace in traces)
        seen.append({trace.info.trace_id: plain(trace) for trace in traces})
    assert seen[0] == seen[1]


def test_evaluation_datasets(exported: Exported) -> None:
    seen = []
    for server in (exported.product, exported.stock):
        api = f"{server.url}/api/3.0/mlflow/datasets"
        search = {"experiment_ids": ["1"]}
        response = urllib3.request("POST", f"{api}/search", json=search, timeout=60).json()
        (dataset,) = response["datasets"]
        dataset["tags"] = json.loads(dataset["tags"])
        contents = urllib3.request(
            "GET", f"{api}/{dataset['dataset_id']}/records", timeout=60
        ).json()
        records = json.loads(contents["records"])
        assert len(records) == 2
        shown = sorted(json.dumps(record, sort_keys=True) for record in records)
        seen.append((plain(dataset), shown))
    assert seen[0] == seen[1]


def test_files_and_what_is_logged_next(exported: Exported, tmp_path: Path) -> None:
    product, stock = both(exported)
    (run,) = product.search_runs(["1"], "attributes.run_name = 'run 10'")
    for client in (product, stock):
        path = client.download_artifacts(run.info.run_id, "texts", str(tmp_path))
        assert (Path(path) / "a b ü.txt").read_text() == "words " * 10
    made = stock.create_run(stock.create_experiment("made later"))
    stock.log_metric(made.info.run_id, "m", 1)
    stock.create_model_version("model 0's", "s3://b/x", made.info.run_id)


def test_what_was_exported_can_be_imported_without_a_server(
    exported: Exported, tmp_path: Path
) -> None:
    """By the database and the folder of files alone."""
    target = exported.folder / "stock"
    arguments = (
        *(f"--from=sqlite:///{target / 'mlflow.db'}", f"--artifacts={target / 'artifacts'}"),
        *(f"--data={tmp_path / 'data'}", "--experiment=first", "--with=runs,traces,artifacts"),
    )
    assert "0 differences, 0 failures" in admin("import", *arguments)
    file = max(
        (tmp_path / "data/artifacts").rglob("a b ü.txt"), key=lambda path: path.stat().st_size
    )
    assert file.read_text() == "words " * 10
    # And goes out again from a data folder that nobody serves.
    out = (f"--to={tmp_path / 'again.db'}", f"--artifacts={tmp_path / 'files'}")
    output = admin("export", *out, f"--data={tmp_path / 'data'}", "--experiment=first")
    assert "0 differences, 0 failures" in output
    with closing(sqlite3.connect(tmp_path / "again.db")) as connection:
        (points,) = connection.execute("SELECT count(*) FROM metrics").fetchone()
    assert points > RUNS


def refused(*arguments: str) -> str:
    """What an export says that does not take place."""
    answer = subprocess.run(
        command("export", *arguments),
        cwd=ROOT,
        env=clean(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1, answer
    assert "Traceback" not in answer.stderr
    return answer.stderr


def test_foreign_data_stays(exported: Exported, tmp_path: Path) -> None:
    """An experiment of the same name that no export made is not touched."""
    target = tmp_path / "mlflow.db"
    with (
        closing(sqlite3.connect(exported.folder / "stock/mlflow.db")) as source,
        closing(sqlite3.connect(target)) as connection,
    ):
        source.backup(connection)
        with connection:
            connection.execute("UPDATE experiments SET creation_time = 1 WHERE name = 'first'")
            connection.execute("DELETE FROM experiment_tags")
    output = refused(
        *(f"--to={target}", "--experiment=first", "--with=runs", f"--artifacts={tmp_path}"),
        *(f"--from={exported.product.url}", f"--journal={tmp_path / 'journal'}"),
    )
    assert "The target has another experiment 'first'" in output
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT count(*) FROM experiment_tags").fetchone() == (0,)


def test_who_has_no_login_exports_nothing(tmp_path: Path) -> None:
    target = tmp_path / "mlflow.db"
    with stopped(start_product(tmp_path, "--auth")) as product:
        output = refused(
            *(f"--to={target}", f"--artifacts={tmp_path / 'files'}", f"--from={product.url}")
        )
    assert "401" in output
    assert not target.exists()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("/absent/folder/x.db", "there is no folder /absent/folder"),
        ("http://127.0.0.1:1", "MLflow cannot use the database"),
        ("postgresql://u:secret@127.0.0.1:9/x", "MLflow cannot use the database"),
    ],
)
def test_a_target_that_cannot_be_used(exported: Exported, target: str, words: str) -> None:
    files = exported.folder / "unused"
    output = refused(f"--to={target}", f"--artifacts={files}", f"--from={exported.product.url}")
    assert words in output
    assert "secret" not in output
