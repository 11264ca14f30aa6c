"""Decides which experiment, run, model or version owns which files of the artifact store."""
