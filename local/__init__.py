"""The local runner, also called local server: serves the product on one port of this machine, with
the functions and routes of template.yaml. It is not part of a deployment.
"""
