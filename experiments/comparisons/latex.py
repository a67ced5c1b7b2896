"""Tables for a paper: LaTeX with the rules of booktabs."""

from __future__ import annotations

from collections.abc import Sequence

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def latex_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """A tabular with the first column to the left and the others to the right; notes as comments.

    Needs the package booktabs.
    """
    columns = "l" + "r" * (len(header) - 1)
    lines = [f"% {' '.join(note.splitlines())}" for note in notes]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _row(header), r"\midrule"]
    lines += [_row(row) for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text in which no character has a meaning to LaTeX."""
    return "".join(SPECIAL.get(character, character) for character in text)


def _row(cells: Sequence[str]) -> str:
    return " & ".join(escaped(cell) for cell in cells) + r" \\"
