"""Attacks: the poison that a defense is tried on. Ground truth lives here and in ``evaluation`` only."""
