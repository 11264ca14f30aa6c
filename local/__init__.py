"""Serves the product on one port of this machine, as template.yaml describes it.

Never part of a deployment.
"""
