"""Curves, bands and heat maps, drawn from tables.

`panels` says what is to be seen, before anything draws it; `axes`, `grids` and `figures` draw it
with Matplotlib, and `pages` beside this folder in a browser.
"""
