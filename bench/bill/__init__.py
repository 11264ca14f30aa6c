"""Computes what a deployment costs in a month, idle and in use by a team."""
