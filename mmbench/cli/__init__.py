"""The command line: commands, options and exit codes; no logic."""

from mmbench.cli.app import app


def main() -> None:
    """Run the command line."""
    app()


__all__ = ["app", "main"]
