"""Runners: the same tasks on this process or on several, with the same results."""
