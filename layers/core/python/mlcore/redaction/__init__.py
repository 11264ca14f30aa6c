"""Replaces private texts before they are stored or sent to a provider: rules by field, by regular
expression, and by kinds of entities such as e-mail addresses."""
