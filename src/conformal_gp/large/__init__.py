"""Rows that do not fit in memory: memory maps and Dask collections."""
