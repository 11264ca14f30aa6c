"""The model catalog (Kubeflow's list of models and MCP servers that can be registered) as plain
values: entries with their artifacts and tools. Does no I/O.

A *loader* reads the sources and stores all entries as one *generation*; requests read the current
generation.
"""
