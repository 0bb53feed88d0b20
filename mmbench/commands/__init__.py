"""What each command does; the only floor that knows everything below the command line."""
