"""LaTeX tables hold what they are given, and nothing in it is read as a command."""

from sojourn.experiments.comparisons.latex import escaped, latex_table


def test_a_table_has_the_rules_of_booktabs() -> None:
    text = latex_table(["group", "n"], [["delta_net", "3"], ["a & b", "50 %"]], ["a\nnote"])
    assert text.splitlines() == [
        "% a note",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"group & n \\",
        r"\midrule",
        r"delta\_net & 3 \\",
        r"a \& b & 50 \% \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_every_special_character_is_escaped_once() -> None:
    assert escaped(r"\_{}") == r"\textbackslash{}\_\{\}"
    assert escaped("a < b > $5 #1 ~ ^") == (
        r"a \textless{} b \textgreater{} \$5 \#1 \textasciitilde{} \textasciicircum{}"
    )
