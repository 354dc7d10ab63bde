package compute

// TwoSidedQuotes returns how many contracts of the chain with T > 0 have a quote that is a price, [Quote.TwoSided].
func TwoSidedQuotes(c *Chain, cal *Calendar) (n int) {
	for _, contracts := range c.unsettled(cal) {
		for i := range contracts {
			if contracts[i].TwoSided() {
				n++
			}
		}
	}
	return n
}
