"""Ranks: the index of metric values in order, across the runs of an experiment; its stored forms
(rows, segments), and how searches read it."""
