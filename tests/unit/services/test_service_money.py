"""Prices, accounts and what the commands tell."""

import os

import pytest
from bindbench.config import check
from bindbench.config.services import DEFAULT_PRICES, Services
from bindbench.errors import UserError
from bindbench.services import commands
from bindbench.services.accounts import Journal, add_uncertain, intent, recover_journals, spent_usd
from bindbench.services.buying import answers
from bindbench.services.prices import cost, expected_cost, expected_tokens, tokens_used
from bindbench.services.requests import InputImage, Request
from bindbench.services.store import Store, make_header
from service_requests import gemini_picture, pictures, question, wait_until

pytestmark = pytest.mark.usefixtures("courier_thread")


def test_the_paper_s_image_costs_what_the_price_list_says():
    """gpt-image-2, 1024x1024, medium: about 5.3 cents, half of it as a batch."""
    request = Request(
        "image_generation", "gpt-image-2", {"prompt": "x" * 400, "size": "1024x1024", "quality": "medium"}
    )
    assert expected_cost(request, Services()) == pytest.approx(0.053, abs=0.002)
    assert expected_cost(request, Services(), batch=True) == pytest.approx(0.0265, abs=0.001)


def test_cost_counts_each_kind_of_token_at_its_price():
    price = DEFAULT_PRICES["gpt-image-2"]
    tokens = {"input_text": 1_000_000, "input_image": 1_000_000, "output_text": 1_000_000, "output_image": 1_000_000}
    assert cost(tokens, price) == 5 + 8 + 10 + 30
    assert cost(tokens, price, batch=True) == 26.5
    assert cost({}, price) == 0


def test_expected_tokens_use_the_request_s_own_limits():
    price = DEFAULT_PRICES["gemini-3-pro-image"]
    assert expected_tokens(gemini_picture(), price)["output_image"] == 1120
    limited = Request("chat", "m", {"messages": [], "max_completion_tokens": 77})
    assert expected_tokens(limited, price)["output_text"] == 77
    assert expected_tokens(question(), price)["output_text"] == price.tokens_per_answer
    gemini = Request("gemini_content", "m", {"contents": "x", "config": {"max_output_tokens": 55}})
    assert expected_tokens(gemini, price)["output_text"] == 55
    edit = Request("image_edit", "m", {"prompt": "x"}, (InputImage("a", "0" * 64),) * 2)
    assert expected_tokens(edit, price)["input_image"] == 3000


def test_an_image_of_unknown_size_is_expected_to_be_dear():
    request = Request("image_generation", "gpt-image-2", {"prompt": "x", "size": "auto", "quality": "auto"})
    table = DEFAULT_PRICES["gpt-image-2"].image_tokens
    assert expected_tokens(request, DEFAULT_PRICES["gpt-image-2"])["output_image"] == max(table.values())


@pytest.mark.parametrize(
    ("service", "usage", "counts"),
    [
        ("openai", {"input_tokens": 10, "output_tokens": 20}, (10, 0, 0, 20)),
        ("openai", {"input_tokens_details": {"text_tokens": 1, "image_tokens": 2}, "output_tokens": 3}, (1, 2, 0, 3)),
        ("openai", {"output_tokens_details": {"text_tokens": 4, "image_tokens": 5}}, (0, 0, 4, 5)),
        ("openai", {"prompt_tokens": 7, "completion_tokens": 8}, (7, 0, 8, 0)),
        ("gemini", {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}, (9, 0, 5, 0)),
        (
            "gemini",
            {
                "promptTokenCount": 268,
                "promptTokensDetails": [{"modality": "IMAGE", "tokenCount": 258}],
                "candidatesTokenCount": 1130,
                "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1120}],
            },
            (10, 258, 10, 1120),
        ),
        ("openai", {"input_tokens": None, "output_tokens": "many"}, (0, 0, 0, 0)),
    ],
)
def test_token_counts_of_both_services_in_one_spelling(service, usage, counts):
    assert tuple(tokens_used(service, usage).values()) == counts


@pytest.mark.parametrize("usage", [None, [], "none"])
def test_an_answer_without_usage_is_told_from_one_that_cost_nothing(usage):
    assert tokens_used("openai", usage) == {}


def test_a_given_price_changes_single_keys():
    config = check({"services": {"prices": {"gpt-image-2": {"output_image": 60}, "mine": {}}}})
    prices = config.services.prices
    assert prices["gpt-image-2"].output_image == 60 and prices["gpt-image-2"].input_text == 5
    assert prices["gemini-3-pro-image"] == DEFAULT_PRICES["gemini-3-pro-image"] and prices["mine"].input_text == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"budget_usd": -1}, "services.budget_usd: must be >= 0"),
        ({"concurrency": 0}, "services.concurrency: must be >= 1"),
        ({"mode": "later"}, "services.mode: must be one of"),
        ({"api_key": "sk-1"}, "services.api_key: unknown key"),
        ({"openai_base_url": "localhost"}, "services.openai_base_url"),
        ({"prices": {"m": {"input": 1}}}, "services.prices.m.input: unknown key"),
    ],
)
def test_faults_of_the_section_are_one_line(values, message):
    with pytest.raises(UserError, match=message):
        check({"services": values})


def test_spending_counts_entries_and_what_may_have_been_paid(settings):
    list(answers(pictures(2), settings))
    store = Store(settings.store)
    before = spent_usd(store)
    assert before == pytest.approx(0.06, abs=0.001)
    add_uncertain(store, [intent(pictures(9)[8], 0.5)])
    assert spent_usd(store) == pytest.approx(before + 0.5)


@pytest.mark.parametrize("where", ["header", "payload", "cost", "folder"])
def test_what_was_paid_for_a_damaged_entry_stays_spent(settings, capsys, where):
    list(answers(pictures(3), settings))
    store = Store(settings.store)
    before = spent_usd(store)
    path = store.path(pictures(1)[0].key)
    data = bytearray(path.read_bytes())
    place = {"header": data.index(b"picture"), "payload": -1, "cost": data.index(b'"cost_usd"') + 3, "folder": 0}
    data[place[where]] ^= 1
    path.write_bytes(data)
    if where == "folder":
        path.unlink()
        path.mkdir()
    store.verify(pictures(1)[0].key)
    assert spent_usd(store) == pytest.approx(before)  # three pictures of one price: the mean is right as well
    assert len(store.damaged()) == 1
    list(answers(pictures(3), settings))
    assert spent_usd(store) == pytest.approx(before * 4 / 3)
    capsys.readouterr()
    commands.show_store(settings)
    out = capsys.readouterr().out
    assert "1 damaged entries lie in" in out and f"spent ${before * 4 / 3:.4f} of" in out
    commands.verify_store(settings)
    assert "1 damaged entries lie in" in capsys.readouterr().out


def test_the_only_entry_with_a_flipped_byte_stays_spent(tmp_path):
    store, request = Store(tmp_path), pictures(1)[0]
    store.put(
        make_header(
            request,
            b"x",
            status="answer",
            content_type="image/png",
            tokens={},
            cost_usd=5.0,
            cost_from="usage",
        ),
        b"x",
    )
    data = bytearray(store.path(request.key).read_bytes())
    data[30] ^= 1
    store.path(request.key).write_bytes(data)
    assert spent_usd(store) == 5.0


def test_a_journal_cut_in_its_last_line_is_read(tmp_path):
    store = Store(tmp_path)
    journal = Journal(store)
    journal.sent([intent(request, 0.03) for request in pictures(2)])
    with journal.path.open("ab") as file:
        file.write(b'{"sent": "abc')
    assert recover_journals(store) == 2
    assert list((tmp_path / "journal").iterdir()) == []


def test_commands_tell_what_was_bought_and_spent(server, settings, capsys):
    server.faults({"fault": "status", "status": 400, "code": "moderation_blocked", "match": "picture 1"})
    list(answers([*pictures(3, stage="scenes"), gemini_picture(stage="references")], settings))
    store = Store(settings.store)
    add_uncertain(store, [intent(pictures(9)[8], 0.5)])
    capsys.readouterr()
    commands.show_store(settings, entries=True)
    out = capsys.readouterr().out.splitlines()
    rows = {row.split()[2]: row.split() for row in out if len(row.split()) == 7 and row.split()[2] != "stage"}
    assert rows["scenes"][:6] == ["openai", "gpt-image-2", "scenes", "2", "1", "$0.0601"]
    assert rows["references"][:5] == ["gemini", "gemini-3-pro-image", "references", "1", "0"]
    assert any("reject: moderation" in line for line in out)
    assert "1 requests may have been paid without an answer" in "".join(out)
    assert out[-1].endswith("of the budget of $10.00")
    commands.verify_store(settings)
    assert "4 of 4 entries are good" in capsys.readouterr().out


def test_commands_export_import_and_verify(settings, tmp_path, capsys):
    list(answers(pictures(3, stage="scenes"), settings))
    commands.export_to(settings, tmp_path / "out.tar", stages=["scenes"])
    other = settings.model_copy(update={"store": str(tmp_path / "other")})
    commands.import_from(other, tmp_path / "out.tar")
    assert "3 entries added, 0 were here already" in capsys.readouterr().out
    store = Store(other.store)
    path = store.path(next(store.every_key()))
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(UserError, match="1 damaged entries were moved"):
        commands.verify_store(other)


def test_estimate_is_told_before_anything_is_bought(server, settings, capsys):
    commands.show_estimate(pictures(1000), settings.model_copy(update={"mode": "batch"}))
    out, told = capsys.readouterr()
    assert "estimate: 100%" in told and "1000/1000" in told
    assert "1,000, of which the store holds 0" in out and "1,000,000 output image" in out
    assert "about $15" in out and "as batches" in out
    assert "too small: services.budget_usd must be at least 15" in out
    assert server.counts() == []


def test_an_answer_waits_for_a_full_disk(server, settings, monkeypatch):
    """The run is told to stop; what was paid for is stored as soon as there is room."""
    real, full = Store.put, [3]

    def put(self, header, payload):
        if full[0]:
            full[0] -= 1
            raise OSError(28, os.strerror(28))
        real(self, header, payload)

    monkeypatch.setattr(Store, "put", put)
    server.faults({"fault": "delay", "seconds": 0.3, "times": 99})
    with pytest.raises(UserError, match="the store cannot be written \\(No space left on device\\)"):
        list(answers(pictures(20), settings.model_copy(update={"concurrency": 2})))
    assert len(server.counts()) == 2
    wait_until(lambda: len(list(Store(settings.store).every_key())) == 2)
    assert len(list(answers(pictures(20), settings))) == 20
    assert server.counts() == [1] * 20
