"""Stores with which account of an OpenID Connect issuer each user signs in, and which roles the
account's groups give to the user.

A user name belongs to the first account that signs in under it: e-mail addresses are given to other
people, and another issuer may use the same name for somebody else. An administrator who deletes the
user frees the name.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Put, table
from mlcore.entities.users import Account, Profile, SignIn, User
from mlcore.ids import now_ms
from mlcore.models.users import SignIn as SignInItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.users import roles


class OtherAccount(Exception):
    """Raised if another account of an OpenID issuer signs in under this user name."""


def find(user: User) -> SignIn | None:
    """Returns the account with which a user signs in, with its roles; None for a user who never
    signed in."""
    raw = table.get(keys.sign_in(user.username))
    if raw is None or (item := SignInItem.of(raw)).user_id != user.user_id:
        return None
    return SignIn(Account(item.issuer, item.subject), frozenset(json.loads(item.role_ids)))


def apply(profile: Profile, account: Account, wanted: Iterable[int]) -> None:
    """Binds a user to an account of an OIDC issuer, assigns the roles that follow from the
    account's groups, and removes those that its former groups gave. Roles that an administrator
    assigned stay. Repeating the call completes an interrupted one. Of several sign-ins at the same
    moment, one decides.

    Args:
        wanted: the ids of the roles that follow from the account's groups.

    Raises:
        OtherAccount: the user name belongs to another account.
        RequestLimitExceeded: other sign-ins of the user kept coming first.
    """
    user, wanted = profile.user, frozenset(wanted)
    new = wanted - frozenset(profile.role_ids)

    def attempt() -> None:
        before = find(user)
        if before is not None and before.account != account:
            raise OtherAccount
        given = frozenset() if before is None else before.role_ids
        # The roles are recorded before they are assigned, so that after an interrupted sign-in the
        # next one can remove them. What another sign-in has not recorded, it does not assign.
        recorded = given | new
        if before is None or recorded != given:
            _put(user, account, recorded, before)
        # It writes what is stored: a check that needs no further right.
        unchanged = [Put(_item(user, account, recorded), _is(user, account, recorded))]
        for role_id in sorted(new):
            with contextlib.suppress(roles.AlreadyAssigned):
                roles.assign(user, role_id, unchanged)
        gone = given - wanted
        for role_id in sorted(gone):
            with contextlib.suppress(roles.NotAssigned):
                roles.unassign(user, role_id, unchanged)
        if gone:
            _put(user, account, recorded - gone, SignIn(account, recorded))

    retry_on_conflict("sign-in", attempt)


def _put(user: User, account: Account, role_ids: frozenset[int], before: SignIn | None) -> None:
    """Records an account and the roles that its groups give. Raises WriteConflict if the stored
    record is not ``before`` (None: if the user has one)."""
    if before is None:
        condition = ConditionExpression()
        condition.require_absent_or_other(SignInItem.user_id, user.user_id)
    else:
        condition = _is(user, before.account, before.role_ids)
    try:
        table.put(_item(user, account, role_ids), condition)
    except ConditionFailed as failed:
        raise WriteConflict from failed


def _item(user: User, account: Account, role_ids: frozenset[int]) -> Raw:
    key = keys.sign_in(user.username)
    item = SignInItem(
        PK=key.pk,
        SK=key.sk,
        username=user.username,
        user_id=user.user_id,
        issuer=account.issuer,
        subject=account.subject,
        role_ids=_text(role_ids),
        updated_at=now_ms(),
    )
    return item.serialize()


def _is(user: User, account: Account, role_ids: frozenset[int]) -> ConditionExpression:
    condition = ConditionExpression()
    condition.require_equal(SignInItem.user_id, user.user_id)
    condition.require_equal(SignInItem.issuer, account.issuer)
    condition.require_equal(SignInItem.subject, account.subject)
    condition.require_equal(SignInItem.role_ids, _text(role_ids))
    return condition


def _text(role_ids: frozenset[int]) -> str:
    return json.dumps(sorted(role_ids))
