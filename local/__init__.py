"""Serves the product on one port of this machine, as template.yaml describes it; never part of a deployment."""
