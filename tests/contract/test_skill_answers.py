"""The skill registry answers 800 requests as MLflow 3.18.0 does, whose answers are recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store
from tests.contract.skill_api import ask
from tests.contract.skill_calls import calls, plain
from tests.contract.skill_recording import FILE

BETTER = {"https://[x/a.git": 400}
"""Sources on which MLflow's server fails with 500, and our status."""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> Iterator[None]:
    with artifacts_in(tmp_path):
        yield


def test_as_recorded(store: Store) -> None:
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    sent = calls()
    assert len(recorded) == len(sent), "record again: python -m tests.contract.skill_recording"
    differences = []
    for call, expected in zip(sent, recorded, strict=True):
        reply = ask(call)
        actual = plain(*reply)
        if expected[1] is None:  # not JSON: only MLflow's page for unknown paths, or its failure
            better = next((code for text, code in BETTER.items() if text in call.label()), None)
            allowed = {404, 405} if expected[0] in (404, 405) else {better}
            if reply.status not in allowed or "error_code" not in reply.body:
                differences.append((call.label(), expected, actual))
        elif actual != expected:
            differences.append((call.label(), expected, actual))
    shown = "\n".join("\n  ".join(map(str, each))[:2000] for each in differences)
    assert not differences, f"{len(differences)} differences\n{shown}"
