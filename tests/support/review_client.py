"""A review's server in a thread, and a client that asks it as its page does."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bindbench.review.serving import server_of

PRESS = "0123456789abcdef" * 2


class Client:
    def __init__(self, server):
        self.address, self.token = server.server_address, server.token

    def ask(self, method, path, body=None, token=True):
        connection = http.client.HTTPConnection(*self.address, timeout=10)
        headers = {"X-Review-Token": self.token} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body and json.dumps(body), headers)
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


@contextmanager
def serving(review) -> Iterator[Client]:
    server = server_of(review)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Client(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
