"""``python -m unpoison``: the same as the program ``unpoison``."""

from unpoison.cli.app import main

if __name__ == "__main__":
    main()
