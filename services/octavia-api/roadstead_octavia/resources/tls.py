"""Rules of TLS settings that listeners and pools share."""

import re
from collections.abc import Sequence

from roadstead_octavia.errors import invalid
from roadstead_octavia.options import Options

VERSIONS = ("SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
CIPHERS = re.compile(r"[A-Za-z0-9\-+!:@=_.]+")


def check_ciphers(ciphers: str | None, options: Options) -> None:
    """400 for characters that no cipher has, and for ciphers that operators prohibit."""
    if ciphers is None:
        return
    if CIPHERS.fullmatch(ciphers) is None:
        raise invalid(
            "Invalid characters in cipher string. Only alphanumeric, -, +, !, :, @, =, _, and . are allowed."
        )
    prohibited = options.tls_cipher_prohibit_list.split(":")
    if refused := [cipher for cipher in ciphers.split(":") if cipher and cipher in prohibited]:
        raise invalid(f"The following ciphers have been prohibited by an administrator: {', '.join(refused)}")


def check_versions(versions: Sequence[str] | None, options: Options) -> None:
    """400 for no version, unknown ones, and those below the deployment's minimum."""
    if versions is None:
        return
    if not versions:
        raise invalid(
            "Empty TLS version list. Either specify at least one TLS version or remove this parameter to use the default."
        )
    if unknown := [version for version in versions if version not in VERSIONS]:
        raise invalid(f"Invalid TLS versions: {', '.join(unknown)}")
    if options.minimum_tls_version:
        lowest = VERSIONS.index(options.minimum_tls_version)
        if low := [version for version in versions if VERSIONS.index(version) < lowest]:
            raise invalid(
                f"Requested TLS versions are less than the minimum: {', '.join(low)} < {options.minimum_tls_version}"
            )


def check_alpn(protocols: Sequence[str] | None) -> None:
    """400 for an empty list."""
    if protocols is not None and not protocols:
        raise invalid(
            "Empty ALPN protocol list. Either specify at least one ALPN protocol or remove this parameter to use the default."
        )
