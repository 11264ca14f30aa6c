"""Runs the examples about traces in examples/system_tables as their users do, and readers of long
ago over the files of the tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.e2e import clients
from tests.engines import ROOT
from tests.servers import ADMIN, environment

EXAMPLES = ROOT / "examples/system_tables"
NOTEBOOK = EXAMPLES / "traces.ipynb"
PANEL = EXAMPLES / "grafana_panel.json"
OF_TRACES = ("traces", "assessments", "spans")


def printed(example: str, interpreter: Path | str, tables: Path) -> dict[str, Any]:
    """What an example prints: by question, the rows of the answer."""
    run = subprocess.run(
        [str(interpreter), str(EXAMPLES / example), str(tables)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
    )
    answers: dict[str, Any] = {}
    for line in run.stdout.splitlines():
        answers |= json.loads(line)
    return answers


def by_duckdb(tables: Path) -> dict[str, Any]:
    return printed("traces_duckdb.py", clients.python(clients.DUCKDB), tables)


def by_polars(tables: Path) -> dict[str, Any]:
    return printed("traces_polars.py", sys.executable, tables)


def by_old_readers(tables: Path) -> Any:
    """Types and rows of the files, by reader and table."""
    files = {name: DeltaTable(str(tables / name)).file_uris() for name in OF_TRACES}
    script = ROOT / "tests/contract/parquet_script.py"
    run = subprocess.run(
        [str(clients.python(clients.PARQUET)), str(script)],
        input=json.dumps(files),
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
    )
    return json.loads(run.stdout)


def run_notebook(url: str, folder: Path) -> dict[str, Any]:
    """Runs the notebook's cells; returns the rows of its frames by variable, and for each figure
    how much is drawn on its axes."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    report = """
import json, sys
frames = {
    name: json.loads(globals()[name].to_json(orient="values"))
    for name in ("by_model", "errors", "quality")
}
drawn = [
    [len(axes.lines) + len(axes.patches) for axes in plt.figure(number).axes]
    for number in plt.get_fignums()
]
sys.stdout.write(json.dumps({**frames, "drawn": drawn}))
"""
    run = subprocess.run(
        [sys.executable, "-c", code + report],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env=environment(
            MLFLOW_TRACKING_URI=url,
            MLFLOW_TRACKING_USERNAME=ADMIN[0],
            MLFLOW_TRACKING_PASSWORD=ADMIN[1],
            MPLBACKEND="Agg",
            PYTHONPATH=str(ROOT / "distribution"),
        ),
    )
    assert run.returncode == 0, run.stderr
    answers: dict[str, Any] = json.loads(run.stdout)
    return answers


def panel_request(since: int, until: int) -> tuple[str, dict[str, str], bytes]:
    """The path, the headers and the body that the panel sends for a range of time in
    milliseconds."""
    (target,) = json.loads(PANEL.read_text(encoding="utf-8"))["targets"]
    options = target["url_options"]
    body = options["data"].replace("${__from}", str(since)).replace("${__to}", str(until))
    headers = {header["key"]: header["value"] for header in options["headers"]}
    headers["Content-Type"] = options["body_content_type"]
    return target["url"], headers, body.encode()


def panel_columns() -> list[str]:
    (target,) = json.loads(PANEL.read_text(encoding="utf-8"))["targets"]
    return [column["selector"] for column in target["columns"]]
