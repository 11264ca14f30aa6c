"""Packs metric history (rewrites the items of single log requests as larger ones), and completes
log requests that were interrupted."""
