"""Endless lives of agents that keep learning in deployment; the verb `live` begins one.

`request` reads the words, `settings` those of a life; `parts` builds learner, twin and guard;
`life` lives them; `tables` and `bounded_table` write in bounded space.
"""
