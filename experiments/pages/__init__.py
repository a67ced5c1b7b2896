"""Pages for a browser: one file that needs no network, its charts drawn here as SVG.

`page` puts the sections together; `chart` draws a panel; `markup` writes tables and tags.
"""
