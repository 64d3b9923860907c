"""The command line: one file a command. Results go to stdout, progress and errors to stderr."""
