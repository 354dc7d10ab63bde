#!/usr/bin/env python3
"""Makes an option chain for `strikecache serve --source folder` from CSV files of bulk snapshots, or a folder for
`strikecache serve --history` from downloads of Cboe's website.

Bulk snapshots: the columns are those of Theta Data's terminal, which writes CSV for these requests,
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

Downloads: the files that "Download CSV" of www.cboe.com/delayed_quotes gives (quotedata.csv, until 2021 quotedata.dat), or
folders of them, in both layouts since 2020 and with dates in English:

  collector.py --downloads history downloads

Each becomes history/<date>/options/<symbol>.json.gz, under the session that it describes: one made before 09:45 New York or
on a weekend describes the last weekday before. Of several of a session, the last one of its day stays. A download does not
say when an option last traded, so the flow has no rows of it. A file that cannot be used is named and skipped, and the exit
code is 1. `strikecache check history` says what a server makes of the folder, which skips holidays.
"""

import argparse
import csv
import gzip
import json
import math
import os
import re
import sys
import tempfile
from collections import Counter
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

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


COLUMNS = {"bid": "Bid", "ask": "Ask", "iv": "IV", "open_interest": "Open Int", "volume": "Vol", "gamma": "Gamma", "last_trade_price": "Last Sale", "delta": "Delta"}
MADE = (  # "Date: October 1, 2025 at 6:01 PM EDT", "Date: February 5 2022, 8:09 PM EST"; until 2021 "Jun 22 2020 @ 20:42 ET"
    (re.compile(r"Date: (\w{3})\w* (\d+),? (\d{4}),?(?: at)? (\d+:\d\d)\s([AP]M) (?:ET|EDT|EST|GMT-[45])\b"), "%b %d %Y %I:%M %p"),
    (re.compile(r"(\w{3}) (\d+) (\d{4}) @ (\d+:\d\d) ET\b"), "%b %d %Y %H:%M"),
)
OPEN, DELAY = time(9, 30), timedelta(minutes=15)  # New York, and of the quotes


def download(path, symbol):
    """Returns the session, the symbol and the chain document of a download of Cboe's website."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        lines = [[cell.strip() for cell in row] for row in csv.reader(file)]
    top = next((n for n, cells in enumerate(lines) if {"Calls", "Puts", "Strike"} <= set(cells)), None)
    head = [[cell for cell in row if cell] for row in lines[:top]]
    head = [row for row in head if row]
    if top is None or len(head) < 2:
        raise Unusable(f"{path}: is no download of a chain: no line has the columns Calls, Strike and Puts, or no two lines are above it")
    made = next((datetime.strptime(" ".join(found.groups()), form) for pattern, form in MADE if (found := pattern.search(",".join(head[1])))), None)
    if made is None:
        raise Unusable(f"{path}: {','.join(head[1])!r} has no time such as 'Date: October 1, 2025 at 6:01 PM EDT' or 'Jun 22 2020 @ 20:42 ET'")
    named = dict(cell.split(":", 1) for cell in head[0] if ":" in cell)
    summary = Row(path, "of the price", {"Last": named.get("Last", head[0][-2]).replace(",", ""), "Change": named.get("Change", head[0][-1]).replace(",", "")})
    header, options, roots = lines[top], [], Counter()
    for number, cells in enumerate(lines[top + 1:], top + 2):
        for right in ("Calls", "Puts"):
            at = header.index(right)
            if not any(cells):
                continue
            values = {name: value for name, value in zip(header[at:at + 10], cells[at:])}
            row = Row(path, number, {"option": values.get(right, "")} | {key: next((v for n, v in values.items() if n.startswith(name)), "") for key, name in COLUMNS.items()})
            found = re.fullmatch(r"([A-Z]{1,5})\d?\d{6}[CP]\d{8}", row.text("option"))
            if not found:
                raise row.wrong("option", "is no OCC symbol such as SPXW261218C07500000")
            roots[found[1]] += 1
            options.append({"option": row.text("option")} | {key: row.number(key, -1 if key == "delta" else 0) for key in COLUMNS} | {"last_trade_time": None})
    if not options:
        raise Unusable(f"{path}: has no contract")
    root = roots.most_common(1)[0][0]
    symbol = symbol or next((index for index, of in ROOTS.items() if root in of), root)
    traded = made - DELAY
    day = traded.date() - timedelta(days=traded.time() < OPEN)
    session = day - timedelta(days=max(0, day.weekday() - 4))
    early = (session.month, session.day) in ((7, 3), (12, 24)) or session.month == 11 and session.weekday() == 4 and 23 <= session.day <= 29
    close = datetime.combine(session, time(13 if early else 16)) + (DELAY if symbol in ROOTS else timedelta()) - timedelta(seconds=1)
    traded = min(traded, close)
    return symbol, session, made, {
        "timestamp": made.replace(tzinfo=ZoneInfo("America/New_York")).astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        "data": {"symbol": symbol, "current_price": summary.number("Last"), "price_change": summary.number("Change", -math.inf),
                 "last_trade_time": traded.strftime("%Y-%m-%dT%H:%M:%S"), "options": options},
    }


def downloads(folder, paths, symbol):
    """Writes the chains of downloads into a folder for each session. Returns the exit code."""
    files, failed, best = [], 0, {}
    for path in map(Path, paths):
        files += sorted(f for f in path.rglob("*") if f.suffix in (".csv", ".dat")) if path.is_dir() else [path]
    for file in files:
        try:
            of, session, made, document = download(file, symbol)
            path = name_of(Path(folder, str(session)), of, ".json.gz")
            if (made.date() == session, made) < best.get(path, (False, datetime.min)):
                continue
            best[path] = made.date() == session, made
            write(path, document)
            print(f"{path}: {len(document['data']['options'])} contracts")
        except (Unusable, OSError, ValueError, IndexError, csv.Error) as error:  # such as a day that does not exist
            named = isinstance(error, (Unusable, OSError))
            print(f"collector.py: {error}" if named else f"collector.py: {file}: {error}", file=sys.stderr)
            failed += 1
    print(f"{len(files)} files, {failed} skipped, {len(best)} chains in {folder}")
    return 1 if failed or not best else 0


def name_of(folder, symbol, suffix):
    return Path(folder, "options", ("_" if symbol in ROOTS else "") + symbol + suffix)


def write(path, document):
    """Writes a file under another name, and renames it: whoever reads path gets a whole document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    body = json.dumps(document, separators=(",", ":")).encode("ascii")
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(gzip.compress(body, mtime=0) if path.suffix == ".gz" else body)
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
    if not re.fullmatch(r"[A-Z]{1,6}|[A-Z]{1,5}[.][A-Z]", text):
        raise ValueError
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symbol", type=symbol_of, help="the underlying, such as SPX or AAPL; downloads say it but for roots such as BRKB")
    parser.add_argument("--price", type=price_of, help="its price; downloads say it")
    parser.add_argument("--price-at", type=datetime.fromisoformat, metavar="TIME",
                        help="New York time of the price, such as 2026-11-20T15:44:52; default: that of the newest quote")
    parser.add_argument("--made", type=datetime.fromisoformat, metavar="TIME", help="UTC time at which the snapshots were made; default: now")
    parser.add_argument("--downloads", action="store_true", help="the files are downloads of Cboe's website, or folders of them, and the folder that of `strikecache serve --history`")
    parser.add_argument("folder", help="the folder of `strikecache serve --folder`")
    parser.add_argument("csv", nargs="+", help="files of bulk snapshots: quote, open_interest, ohlc and greeks, of every root")
    args = parser.parse_args()
    if args.downloads:
        return downloads(args.folder, args.csv, args.symbol)
    if not (args.symbol and args.price):
        parser.error("bulk snapshots need --symbol and --price")
    for flag, time in (("--price-at", args.price_at), ("--made", args.made)):
        if time and time.tzinfo and (flag == "--price-at" or time.utcoffset()):
            parser.error(f"{flag}: write the time without an offset: {'New York time' if flag == '--price-at' else 'UTC'}")
    path = name_of(args.folder, args.symbol, ".json")
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
