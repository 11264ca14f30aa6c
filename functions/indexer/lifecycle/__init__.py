"""Lets deleted runs, deleted experiments and archived models expire, and removes their files."""
