"""Moving pictures of a life; the verb `record` makes them.

`request` reads the words; `camera` watches the environments of a stream; `film` lives a lifetime
and keeps what is to be seen; `frames` draws it; `movie` writes MP4.
"""
