"""The sample queries over runs that MLflow's client logs, against what Python computes of the same
values."""

from __future__ import annotations

import importlib
import json
import math
import statistics
import subprocess
import sys
import urllib.request
from typing import Any
from uuid import uuid4

import pytest

from tests.engines import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

QUERIES = ROOT / "examples/system_tables"
START = 1_700_000_000_000
END = START + 187 * 60_000 + 59_000
OTHERS = ("FINISHED",) * 19 + ("FAILED",) * 14 + ("KILLED",) * 6
"""So many that the experiment is among the twenty with the most runs, whatever else is there."""


def _asked(url: str, name: str, **parameters: str) -> list[list[Any]]:
    sql = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    request = urllib.request.Request(
        f"{url}/api/3.0/mlflow-serverless/sql",
        json.dumps({"sql": sql, "parameters": parameters, "fresh": True}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        rows: list[list[Any]] = json.load(response)["rows"]
        return rows


def test_sample_queries_over_what_the_client_logs(tracking_uri: str) -> None:
    mlflow = importlib.import_module("mlflow")  # after the fixture has set its environment
    entities = importlib.import_module("mlflow.entities")
    client = mlflow.MlflowClient(tracking_uri)
    name = f"sampled {uuid4().hex}"
    experiment = client.create_experiment(name)
    run = client.create_run(experiment, start_time=START, run_name="sample").info.run_id
    waves = {
        key: [math.sin(step * scale) * 9 for step in range(60)]
        for key, scale in (("loss", 0.37), ("acc/val", 1.7), ("lr", 0.011))
    }
    for step, value in enumerate(waves["loss"]):
        client.log_metric(run, "loss", value, timestamp=START + step, step=step)
    points = [
        entities.Metric(key, value, START + step, step)
        for key in ("acc/val", "lr")
        for step, value in enumerate(waves[key])
    ]
    client.log_batch(run, metrics=points)
    client.log_batch(run, metrics=points[:7])  # sent twice
    client.set_terminated(run, "FINISHED", END)
    for status in OTHERS:
        other = client.create_run(experiment, start_time=START).info.run_id
        client.set_terminated(other, status, END)

    here = {"experiment_id": experiment, "run_id": run}
    results = ["2023-11-14", "FINISHED", 187]
    assert _asked(tracking_uri, "run_information", **here) == [["sample", *results]]
    about = _asked(tracking_uri, "experiment_and_run_information", **here)
    assert about == [["sample", name, *results]]
    expected = []
    for key, values in waves.items():
        quarters = statistics.quantiles(values, n=4, method="inclusive")
        figures = (statistics.mean(values), max(values), min(values), *quarters)
        expected.append(
            [key, len(values), *(pytest.approx(figure, abs=0.0501) for figure in figures)]
        )
    rows = _asked(tracking_uri, "metric_statistics", run_id=run)
    assert sorted(rows) == sorted(expected, key=lambda row: str(row[0]))
    assert all(round(figure, 1) == figure for row in rows for figure in row[2:])
    reliable = {row[0]: row[1:] for row in _asked(tracking_uri, "low_reliability")}
    assert reliable[experiment] == [pytest.approx(20 / 40), 40]


def test_a_saved_query_from_the_command_line(tracking_uri: str) -> None:
    """A value of the command line is no SQL, whatever it spells."""
    mlflow = importlib.import_module("mlflow")
    client = mlflow.MlflowClient(tracking_uri)
    name = f"saved '{uuid4().hex}"
    experiment = client.create_experiment(name)
    saved = f"by-name-{uuid4().hex}"
    body = {
        "name": saved,
        "sql": "SELECT experiment_id FROM system.mlflow.experiments_latest WHERE name = :name",
        "parameters": [{"name": "name", "type": "text"}],
    }
    request = urllib.request.Request(
        f"{tracking_uri}/api/3.0/mlflow-serverless/queries",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        assert json.load(response)["query"]["revision"] == 1

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "local.admin", "sql", "--url", tracking_uri, *arguments)
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    answer = ran("--saved", saved, "-p", f"name={name}", "--fresh", "--format", "csv")
    assert (answer.returncode, answer.stdout) == (0, f"experiment_id\n{experiment}\n")
    hostile = ran("--saved", saved, "-p", "name=' OR 1=1 --", "--format", "csv")
    assert (hostile.returncode, hostile.stdout) == (0, "experiment_id\n")
    missing = ran("--saved", saved)
    assert missing.returncode == 1
    assert "'name' (text) has no value" in missing.stderr
    assert "no saved query 'other'" in ran("--saved", "other").stderr
    assert "give a query" in ran("SELECT 1", "--saved", saved).stderr
    assert "give a query" in ran().stderr
