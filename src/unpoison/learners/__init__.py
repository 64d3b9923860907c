"""Learners: the only place that knows a machine-learning framework."""
