"""Pages for a browser: one file that needs no network, its charts drawn here as SVG.

`document` puts sections together, `page` those of a comparison; `chart` draws a panel, `heat` a
heat map; `markup` writes tables and tags.
"""
