"""Metric cards as data: what every number is, in what unit, against what, and what it hides."""
