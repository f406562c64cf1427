"""Errors that are the user's to mend: shown as one line without a traceback, exit code 2."""


class UserError(Exception):
    """Something in the config, the inputs or the environment is wrong; the message says what, where and what to do."""
