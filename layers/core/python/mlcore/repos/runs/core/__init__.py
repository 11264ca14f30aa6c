"""The run item, its child items, and the API's writes of runs."""
