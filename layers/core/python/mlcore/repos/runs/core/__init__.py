"""The run item, its child items, and every write of a run."""
