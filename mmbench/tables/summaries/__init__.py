"""What the many fits and selections behind a cell come to together."""
