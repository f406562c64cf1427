"""A review's server in a thread, and a client that asks it as its page does."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bindbench.review.serving import server_of

PRESS = "0123456789abcdef" * 2


class Client:
    """Asks as the page does, unless a test says otherwise."""

    def __init__(self, server):
        self.server = server
        self.port = server.server_address[1]
        self.address, self.token = server.url.split("#")

    def ask(self, method, path, body=None, token=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if token is not False:
            headers["X-Review-Token"] = self.token if token is None else token
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response, data

    def get(self, path):
        response, data = self.ask("GET", path)
        assert response.status == 200, data
        return json.loads(data)

    def press(self, *items, press=PRESS, **more):
        response, data = self.ask("POST", "/presses", {"press": press, "verdicts": list(items), **more})
        return response.status, json.loads(data)

    def undo(self, press, undoes):
        response, data = self.ask("POST", "/presses", {"press": press, "undoes": undoes})
        return response.status, json.loads(data)


@contextmanager
def serving(review, **more) -> Iterator[Client]:
    """more: of the server, such as its port."""
    server = server_of(review, **more)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Client(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
