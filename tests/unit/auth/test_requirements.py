"""How grants answer requirements: the rules that decide who gets in."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.auth import permissions as p
from mlcore.auth.permissions import Grant
from mlcore.auth.requirements import NOT_DENIED, Grants, InheritedFrom, Requirement
from mlcore.errors import InvalidParameterValue
from mlcore.limits import experiments as limits

LEVELS = st.sampled_from(["READ", "USE", "EDIT", "MANAGE", "DENY"])
TYPES = st.sampled_from([p.EXPERIMENT, p.RUN, p.REGISTERED_MODEL])
IDS = st.sampled_from(["1", "2", "*"])
GRANTS = st.lists(st.builds(Grant, TYPES, IDS, LEVELS), max_size=6)
ACTIONS = st.sampled_from(["read", "use", "update", "delete", "manage", NOT_DENIED])
DEFAULTS = st.sampled_from([p.READ, p.EDIT, p.NO_PERMISSIONS])


def _level(grants: list[Grant], resource_type: str, resource_id: str) -> str | None:
    """The rule in its plainest words."""
    permissions = [
        grant.permission
        for grant in grants
        if grant.resource_type == resource_type
        and grant.resource_pattern in {"*", resource_id if resource_type != p.RUN else "*"}
    ]
    if "DENY" in permissions:
        return "DENY"
    order = ["READ", "USE", "EDIT", "MANAGE"]
    return max(permissions, key=order.index) if permissions else None


def _can(level: str, action: str) -> bool:
    allowed = {
        "READ": {"read"},
        "USE": {"read", "use"},
        "EDIT": {"read", "use", "update"},
        "MANAGE": {"read", "use", "update", "delete", "manage"},
    }
    return level != "DENY" if action == NOT_DENIED else action in allowed.get(level, set())


@given(GRANTS, DEFAULTS, ACTIONS)
def test_the_first_rung_with_a_grant_decides(
    grants: list[Grant], default: p.Permission, action: str
) -> None:
    requirement = Requirement(p.RUN, "*", action, (InheritedFrom(p.EXPERIMENT, "1", action),))
    level = _level(grants, p.RUN, "*") or _level(grants, p.EXPERIMENT, "1") or default.name
    order = ["NO_PERMISSIONS", "READ", "USE", "EDIT", "MANAGE"]
    if level not in {"DENY", "NO_PERMISSIONS"}:
        level = max(level, default.name, key=order.index)
    assert Grants(grants, default, default).meets(requirement) == _can(level, action)


@pytest.mark.parametrize("written", ["7", "07", "+7", " 7 ", "0_7", "\u0667"])
def test_no_way_to_write_a_number_leads_past_its_grants(written: str) -> None:
    """The service finds experiment 7 by each of them."""
    assert limits.experiment_id(written) == "7"
    held = [
        Grant(p.EXPERIMENT, "7", "DENY"),
        Grant(p.SCORER, p.scorer_pattern("7", "a b"), "DENY"),
    ]
    grants = Grants(held, p.EDIT, p.EDIT)
    assert not grants.meets(Requirement(p.EXPERIMENT, written, "read"))
    assert not grants.meets(Requirement(p.SCORER, p.scorer_pattern(written, "a b"), "read"))
    inside = Requirement(p.RUN, "*", "read", (InheritedFrom(p.EXPERIMENT, written, "read"),))
    assert not grants.meets(inside)
    assert grants.meets(Requirement(p.EXPERIMENT, "17", "read"))


@given(GRANTS, ACTIONS)
def test_whoever_administrates_the_workspace_is_never_denied(
    grants: list[Grant], action: str
) -> None:
    held = Grants([*grants, Grant(p.WORKSPACE, "*", "MANAGE")], p.READ, p.NO_PERMISSIONS)
    assert held.allow([Requirement(p.EXPERIMENT, "1", action)])
    assert held.effective(p.EXPERIMENT, "1") is p.MANAGE


def test_membership_of_the_workspace_is_no_administration() -> None:
    held = Grants([Grant(p.WORKSPACE, "*", "USE")], p.READ, p.NO_PERMISSIONS)
    assert not held.administrates
    assert not held.allow([Requirement(p.EXPERIMENT, "1", "read")])


@pytest.mark.parametrize(
    ("permission", "resource_type", "pattern", "message"),
    [
        ("OWN", "experiment", "1", "Invalid permission 'OWN'"),
        ("READ", "table", "1", "Invalid resource type 'table'"),
        ("READ", "workspace", "*", "Workspace-wide grants accept only: ('MANAGE', 'USE')."),
        ("NO_PERMISSIONS", "experiment", "1", "Resource-level grants accept only"),
        ("READ", "run", "1", "supports only wildcard ('*') grants"),
    ],
)
def test_what_cannot_be_granted(
    permission: str, resource_type: str, pattern: str, message: str
) -> None:
    def check() -> None:
        p.check_level(permission, resource_type)
        p.check_pattern(pattern, resource_type)

    with pytest.raises(InvalidParameterValue, match=re.escape(message)):
        check()
