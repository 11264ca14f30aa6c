"""Page tokens of Kubeflow's lists, another user's and forged ones, show nothing foreign and are at
worst the caller's mistake."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Final

import pytest

from tests.contract.conftest import EXAMPLES, Store
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.kubeflow_users import SECRET, KubeflowUser, make, two_users

__all__ = ["two_users"]

LISTS: Final = (
    *("registered_models", "model_versions", "artifacts", "model_artifacts", "experiments"),
    *("serving_environments", "inference_services", "experiment_runs"),
)
BELOW: Final = {
    "registered_models/{}/versions": "model",
    "model_versions/{}/artifacts": "version",
    "inference_services/{}/serves": "service",
    "serving_environments/{}/inference_services": "environment",
    "experiments/{}/experiment_runs": "experiment",
    "experiment_runs/{}/artifacts": "run",
    "experiment_runs/{}/metric_history": "run",
}
NUMBERS: Final = ("0", "-1", "5", str(2**63 - 1), str(2**63), str(-(2**63)), "9" * 20, "9" * 21)
ORDERS: Final = tuple(itertools.product(("ID", "LAST_UPDATE_TIME"), ("ASC", "DESC")))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORGED: Final = (
    *(encoded(f"{last}:{value}") for last in NUMBERS for value in NUMBERS),
    *map(encoded, ("", ":", "1:", "1:2:3", "x:y", "1:1e5", "\u0663:1", "--1:1", "+1:1", "1:-")),
    *("%%%", "é", "=====", "A" * 2000),
)


@pytest.mark.parametrize("two_users", ["basic"], indirect=True)
@pytest.mark.parametrize("kind", [*LISTS, *BELOW])
def test_tokens(two_users: tuple[KubeflowUser, KubeflowUser], kind: str) -> None:
    """Each forged token in one of the orders, which differ from list to list; in all of them where
    examples are multiplied."""
    amy, ben = two_users
    for user, marker, folder in ((amy, SECRET, "amy 2"), (ben, "OWN", "ben 2")):
        make(user, f"{marker} 2", folder=folder)
    path = kind.format(amy.ids[BELOW[kind]] if kind in BELOW else "")
    failed = []
    begin = [*LISTS, *BELOW].index(kind)
    for number, (order, direction) in enumerate(ORDERS, begin):
        asked = {"pageSize": "1", "orderBy": order, "sortOrder": direction}
        tokens = [""]
        while token := amy.get(path, **asked, nextPageToken=tokens[-1])["nextPageToken"]:
            assert token not in tokens
            tokens.append(token)
        forged = FORGED if EXAMPLES > 1 else FORGED[number % len(ORDERS) :: len(ORDERS)]
        for sent in (*tokens, *forged):
            for user in (amy, ben):
                answer = user.ask("GET", path, **asked, nextPageToken=sent)
                shown = user is ben and SECRET in json.dumps(answer.body)
                if answer.status >= 500 or shown:
                    failed.append((order, direction, sent[:99], answer.status, shown))
    assert not failed


def test_runs_at_the_ends_of_time_end_no_list(store: Store) -> None:
    """Clients choose the times of runs; others page past them."""
    experiment = store.api.new_experiment("e")
    times = (2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 0)
    for time in times:
        store.api.post("runs/create", experiment_id=experiment, start_time=time)
    kubeflow = KubeflowApi()
    for by, order in itertools.product(("CREATE_TIME", "LAST_UPDATE_TIME"), ("ASC", "DESC")):
        listed: set[str] = set()
        token = ""
        while token or not listed:
            page = kubeflow.get(
                "experiment_runs", orderBy=by, sortOrder=order, pageSize="1", nextPageToken=token
            )
            listed.update(item["id"] for item in page["items"])
            token = page["nextPageToken"]
        assert len(listed) == len(times)
