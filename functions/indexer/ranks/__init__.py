"""Writes the metric ranks of an experiment: appends rows, sorts them into segments, merges
segments."""
