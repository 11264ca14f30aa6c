"""Replaces private texts before they are stored: rules by field, by regular expression, and by
kinds of entities such as e-mail addresses."""
