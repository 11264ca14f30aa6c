"""Users, grants and refusals as MLflow's own client of the accounts sees them.

    python login_script.py TRACKING_URI NAME ADMINISTRATOR PASSWORD

Prints ``ok <client version>``; any wrong answer ends it with an AssertionError.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.version import VERSION

PASSWORD = "password-of-a-user"
HAS_ROLES = tuple(int(part) for part in VERSION.split(".")[:2]) >= (3, 10)


def auth_service_client(uri: str):
    """MLflow's class, without the server that stands in its package and needs Flask."""
    folder = Path(mlflow.__file__).parent / "server"
    for name, path in (("server", folder), ("server.auth", folder / "auth")):
        package = types.ModuleType(f"mlflow.{name}")
        package.__path__ = [str(path)]
        sys.modules[package.__name__] = package
    handlers: Any = types.ModuleType("mlflow.server.handlers")
    handlers._get_rest_path = lambda path, version=2: f"/api/{version}.0{path}"
    handlers._get_ajax_path = lambda path, version=2: f"/ajax-api/{version}.0{path}"
    handlers._add_static_prefix = lambda path: path
    sys.modules[handlers.__name__] = handlers
    from mlflow.server.auth.client import AuthServiceClient  # noqa: PLC0415 -- after the stand-ins

    return AuthServiceClient(uri)


@contextlib.contextmanager
def logged_in(username: str, password: str = PASSWORD) -> Iterator[None]:
    os.environ.update(MLFLOW_TRACKING_USERNAME=username, MLFLOW_TRACKING_PASSWORD=password)
    yield
    del os.environ["MLFLOW_TRACKING_USERNAME"], os.environ["MLFLOW_TRACKING_PASSWORD"]


def refused(code: str, call, *arguments, **named) -> None:
    message = "nothing"
    try:
        call(*arguments, **named)
    except MlflowException as error:
        message = f"{error.error_code} {error}"
    assert code in message, (call, arguments, message)


def of_users(auth, name: str, admin: tuple[str, str]) -> None:
    ada, bob = f"ada {name}", f"bob {name}"
    refused("not authenticated", auth.create_user, ada, PASSWORD)
    with logged_in(*admin):
        made = auth.create_user(ada, PASSWORD)
        assert (made.username, made.is_admin) == (ada, False)
        auth.create_user(bob, PASSWORD)
        refused("RESOURCE_ALREADY_EXISTS", auth.create_user, ada, PASSWORD)
        refused("INVALID_PARAMETER_VALUE", auth.create_user, f"x {name}", "short")
        assert auth.get_user(ada).id == made.id
    with logged_in(ada):
        assert auth.get_user(ada).username == ada
        refused("Permission denied", auth.get_user, bob)
        refused("Permission denied", auth.create_user, f"y {name}", PASSWORD)
        refused("Permission denied", auth.update_user_password, bob, PASSWORD)
        refused("Permission denied", auth.update_user_admin, ada, True)
        refused("Permission denied", auth.delete_user, bob)
    with logged_in(ada, PASSWORD + "x"):
        refused("not authenticated", auth.get_user, ada)
    with logged_in(*admin):
        auth.update_user_password(ada, "another" + PASSWORD)
        auth.update_user_admin(bob, True)
        assert auth.get_user(bob).is_admin is True
    with logged_in(ada):
        refused("not authenticated", auth.get_user, ada)
    with logged_in(ada, "another" + PASSWORD):
        assert auth.get_user(ada).id == made.id
    with logged_in(bob):
        auth.delete_user(ada)
        refused("RESOURCE_DOES_NOT_EXIST", auth.get_user, ada)
        refused("RESOURCE_DOES_NOT_EXIST", auth.delete_user, ada)
    with logged_in(ada, "another" + PASSWORD):
        refused("not authenticated", auth.get_user, ada)


def of_grants(auth, client: MlflowClient, name: str, admin: tuple[str, str]) -> None:
    owner, guest = f"owner {name}", f"guest {name}"
    with logged_in(*admin):
        auth.create_user(owner, PASSWORD)
        auth.create_user(guest, PASSWORD)
    with logged_in(owner):
        experiment_id = client.create_experiment(f"e {name}")
        run_id = client.create_run(experiment_id).info.run_id
        client.create_registered_model(f"m {name}")
    with logged_in(guest):
        assert client.get_run(run_id).info.run_id == run_id
        refused("Permission denied", client.log_metric, run_id, "m", 1.0)
        refused("Permission denied", client.delete_experiment, experiment_id)
        refused("Permission denied", client.delete_registered_model, f"m {name}")
        refused("Permission denied", client.get_run, "0" * 32)
    with logged_in(owner):
        grant = new_grants if HAS_ROLES else old_grants
    grant(auth, client, name, owner, guest, experiment_id, run_id)
    with logged_in(owner):
        client.rename_registered_model(f"m {name}", f"n {name}")
        client.delete_registered_model(f"n {name}")
        client.delete_experiment(experiment_id)
    with logged_in(*admin):
        auth.delete_user(guest)
        auth.create_user(guest, PASSWORD)
    with logged_in(guest):
        refused("Permission denied", client.log_metric, run_id, "m", 2.0)
        names = [experiment.name for experiment in client.search_experiments()]
        assert f"e {name}" not in names


def old_grants(auth, client, name, owner, guest, experiment_id, run_id) -> None:
    """The RPCs of clients before roles."""
    model = f"m {name}"
    with logged_in(guest):
        refused(
            "Permission denied", auth.create_experiment_permission, experiment_id, guest, "MANAGE"
        )
    with logged_in(owner):
        made = auth.create_experiment_permission(experiment_id, guest, "EDIT")
        assert (made.experiment_id, made.permission) == (experiment_id, "EDIT")
        refused(
            "RESOURCE_ALREADY_EXISTS",
            auth.create_experiment_permission,
            experiment_id,
            guest,
            "READ",
        )
        refused(
            "INVALID_PARAMETER_VALUE",
            auth.update_experiment_permission,
            experiment_id,
            guest,
            "OWN",
        )
        auth.create_registered_model_permission(model, guest, "EDIT")
        registered_model_permission = auth.get_registered_model_permission(model, guest)
        assert (registered_model_permission.name, registered_model_permission.permission) == (
            model,
            "EDIT",
        )
    with logged_in(guest):
        client.log_metric(run_id, "m", 1.0)
        client.update_registered_model(model, "described")
        mine = auth.get_user(guest)
        assert [
            experiment_permission.permission
            for experiment_permission in mine.experiment_permissions
        ] == ["EDIT"]
        assert [permission.name for permission in mine.registered_model_permissions] == [model]
    of_scorers(auth, client, owner, guest, experiment_id)
    with logged_in(owner):
        auth.update_experiment_permission(experiment_id, guest, "NO_PERMISSIONS")
        auth.update_registered_model_permission(model, guest, "NO_PERMISSIONS")
    with logged_in(guest):
        refused("Permission denied", client.get_run, run_id)
        refused("Permission denied", client.get_registered_model, model)
        assert all(experiment.name != f"e {name}" for experiment in client.search_experiments())
        assert all(
            registered_model.name != model for registered_model in client.search_registered_models()
        )
        assert client.search_runs([experiment_id]) == []
    with logged_in(owner):
        auth.delete_experiment_permission(experiment_id, guest)
        auth.delete_registered_model_permission(model, guest)
        refused("RESOURCE_DOES_NOT_EXIST", auth.get_experiment_permission, experiment_id, guest)
        refused("RESOURCE_DOES_NOT_EXIST", auth.delete_registered_model_permission, model, guest)
    with logged_in(guest):
        assert client.get_run(run_id).info.run_id == run_id


def of_scorers(auth, client, owner, guest, experiment_id) -> None:
    """The permissions that clients from 3.5 to 3.7 call; who registers a scorer manages it."""
    scorer = (experiment_id, "is it/good?")
    with logged_in(owner):
        client._tracking_client.store.register_scorer(*scorer, '{"name": "is it/good?"}')
    with logged_in(guest):
        refused("Permission denied", auth.create_scorer_permission, *scorer, guest, "MANAGE")
    with logged_in(owner):
        made = auth.create_scorer_permission(*scorer, guest, "READ")
        assert (made.experiment_id, made.scorer_name, made.permission) == (*scorer, "READ")
        refused("RESOURCE_ALREADY_EXISTS", auth.create_scorer_permission, *scorer, guest, "EDIT")
        refused("INVALID_PARAMETER_VALUE", auth.update_scorer_permission, *scorer, guest, "OWN")
        auth.update_scorer_permission(*scorer, guest, "MANAGE")
        assert auth.get_scorer_permission(*scorer, guest).permission == "MANAGE"
    with logged_in(guest):
        mine = auth.get_user(guest).scorer_permissions
        assert [(permission.scorer_name, permission.permission) for permission in mine] == [
            (scorer[1], "MANAGE")
        ]
        auth.delete_scorer_permission(*scorer, guest)
        assert auth.get_user(guest).scorer_permissions == []
        refused("Permission denied", auth.get_scorer_permission, *scorer, guest)
    with logged_in(owner):
        refused("RESOURCE_DOES_NOT_EXIST", auth.get_scorer_permission, *scorer, guest)
        refused("RESOURCE_DOES_NOT_EXIST", auth.delete_scorer_permission, *scorer, guest)


def new_grants(auth, client, name, owner, guest, experiment_id, run_id) -> None:
    """Grants of one user, and roles, of clients from 3.10 on."""
    on = {"username": guest, "resource_type": "experiment", "resource_id": experiment_id}
    with logged_in(guest):
        refused("Permission denied", auth.grant_user_permission, **on, permission="MANAGE")
    with logged_in(owner):
        auth.grant_user_permission(**on, permission="EDIT")
        refused("RESOURCE_ALREADY_EXISTS", auth.grant_user_permission, **on, permission="READ")
    with logged_in(guest):
        client.log_metric(run_id, "m", 1.0)
        assert auth.get_user_permission(**on).permission == "EDIT"
    with logged_in(owner):
        auth.revoke_user_permission(**on)
        refused("RESOURCE_DOES_NOT_EXIST", auth.revoke_user_permission, **on)
        auth.grant_user_permission(**on, permission="DENY")
    with logged_in(guest):
        refused("Permission denied", client.get_run, run_id)
        assert all(experiment.name != f"e {name}" for experiment in client.search_experiments())
        assert client.search_runs([experiment_id]) == []
    with logged_in(owner):
        auth.revoke_user_permission(**on)


def main() -> None:
    uri, name, *admin = sys.argv[1:]
    os.environ.pop("MLFLOW_TRACKING_USERNAME", None)
    os.environ.pop("MLFLOW_TRACKING_PASSWORD", None)
    mlflow.set_tracking_uri(uri)
    auth = auth_service_client(uri)
    of_users(auth, name, (admin[0], admin[1]))
    of_grants(auth, MlflowClient(uri), name, (admin[0], admin[1]))
    print(f"ok {VERSION}")  # noqa: T201


main()
