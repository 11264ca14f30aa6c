"""Metric values in order, across the runs of an experiment: stored rows and segments, and how
searches read them."""
