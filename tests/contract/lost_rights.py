"""Ways in which the user ``owner``, in whose name the server acts, loses rights: on an experiment,
on an endpoint of the AI gateway, or to a kind of entity; or is deleted."""

from __future__ import annotations

from mlcore.auth.permissions import Grant
from mlcore.repos.users import grants, users


def without_endpoint(experiment: str, endpoint_id: str) -> None:
    grants.delete(users.get("owner"), "default", "gateway_endpoint", endpoint_id)


def without_experiment(experiment: str, endpoint_id: str) -> None:
    grants.delete(users.get("owner"), "default", "experiment", experiment)


def denied_assessments(experiment: str, endpoint_id: str) -> None:
    grants.put(users.get("owner"), "default", Grant("assessment", "*", "DENY"))


def denied_traces(experiment: str, endpoint_id: str) -> None:
    grants.put(users.get("owner"), "default", Grant("trace", "*", "DENY"))


def deleted(experiment: str, endpoint_id: str) -> None:
    users.delete(users.get_profile("owner"))


def made_anew(experiment: str, endpoint_id: str) -> None:
    """A later user of the same name has the same rights."""
    users.delete(users.get_profile("owner"))
    again = users.create("owner", "", is_admin=False)
    grants.put(again, "default", Grant("experiment", experiment, "EDIT"))
    grants.put(again, "default", Grant("gateway_endpoint", endpoint_id, "USE"))
