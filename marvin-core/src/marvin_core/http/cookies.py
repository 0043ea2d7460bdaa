"""The client of model services: it looks for cookies only in responses that have some, which are few."""

from __future__ import annotations

from typing import Any

import httpx


class _Cookies(httpx.Cookies):
    """Cookies of responses, without the requests and responses in the form of another library that httpx makes."""

    has_any = False

    def extract_cookies(self, response: httpx.Response) -> None:
        if "set-cookie" in response.headers:
            super().extract_cookies(response)
            self.has_any = True

    def __bool__(self) -> bool:
        return self.has_any and super().__bool__()


class ModelClient(httpx.AsyncClient):
    """A client that sends the cookies of a service back to it: some gateways find a conversation's server by them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._seen = _Cookies()

    @property
    def cookies(self) -> httpx.Cookies:
        """The cookies of earlier responses."""
        return self._seen

    @cookies.setter
    def cookies(self, cookies: Any) -> None:
        raise AttributeError("only responses set cookies")
