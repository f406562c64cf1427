"""What `python -m bindbench store` and `estimate` do. Each function prints to standard output."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ..config.services import Services
from ..errors import UserError
from ..files import progress
from .accounts import damaged_usd, uncertain
from .batches import open_batches
from .buying import estimate
from .requests import Request
from .store import Store, export_store, import_store, store_folder


def show_store(settings: Services, entries: bool = False) -> None:
    """What was bought and spent, by service, model and stage. entries: a line for each entry before that."""
    store = Store(store_folder(settings))
    print(store.root)
    groups: dict[tuple[str, str, str], list] = defaultdict(lambda: [0, 0, 0.0, 0])
    costs = []
    for header in store.headers():
        costs.append(header["cost_usd"])
        if entries:
            print(
                f"{header['key'][:16]}  {header['created']}  {header['service']} {header['model']}  "
                f"{header['stage'] or '-'}  {header['size']} bytes  ${header['cost_usd']:.4f}  {header['status']}"
                f"{': ' + header['reason'] if header['reason'] else ''}"
            )
        group = groups[header["service"], header["model"], header["stage"] or "-"]
        group[0] += header["status"] == "answer"
        group[1] += header["status"] == "reject"
        group[2] += header["cost_usd"]
        group[3] += header["size"]
    rows = [
        (*names, answers, rejects, f"${cost:.4f}", f"{size / 1e6:.1f}")
        for names, (answers, rejects, cost, size) in sorted(groups.items())
    ]
    _print_table(("service", "model", "stage", "answers", "rejects", "spent", "MB"), rows)
    lost = uncertain(store)
    total = sum(group[2] for group in groups.values())
    if lost:
        expected = sum(line.get("expected_usd", 0.0) for line in lost)
        total += expected
        print(
            f"{len(lost)} requests may have been paid without an answer (lost connection, timeout or killed courier): "
            f"about ${expected:.4f}, counted as spent"
        )
    damaged = damaged_usd(store, costs)
    if damaged:
        total += sum(damaged)
        print(f"{_damaged_line(store)}, about ${sum(damaged):.4f}, counted as spent")
    for batch in open_batches(store):
        print(
            f"open batch {batch.remote or batch.name} of {batch.model}: {len(batch.keys)} requests, "
            f"about ${batch.expected_usd:.4f}"
        )
    print(f"spent ${total:.4f} of the budget of ${settings.budget_usd:.2f}")


def verify_store(settings: Services) -> None:
    """Hashes every entry; damaged ones are moved away and will be asked for again. Raises UserError when there were any."""
    store = Store(store_folder(settings))
    keys = list(store.every_key())
    good = sum(store.verify(key) is not None for key in progress(keys, "verifying", unit="entries"))
    print(f"{good} of {len(keys)} entries are good")
    if store.damaged():
        print(f"{_damaged_line(store)}; their cost counts as spent")
    if good < len(keys):
        raise UserError(
            f"{len(keys) - good} damaged entries were moved to {store.root / 'damaged'}; they will be asked for again"
        )


def _damaged_line(store: Store) -> str:
    return f"{len(store.damaged())} damaged entries lie in {store.root / 'damaged'}"


def export_to(settings: Services, path: Path, services: Iterable[str] = (), stages: Iterable[str] = ()) -> None:
    """A tar with the entries of some services and stages, all when none are named."""
    count = export_store(Store(store_folder(settings)), path, services, stages)
    print(f"{count} entries written to {path}")


def import_from(settings: Services, path: Path) -> None:
    """Takes over the entries of an export. Raises UserError when some were damaged."""
    counts = import_store(Store(store_folder(settings)), path)
    print(f"{counts.added} entries added, {counts.held} were here already")
    if counts.refused:
        raise UserError(f"{path}: {counts.refused} members are damaged or no entries; they were left out")


def show_estimate(requests: Iterable[Request], settings: Services) -> None:
    """Requests, tokens and price before anything is bought."""
    total = estimate(progress(requests, "estimate", unit="request"), settings)
    tokens = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in total.tokens.items() if count) or "none"
    print(f"requests     {total.requests:,}, of which the store holds {total.held:,}")
    print(f"tokens       {tokens}")
    print(f"price        about ${total.price_usd:.2f}{' as batches' if settings.mode == 'batch' else ''}")
    print(f"budget       ${total.budget_usd:.2f}, of which ${total.spent_usd:.2f} are spent")
    if not total.fits:
        print(f"             too small: services.budget_usd must be at least {total.spent_usd + total.price_usd:.2f}")


def _print_table(header: tuple, rows: list[tuple]) -> None:
    table = [tuple(map(str, row)) for row in (header, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
