"""Turns a suite into trials in fresh worker processes, and their results into one run record."""
