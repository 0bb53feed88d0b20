"""Functions behind the commands of the command line, with one file per command or group of
commands.
"""
