"""Defenses behind one protocol: ours, the published ones it is compared with, and the controls.

A defense sees labels and a learner factory. What was planted is known to ``attacks`` and ``evaluation`` only.
"""
