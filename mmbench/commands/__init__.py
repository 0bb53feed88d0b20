"""The commands as functions, one file per command or group of commands."""
