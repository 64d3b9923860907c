"""The paper's statements as code that could find them wrong (docs/theory.md)."""
