// Package simulated is a market that emits upstream documents: option chains, quotes, daily histories and futures
// settlement files, byte for byte in the form of the real ones, so that everything runs without a network.
//
// A document is a function of the seed, the calendar and an instant. The market can therefore be asked for any
// past instant, in any order, and two markets with one seed agree. (Bytes are the same on one GOARCH; others may
// fuse multiplications.) Nothing is random: every number is drawn from a tree of hashes at a path such as
// market/date or options/root/expiration/strike (noise.go).
//
// The path of one chain document, with the file that each step is in:
//
//  1. clock.go: the instant becomes a frame. It says when the file was generated (a beat every 15 seconds, none
//     on weekends), which instant its quotes describe (15 minutes before, not past the end of the session), and
//     which session's listing, open interest and previous close are valid by then.
//  2. factors.go: the daily closes of the factors up to that session: the market, which returns to a trend, its
//     volatility (the VIX), which returns to a mean and jumps at times, and a path of each instrument's own. Between
//     two closes runs a bridge, so an intraday path always ends at the official close.
//  3. instruments.go, day.go: market, beta and own path give the price of an instrument during its session.
//  4. chains.go, listing.go: what is listed, as roles that an expiration date can play and bands of strikes.
//  5. table.go, trades.go: what does not change during the session: open interest, the day's volume and the
//     number of trades it is made of, previous closes, older trades, and the bursts of a few contracts.
//  6. surface.go, quoting.go: the volatility surface at the instant, theoretical values, greeks, bid and ask.
//  7. chain.go, quote.go, writer.go: the bytes.
//
// Where it is simpler than the market: dividends and splits do not exist, American options are priced as European
// ones, open interest and older trades do not follow from the trading of the days before, the SPX stands still from 16:00 to 16:15 while
// its clock runs on, and at night nothing but option quotes moves.
package simulated
