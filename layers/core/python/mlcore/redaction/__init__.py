"""Redacts private texts before they are stored or sent to a model provider. A rule names fields,
a regular expression, or kinds of private data such as e-mail addresses."""
