"""URLs that clients may redirect to, and paths that a monitor may ask for."""

import pytest

from roadstead_octavia.wire.url import is_path, is_url


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com",
        "https://user@example.com:8443/a/b?c=d#e",
        "http://[2001:db8::1]:80/",
        "http://[fe80::1%25eth0]/",
        "http://192.0.2.1/%20",
        "http://h/{id}",
    ],
)
def test_a_url_has_a_scheme_and_a_host(text: str) -> None:
    assert is_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bad url",
        "example.com",
        "//example.com/",
        "ftp://example.com",
        "HTTP://example.com",
        "http:///a",
        "http://",
        "http://a b/",
        "http://a\n/",
        "http://[2001:db8::1/",
        "http://[x]/",
        "http://h:123456/",
        "http://h:x/",
        "http://h/[a]",
        "http://é/",
        "http://%zz/",
    ],
)
def test_anything_else_is_no_url(text: str) -> None:
    assert not is_url(text)


@pytest.mark.parametrize("text", ["/", "/a/b?c=d#e", "/é", "/a:b", "/%zz", "///a"])
def test_a_path_is_absolute(text: str) -> None:
    assert is_path(text)


@pytest.mark.parametrize("text", ["", "a", "//host/a", "http://h/a", "/a b", "/a\n", "/[", "?a", "a:/b"])
def test_anything_else_is_no_path(text: str) -> None:
    assert not is_path(text)
