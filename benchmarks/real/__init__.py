"""Intervals on real regression tables, ours beside what a user would take instead."""
