"""What the embedded annotation measures of a photograph, by what is looked at; measuring.py puts it together."""
