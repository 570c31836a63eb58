"""How the bus fails, as its callers see it.  Light: imported by code that never meets a broker."""


class PublishFailed(Exception):
    """The broker did not acknowledge; whether it stored the message is unknown.  `conflict`: a compare-and-set lost."""

    def __init__(self, text: str, *, conflict: bool = False) -> None:
        super().__init__(text)
        self.conflict = conflict


class RequestFailed(Exception):
    """No answer within the deadline: unknown whether it was done; such requests are safe to repeat."""


class BusRefused(RuntimeError):
    """The broker turned us away, and would again: wrong credentials, or a setting that it does not take."""


class ConsumerGone(RuntimeError):
    """The server has no such consumer (any more): it must be made again before anything can be read."""
