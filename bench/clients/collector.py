#!/usr/bin/env python3
"""Makes an option chain for `strikecache serve --source folder` from CSV files of bulk snapshots.

The columns are those of Theta Data's terminal, which writes CSV for these requests,
the first two of which are needed:

  version 2   /v2/bulk_snapshot/option/ and quote, open_interest, ohlc or greeks, with use_csv=true: root, expiration as
              20261218, strike in tenths of a cent, right as C or P, ms_of_day and date
  version 3   /v3/option/snapshot/ and quote, open_interest, ohlc or greeks/first_order, with format=csv: symbol,
              expiration as 2026-12-18, strike in dollars, right as call or put, timestamp

The header of each file says which version and which of the four it is. Other columns are not read. For an index, give the
files of all its roots, such as SPX and SPXW. Only contracts with a quote are written. A contract without an open interest
has none. The time of an ohlc row is taken as that of the last trade. An ohlc row of another day than the price is left out.

  collector.py --symbol SPX --price 7564.34 folder quote.csv open_interest.csv ohlc.csv

The chain replaces folder/options/_SPX.json when it is complete. If anything is wrong, nothing is written, and the exit code
is 1. Needs Python 3.9 or newer. `strikecache check folder/options/_SPX.json` says what a server makes of the chain.
"""

import argparse
import csv
import json
import math
import os
import re
import sys
import tempfile
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

ROOTS = {"SPX": ("SPX", "SPXW"), "XSP": ("XSP",), "NDX": ("NDX", "NDXP"), "RUT": ("RUT", "RUTW"), "VIX": ("VIX", "VIXW")}  # of indices


class Unusable(Exception):
    """What is wrong, and where."""


class Row:
    """A line of a CSV file whose errors name the file, the line and the column."""

    def __init__(self, path, line, cells):
        self.path, self.line, self.cells = path, line, cells

    def wrong(self, column, why):
        return Unusable(f"{self.path} line {self.line} column {column}: {self.cells.get(column)!r} {why}")

    def text(self, column):
        value = (self.cells.get(column) or "").strip()
        if not value:
            raise self.wrong(column, "is empty")
        return value

    def number(self, column, least=0):
        try:
            value = float(self.text(column))
        except ValueError:
            raise self.wrong(column, "is not a number") from None
        if not (math.isfinite(value) and value >= least):
            raise self.wrong(column, f"is not a number from {least}")
        return value

    def day(self, column):
        text = self.text(column)
        try:
            return date.fromisoformat(re.sub(r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3", text))
        except ValueError:
            raise self.wrong(column, "is not a date such as 20261218 or 2026-12-18") from None

    def version(self):
        return 2 if "root" in self.cells else 3

    def time(self):
        """Returns New York time without a zone."""
        if self.version() == 2:
            text = self.text("ms_of_day")
            if text.isdigit() and int(text) < 86_400_000:
                return datetime.combine(self.day("date"), datetime.min.time()) + timedelta(milliseconds=int(text))
            column, text = "ms_of_day", f"{self.day('date')}T{text}"
        else:
            column, text = "timestamp", self.text("timestamp")
        try:
            return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")
        except ValueError:
            raise self.wrong(column, "is not a time such as 2026-11-20T15:59:56.123") from None

    def contract(self, roots):
        """Returns the OCC symbol."""
        column, unit = ("root", 1) if self.version() == 2 else ("symbol", 1000)
        root = self.text(column).upper()
        if root not in roots:
            raise self.wrong(column, f"is none of {', '.join(roots)}")
        right = self.text("right").upper()[:1]
        if right not in ("C", "P"):
            raise self.wrong("right", "is neither C, P, call nor put")
        thousandths = self.number("strike") * unit  # a tenth of a cent is a thousandth of a dollar
        if abs(thousandths - round(thousandths)) > 1e-6 or not 0 < thousandths < 1e8:
            raise self.wrong("strike", "is no strike in tenths of a cent" if unit == 1 else "is no strike in dollars")
        return f"{root}{self.day('expiration'):%y%m%d}{right}{round(thousandths):08d}"


KINDS = {"greeks": ("delta", "implied_vol"), "quote": ("bid", "ask"), "ohlc": ("close", "volume"), "open interest": ("open_interest",)}  # and their columns


def read(path):
    """Returns the kind of a file, and its rows."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = csv.reader(file, strict=True)
        header = [name.strip() for name in next(lines, [])]
        kind = next((k for k, columns in KINDS.items() if all(c in header for c in columns)), None)
        if kind is None:
            raise Unusable(f"{path} line 1: has the columns of no quote (bid, ask), open_interest, ohlc (close, volume) or greeks (delta, implied_vol)")
        clock = ("root", "ms_of_day", "date") if "root" in header else ("symbol", "timestamp")
        for column in ("expiration", "strike", "right") + clock:
            if column not in header:
                raise Unusable(f"{path} line 1: has no column {column}: ask version 2 with use_csv=true, or version 3 with format=csv")
        rows = []
        try:
            for cells in lines:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise Unusable(f"{path} line {lines.line_num}: has {len(cells)} columns, the header {len(header)}: was the file cut off?")
                rows.append(Row(path, lines.line_num, dict(zip(header, cells))))
        except csv.Error as error:
            raise Unusable(f"{path} line {lines.line_num}: {error}") from None
    return kind, rows


def chain(symbol, price, price_at, made, files):
    """Returns the chain document."""
    roots = ROOTS.get(symbol, (symbol,))
    found = {kind: {} for kind in KINDS}
    for path in files:
        kind, rows = read(path)
        for row in rows:
            found[kind][row.contract(roots)] = row
    for kind in ("quote", "open interest"):
        if not found[kind]:
            raise Unusable(f"no row of {kind} in {', '.join(files)}: without it there is no gamma")
    quotes = found["quote"]
    price_at = price_at or max(row.time() for row in quotes.values())
    options = []
    for contract in sorted(quotes):
        row = quotes[contract]
        interest, traded, greeks = (found[kind].get(contract) for kind in ("open interest", "ohlc", "greeks"))
        option = {
            "option": contract, "bid": row.number("bid"), "ask": row.number("ask"),
            "open_interest": interest.number("open_interest") if interest else 0.0,
            "volume": 0.0, "last_trade_price": 0.0, "last_trade_time": None,
        }
        if traded and traded.number("volume") > 0 and traded.time().date() == price_at.date():
            option.update(volume=traded.number("volume"), last_trade_price=traded.number("close"),
                          last_trade_time=traded.time().strftime("%Y-%m-%dT%H:%M:%S"))
        if greeks:
            option.update(iv=greeks.number("implied_vol"), delta=greeks.number("delta", -1))
        options.append(option)
    return {
        "timestamp": made.strftime("%Y-%m-%d %H:%M:%S"),
        "data": {"symbol": symbol, "current_price": price, "last_trade_time": price_at.strftime("%Y-%m-%dT%H:%M:%S"), "options": options},
    }


def write(path, document):
    """Writes a file under another name, and renames it: whoever reads path gets a whole document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            json.dump(document, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # the server may be another user
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def price_of(text):
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError
    return value


def symbol_of(text):
    if not re.fullmatch(r"[A-Z]{1,6}", text):
        raise ValueError
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symbol", required=True, type=symbol_of, help="the underlying, such as SPX or AAPL")
    parser.add_argument("--price", required=True, type=price_of, help="its price")
    parser.add_argument("--price-at", type=datetime.fromisoformat, metavar="TIME",
                        help="New York time of the price, such as 2026-11-20T15:44:52; default: that of the newest quote")
    parser.add_argument("--made", type=datetime.fromisoformat, metavar="TIME", help="UTC time at which the snapshots were made; default: now")
    parser.add_argument("folder", help="the folder of `strikecache serve --folder`")
    parser.add_argument("csv", nargs="+", help="files of bulk snapshots: quote, open_interest, ohlc and greeks, of every root")
    args = parser.parse_args()
    for flag, time in (("--price-at", args.price_at), ("--made", args.made)):
        if time and time.tzinfo and (flag == "--price-at" or time.utcoffset()):
            parser.error(f"{flag}: write the time without an offset: {'New York time' if flag == '--price-at' else 'UTC'}")
    name = ("_" if args.symbol in ROOTS else "") + args.symbol
    path = Path(args.folder, "options", name + ".json")
    try:
        document = chain(args.symbol, args.price, args.price_at, args.made or datetime.now(timezone.utc), args.csv)
        write(path, document)
    except (Unusable, OSError, UnicodeDecodeError) as error:
        print(f"collector.py: {error}", file=sys.stderr)
        return 1
    print(f"{path}: {len(document['data']['options'])} contracts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
