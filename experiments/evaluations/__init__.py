"""What a frozen agent is worth on held-out lives; the verb `evaluate` asks.

`request` reads the words; `conditions` says what is done to a memory; `living` lives and writes the
tables; `frozen_lives` is one crowd of frozen copies; `measures` and `findings` read the tables;
`page`, `report` and `figures` show them; `beside` evaluates while an agent still learns.
"""
