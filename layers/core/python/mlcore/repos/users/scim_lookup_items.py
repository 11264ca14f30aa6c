"""Items that find the users and groups of a directory: one item for the name of each, which matches
any spelling (upper or lower case), and items for the attribute values by which a directory
searches."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.keys import Key
from mlcore.db.table import Put
from mlcore.ids import now_ms
from mlcore.models.scim import ScimName, ScimValue


def reserving(kind: str, name: str, scim_id: str, stored: Raw | None) -> Put:
    """Returns the put that reserves a name, in every spelling, for a user or group of SCIM.

    Args:
        kind: :data:`~mlcore.entities.scim.USER` or :data:`~mlcore.entities.scim.GROUP`.
        stored: the name's item as it was read. The put fails if the name was reserved for another
            user or group since.
    """
    key = keys.scim_name(kind, name.lower())
    unchanged = ConditionExpression()
    if stored is None:
        unchanged.require_absent(ScimName.PK)
    else:
        unchanged.require_absent_or_equal(ScimName.scim_id, ScimName.of(stored).scim_id)
    item = ScimName(PK=key.pk, SK=key.sk, scim_id=scim_id, updated_at=now_ms())
    return Put(item.serialize(), unchanged)


def value_item(key: Key, scim_id: str) -> Raw:
    """Returns the item through which a user or group is found by the value of one of its
    attributes.

    Args:
        key: the key of the item, as :func:`mlcore.db.keys.scim_value` returns it.
    """
    return ScimValue(PK=key.pk, SK=key.sk, scim_id=scim_id, updated_at=now_ms()).serialize()
