"""The datasets of the paper by name: where they come from, how they are fetched once, and how they are read.

``catalog`` says what there is, ``fetch.fetch`` brings it into the cache, ``load.load_split`` reads it from
there, ``cache.check`` says whether it is still what was fetched.
"""
