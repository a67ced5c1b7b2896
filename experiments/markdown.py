"""Tables on a page."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], num_texts: int = 1) -> str:
    """A Markdown table; after `num_texts` columns numbers follow, at the right."""
    rule = ["---" if column < num_texts else "--:" for column in range(len(header))]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in (header, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (cells[0], rule, *cells[1:]))
