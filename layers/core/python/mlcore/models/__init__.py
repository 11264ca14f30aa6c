"""Models: declarations of the attributes and keys of the table's items, one module for each group
of related items. The modules read nothing and contain no rules.

Models are PynamoDB's classes, but nobody instantiates them to read:
:meth:`mlcore.models.base.Item.of` makes a read-only view of a raw item. ``version`` of an item
counts its writes unless said otherwise; times are milliseconds since the epoch.

A module imports without the others, so a function loads only the models that it needs; all models
together are in :mod:`mlcore.models.by_type`.
"""
