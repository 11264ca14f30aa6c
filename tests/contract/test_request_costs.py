"""The view ``request_costs``: what audited requests have cost, and who may know it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from local.audit_file import AuditFile
from mlcore.db import capacity
from mlcore.errors import InvalidParameterValue
from mlcore.http import audit
from mltables import audit_erasure, audit_verification, request_costs_view
from tests.arch import project
from tests.contract import route_environment
from tests.contract.conftest import Store
from tests.contract.costed_requests import dollars, land, request
from tests.contract.lake import Tables, tables
from tests.contract.route_world import World

__all__ = ["tables"]

COSTS = "system.mlflow.request_costs"
Json = dict[str, Any]


@pytest.fixture
def landed(tables: Tables) -> tuple[Tables, list[Json]]:
    requests = [request(number) for number in range(30)]
    land(requests)
    assert tables.follow().audited == 30
    return tables, requests


@pytest.mark.parametrize(
    ("column", "key"),
    [
        ("rpc", lambda line: line["rpc"]),
        ("user_name", lambda line: line["audit"]["user"]),
        ("workspace_id", lambda line: line["audit"]["workspace"]),
        ("experiment_id", lambda line: line["audit"]["entity"]["experiment_id"]),
    ],
)
def test_sums_are_those_of_the_log_lines(
    landed: tuple[Tables, list[Json]], column: str, key: Any
) -> None:
    tables, requests = landed
    expected: dict[str, list[float]] = {}
    for line in requests:
        sums = expected.setdefault(key(line), [0.0] * 6)
        values = (1, line["Latency"], line["ReadUnits"], line["WriteUnits"], line["RoundTrips"])
        for at, value in enumerate((*values, dollars(line))):
            sums[at] += value
    rows = tables.ask(
        f"SELECT {column}, count(*), sum(milliseconds), sum(read_units), sum(write_units), "
        f"sum(round_trips), sum(total_usd) FROM {COSTS} GROUP BY {column}"
    )["rows"]
    assert {name: values for name, *values in rows} == {
        name: [pytest.approx(value, rel=1e-9) for value in sums] for name, sums in expected.items()
    }


def test_the_total_is_the_sum_of_its_parts(landed: tuple[Tables, list[Json]]) -> None:
    tables, requests = landed
    answer = tables.ask(f"SELECT * FROM {COSTS} ORDER BY event_time")
    rows = [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]
    assert answer["columns"] == list(request_costs_view.COLUMNS)
    for row, line in zip(rows, requests, strict=True):
        parts = row["api_gateway_usd"] + row["lambda_usd"] + row["dynamodb_usd"]
        assert row["total_usd"] == pytest.approx(parts)
        assert row["total_usd"] == pytest.approx(dollars(line))
        assert row["memory_mb"] == 512


def test_what_a_line_does_not_say(tables: Tables) -> None:
    """The memory of a laptop is that of the template; a call of a model comes through the API that
    streams; the view has no row of a line without numbers."""
    laptop = {name: value for name, value in request(1).items() if name != "MemoryMB"}
    streamed = request(2, rpc="/gateway/mlflow/v1/chat/completions")
    measured = ("Latency", "ReadUnits", "WriteUnits", "RoundTrips", "MemoryMB")
    unmeasured = {name: value for name, value in request(3).items() if name not in measured}
    land([laptop, streamed, unmeasured])
    tables.follow()
    rows = tables.ask(f"SELECT memory_mb, total_usd FROM {COSTS} ORDER BY event_time")["rows"]
    assert rows == [
        [1024, pytest.approx(dollars(laptop))],
        [512, pytest.approx(dollars(streamed, per_request=3.5e-6))],
    ]
    default = project.template()["Parameters"]["MemorySize"]["Default"]
    assert default == request_costs_view.MEMORY_MB == 1024
    assert tables.ask("SELECT count(*) FROM system.mlflow.audit_log")["rows"] == [[3]]
    assert audit_verification.verify().problems == []


class Kept:
    """Remembers the requests that are audited."""

    def __init__(self, file: AuditFile) -> None:
        self._file = file
        self.requests: list[Json] = []

    def check(self) -> None:
        self._file.check()

    def record(self, request: Mapping[str, Any], /) -> None:
        self.requests.append(dict(request))
        self._file.record(request)


@pytest.fixture
def kept(tables: Tables) -> Iterator[tuple[AuditFile, Kept]]:
    file = AuditFile(tables.folder)
    keeper = Kept(file)
    audit.provide(keeper)
    yield file, keeper
    file.stop()


def test_requests_have_their_own_costs_and_no_further_round_trip(
    store: Store,
    tables: Tables,
    kept: tuple[AuditFile, Kept],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    route_environment.prepare(monkeypatch, tmp_path / "files")
    world = World()
    file, keeper = kept
    units = []
    for number in range(3):
        fields = {"username": f"person {number}", "password": "a-long-password"}
        assert world.send("POST", "/2.0/mlflow/users/create", fields)[0] == 200
        measured = capacity.last_measurement()
        assert measured is not None
        units.append((measured.read_units, measured.write_units, measured.round_trips))
    kept_units = [
        (request["ReadUnits"], request["WriteUnits"], request["RoundTrips"])
        for request in keeper.requests
    ]
    assert kept_units == units
    assert all(request["Latency"] > 0 and request["WriteUnits"] > 0 for request in keeper.requests)
    file.land()
    tables.follow()
    rows = tables.ask(
        f"SELECT read_units, write_units, round_trips, total_usd FROM {COSTS} "
        "WHERE rpc LIKE '%users/create' ORDER BY event_time, total_usd"
    )["rows"]
    expected = sorted(map(dollars, keeper.requests))
    assert sorted(row[3] for row in rows) == [pytest.approx(usd) for usd in expected]
    assert sorted(tuple(row[:3]) for row in rows) == sorted(units)
    # Without the audit the same request takes as many round trips.
    audit.provide(None)
    fields = {"username": "person 9", "password": "a-long-password"}
    assert world.send("POST", "/2.0/mlflow/users/create", fields)[0] == 200
    alone = capacity.last_measurement()
    assert alone is not None
    assert alone.round_trips == units[-1][2]


@pytest.mark.parametrize("audited", [[], ["other"], ["Team-1"], ["%"], ["team-1' OR 1=1 --"]])
def test_no_costs_of_another_workspace_are_shown(
    landed: tuple[Tables, list[Json]], audited: list[str]
) -> None:
    """Nor to a reader who may query the other rows of the workspace."""
    tables, _ = landed
    statements = (
        f"SELECT count(*) FROM {COSTS}",
        f"SELECT count(*) FROM {COSTS} WHERE CAST(user_name AS INT) = 1",
        f"SELECT count(*) FROM {COSTS} WHERE 1 / (write_units - 2) > 0",
        f"SELECT coalesce(sum(total_usd), 0) FROM {COSTS}",
        "SELECT count(*) FROM REQUEST_COSTS WHERE Workspace_Id = 'team-1'",
        f"WITH c AS (SELECT * FROM {COSTS}) SELECT count(*) FROM c JOIN audit_log USING (rpc)",
    )
    for workspaces in (audited, ["team-1"]):
        assert tables.counts(statements, workspaces, audited=audited) == [0] * len(statements)


def test_an_administrator_of_a_workspace_sees_its_costs(
    landed: tuple[Tables, list[Json]],
) -> None:
    tables, requests = landed
    rows = tables.ask(f"SELECT DISTINCT workspace_id FROM {COSTS}", ["team-1"])["rows"]
    assert rows == [["team-1"]]
    [[total]] = tables.ask(f"SELECT sum(total_usd) FROM {COSTS}", ["team-1"])["rows"]
    mine = [line for line in requests if line["audit"]["workspace"] == "team-1"]
    assert total == pytest.approx(sum(map(dollars, mine)))


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (f"SELECT * FROM {COSTS} TIMESTAMP AS OF now()", "has no past"),
        (f"SELECT address FROM {COSTS}", "address"),
        (f"SELECT entity FROM {COSTS}", "entity"),
        (f"SELECT hash FROM {COSTS}", "hash"),
        (f"DELETE FROM {COSTS}", "Only SELECT"),
    ],
)
def test_what_the_view_has_not_is_refused(
    landed: tuple[Tables, list[Json]], sql: str, why: str
) -> None:
    with pytest.raises(InvalidParameterValue, match=why):
        landed[0].ask(sql)


def test_an_erased_person_is_a_pseudonym_here_too(landed: tuple[Tables, list[Json]]) -> None:
    tables, _ = landed
    assert audit_erasure.erase("user 1") == 15
    rows = tables.ask(f"SELECT user_name, count(user_id), count(*) FROM {COSTS} GROUP BY 1")
    assert sorted(rows["rows"], key=str) == [["user 0", 15, 15], [None, 15, 15]]
    assert audit_verification.verify().problems == []
