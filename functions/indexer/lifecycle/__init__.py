"""Lets deleted runs, deleted experiments, and archived registered models and model versions expire,
removes files of removed entities, and archives old traces."""
