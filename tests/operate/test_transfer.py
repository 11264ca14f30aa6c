"""How old servers are read, and what the journal keeps of a run that was killed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from operate.transfer import traces
from operate.transfer.journal import Journal
from operate.transfer.mlflow_client import Server, SourceFailed
from operate.transfer.source_reader import SourceReader, proxy_path, target_location
from operate.transfer.transfer_item import TransferItem, differences


class Old(Server):
    """Answers what it has been given, and 404 to everything else, as Flask does."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("http://old")
        self.answers = answers

    def get(self, path: str, /, **parameters: Any) -> Any:
        name = path.rpartition("/")[2].replace("-", "_")
        if name not in self.answers:
            raise SourceFailed(404, "Not Found")
        if name == "get_history" and "max_results" in parameters:
            raise SourceFailed(400, "no pages", "INVALID_PARAMETER_VALUE")
        return self.answers[name]

    def post(self, path: str, /, **fields: Any) -> Any:
        return self.get(path)


def reader(**answers: Any) -> SourceReader:
    return SourceReader(Old(**answers), lambda source_id: f"mapped-{source_id}")


def test_traces_of_version_2() -> None:
    info = {
        "request_id": "tr-1",
        "experiment_id": "3",
        "timestamp_ms": "1700000000000",
        "execution_time_ms": "12",
        "status": "ERROR",
        "request_metadata": [{"key": "mlflow.sourceRun", "value": "r"}],
        "tags": [{"key": "mlflow.artifactLocation", "value": "mlflow-artifacts://old:5/3/traces"}],
    }
    # The search of version 3 has another path with the same end.
    source = reader(traces={"traces": [info]})
    (trace,) = traces.listed(source, "3")
    assert (trace.experiment_id, trace.state) == ("mapped-3", "ERROR")
    assert (trace.request_time, trace.execution_duration) == (1700000000000, 12)
    assert traces.location(trace) == "mlflow-artifacts:/3/traces"
    assert trace.trace_metadata == {"mlflow.sourceRun": "r"}


def test_a_server_without_traces_and_logged_models_has_none() -> None:
    assert list(traces.listed(reader(), "3")) == []
    assert list(reader().logged_models("3")) == []


def test_points_of_a_server_that_knows_no_pages() -> None:
    points = [
        {"value": "NaN", "timestamp": "2", "step": "1"},
        {"value": "-Infinity", "timestamp": 1},
        {"value": "-Infinity", "timestamp": 1},
    ]
    first, second = reader(get_history={"metrics": points}).history("r", "k")
    assert (first.value, first.step) == (-1.7976931348623157e308, 0)
    assert (math.isnan(second.value), second.timestamp) == (True, 2)


def test_locations() -> None:
    through = "http://old:5/api/2.0/mlflow-artifacts/artifacts/1/r/artifacts"
    assert target_location(through) == target_location("mlflow-artifacts://old/1/r/artifacts")
    assert proxy_path("mlflow-artifacts:/1/r") == "1/r"
    for kept in ("s3://bucket/1", "file:///x", "/x/y", ""):
        assert (target_location(kept), proxy_path(kept)) == (kept, None)


def test_a_journal_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.add("run a", "1")
    journal.map("1", "ULID")
    path.write_text(path.read_text() + '{"item": "run b", "dig')
    again = Journal(path)
    again.add("run c", "2")
    last = Journal(path)
    assert last.knows("run a", "1")
    assert last.knows("run c", "2")
    assert not last.knows("run b", "1")
    assert last.target_of("1") == "ULID"
    assert last.made("ULID")


def test_differences_are_named() -> None:
    item = TransferItem("run", "r", dict, dict, lambda *_: None)
    want = {"a": {"x": math.nan, "y": 1}, "b": [1]}
    assert differences(item, want, {"a": {"x": math.nan, "y": 1}, "b": [1]}) == []
    actual = differences(item, want, {"a": {"x": 1.0}, "b": [1]})
    assert [str(difference) for difference in actual] == [
        "run r: a.x: NaN ≠ 1.0",
        "run r: a.y: 1 ≠ nothing",
    ]
    assert [str(difference) for difference in differences(item, want, None)] == [
        "run r: not in the target"
    ]
