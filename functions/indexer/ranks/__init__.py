"""Writes the ranks of an experiment (the index of metric values in order): appends rows, sorts them
into segments, merges segments."""
