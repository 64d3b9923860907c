"""Evaluation: experiments that know the truth, and what they measure."""
