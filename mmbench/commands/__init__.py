"""The functions of the commands, with one file per command or group of commands."""
