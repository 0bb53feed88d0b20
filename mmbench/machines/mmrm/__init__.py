"""The max-margin ratio machine."""
