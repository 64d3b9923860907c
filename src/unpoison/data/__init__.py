"""Reading labelled training sets that nobody can vouch for, and writing back the part that is kept.

``unpoison.data.load.load`` reads, ``unpoison.data.verify.check_clean`` checks what was written,
``unpoison.data.container.Dataset`` is what travels in between. Nothing is imported here, so that the
container stays cheap to import.

The data is the attacker's: no pickle is ever loaded, no path or link leads out of the source, sizes are
checked before memory is taken, and what cannot be used is refused with an ``InputError``.
"""
