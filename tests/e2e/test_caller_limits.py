"""Limits of callers at the runner: one who floods is refused, the others notice nothing, and
MLflow's clients get through."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.e2e.clients import CURRENT, run_script
from tests.servers import ADMIN, Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPT = Path(__file__).with_name("limited_script.py")
RATE, BURST = 4, 20
PASSWORD = "password-of-a-user"
USERS = ("noisy", "quiet", "trained", "trained-before")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The administrator is limited, too, and makes four users."""
    made = start_product(
        tmp_path_factory.mktemp("limited"),
        *("--auth", "--parameter", f"UserRequestsPerSecond={RATE}"),
        *("--parameter", "DefaultPermission=MANAGE"),
        MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1],
    )
    with stopped(made) as server:
        for name in USERS:
            answer = requests.post(
                f"{server.url}/api/2.0/mlflow/users/create",
                json={"username": name, "password": PASSWORD},
                auth=ADMIN,
                timeout=30,
            )
            assert answer.status_code == 200, answer.text
        yield server


def _search(server: Server, name: str, session: requests.Session) -> requests.Response:
    return session.post(
        f"{server.url}/api/2.0/mlflow/experiments/search",
        json={"max_results": 1},
        auth=(name, PASSWORD),
        timeout=30,
    )


def test_a_noisy_neighbour_is_refused_and_others_are_not(limited: Server) -> None:
    counted: list[int] = []
    refusals: list[requests.Response] = []
    over = threading.Event()

    def flood() -> None:
        with requests.Session() as session:
            while not over.is_set():
                answer = _search(limited, "noisy", session)
                counted.append(answer.status_code)
                if answer.status_code == 429:
                    refusals.append(answer)

    threads = [threading.Thread(target=flood) for _ in range(4)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    waits = []
    with requests.Session() as session:
        for _ in range(15):
            monotonic = time.monotonic()
            assert _search(limited, "quiet", session).status_code == 200
            waits.append(time.monotonic() - monotonic)
            time.sleep(0.3)
    over.set()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    assert set(counted) == {200, 429}
    assert counted.count(200) <= BURST + RATE * (seconds + 1)
    assert len(refusals) > counted.count(200)
    assert refusals[0].json()["error_code"] == "REQUEST_LIMIT_EXCEEDED"
    assert refusals[0].headers["retry-after"] == "1"
    assert statistics.median(waits) < 0.5


@pytest.mark.parametrize(("version", "user"), [(CURRENT, "trained"), ("2.9.2", "trained-before")])
def test_clients_wait_and_lose_nothing(
    limited: Server, version: str, user: str, tmp_path: Path
) -> None:
    run_script(SCRIPT, version, tmp_path, limited.url, user, PASSWORD)
