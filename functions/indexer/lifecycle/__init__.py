"""Lets deleted runs, deleted experiments and archived models expire, removes files of removed
entities, and archives old traces."""
