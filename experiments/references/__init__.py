"""Declared returns of players that need no training; the verb `reference` measures them.

`request` reads the words; `play` plays.
"""
