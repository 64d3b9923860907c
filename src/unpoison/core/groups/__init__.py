"""Ours: propose groups that stand apart, withhold them from judges, and see whether they still do."""
