"""Checks that the MLflow server accepts the given login and refuses others."""

from __future__ import annotations

from uuid import uuid4

from operate.doctor.api import Login
from operate.doctor.checkup_state import Checkup, expect
from operate.doctor.outcome import Wrong

_SEARCH = ("POST", "/api/2.0/mlflow/experiments/search", {"max_results": 1})
_VARIABLES = (
    "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, MLFLOW_TRACKING_TOKEN, "
    "or MLFLOW_TRACKING_AWS_SIGV4"
)


def log_in(checkup: Checkup) -> str:
    """Checks that the login is accepted and, if one is given, that a missing login and a wrong
    password are refused. Returns the result as a text; raises Wrong."""
    api = checkup.api
    answer = api.call(*_SEARCH)
    if answer.status in (401, 403):
        given = "the login was refused" if api.login.is_given else "a login is needed"
        raise Wrong(f"{given} ({answer.status}): set {_VARIABLES}")
    expect(answer.status == 200, f"experiments/search: {answer.status} {answer.text[:200]}")
    version = api.call("GET", "/version").text
    checkup.facts["version"] = version
    if not api.login.is_given:
        return f"MLflow {version}; no login is required: every caller has full access"
    nobody = api.call(*_SEARCH, login=Login())
    expect(nobody.status in (401, 403), f"a caller without a login gets {nobody.status}")
    if api.login.user:
        # A name that nobody has, so that no user's wrong passwords are counted.
        guess = Login(user=f"nobody-{uuid4().hex}", password=uuid4().hex)
        wrong = api.call(*_SEARCH, login=guess)
        expect(wrong.status in (401, 429), f"a wrong password gets {wrong.status}")
    return f"MLflow {version}; other callers are refused"
