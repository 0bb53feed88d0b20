"""Functions that implement the commands, one file per command or group of commands."""
