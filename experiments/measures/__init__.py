"""Measures of lives as pure functions of tables: what was lost, carried over and forgotten.

Everything here takes columns and gives numbers; nothing reads a file, lives a life or draws a
figure. Regret itself is defined in `sojourn.envs`.
"""
