"""Fixtures of every test that buys from the local server: the server, keys that must show up nowhere, settings, couriers."""

import os
import signal
import threading

import pytest
from bindbench.config.services import Services
from fake_services import FakeServices
from service_requests import GEMINI_KEY, OPENAI_KEY, SEEDREAM_KEY, courier_of


@pytest.fixture(scope="session")
def only_server():
    """One for the whole session: starting it takes longer than most tests."""
    with FakeServices() as server:
        yield server


@pytest.fixture
def keys(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
    monkeypatch.setenv("GEMINI_API_KEY", GEMINI_KEY)
    monkeypatch.setenv("SEEDREAM_API_KEY", SEEDREAM_KEY)
    for name in ("GOOGLE_API_KEY", "ARK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("BINDBENCH_STORE", raising=False)


@pytest.fixture
def server(only_server, keys):
    only_server.reset()
    return only_server


@pytest.fixture
def settings(server, tmp_path):
    """Settings with a store of the test's own; a courier that it leaves behind is ended, by its own id."""
    yield Services(
        store=str(tmp_path / "store"),
        openai_base_url=f"{server.url}/v1",
        gemini_base_url=server.url,
        seedream_base_url=f"{server.url}/api/v3",
        backoff_s=0.02,
        backoff_limit_s=0.1,
        batch_poll_s=0.05,
        max_retries=4,
        read_timeout_s=5,
        prices={
            "gpt-image-2": {"image_tokens": {"default": 1000}},
            "chatty": {"input_text": 1, "output_text": 2},
            "gemma-4-31b-it": {},
        },
    )
    for record in tmp_path.rglob("courier.json"):
        if pid := courier_of(record.parent):
            os.kill(pid, signal.SIGKILL)


class ThreadedCourier(threading.Thread):
    """The courier in a thread of this process: the same code and clients without a new interpreter for each test."""

    def __init__(self, store, settings):
        from bindbench.services import courier

        super().__init__(target=courier.serve, args=(str(store.root), settings.model_dump_json()))
        self.start()

    def poll(self):
        return None if self.is_alive() else 0


@pytest.fixture
def courier_thread(request, monkeypatch):
    """Unless a test is about the process itself (and uses courier_process)."""
    from bindbench.services import buying, courier

    if "courier_process" in request.fixturenames:
        yield
        return
    started = []
    monkeypatch.setattr(courier, "IDLE_S", 0.1)
    monkeypatch.setattr(buying, "start_courier", lambda *about: started.append(ThreadedCourier(*about)) or started[-1])
    yield
    for thread in started:
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def courier_process():
    """The courier as it is: a process of its own."""
