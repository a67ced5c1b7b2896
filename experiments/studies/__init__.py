"""Studies: many training runs as one thing, settings x seeds; the verb `study` runs them.

`plan` turns words into members; `member` is one run and the row file it leaves; `runner` runs them
side by side; `rows` is the table over all members.
"""
