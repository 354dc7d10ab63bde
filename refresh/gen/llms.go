package main

import (
	"bytes"
	"fmt"
	"strings"
)

// llms returns a file that tells a language model what the server has, in the form of llmstxt.org: a title, a summary as a quote, notes, and
// under a heading for each tag a list of links. The last heading is the one that the form lets a reader skip.
func (p *page) llms() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n> %s\n\n", p.Info.Title, p.Info.Summary)
	out.WriteString("Answers are JSON with `data` and `meta`, delayed and derived; nothing is investment advice. `meta.source` says whose market it is: " +
		"`simulated` is no real one. spx in a path stands for any underlying, in small letters: [underlyings](/api/v1/underlyings) has all. " +
		"An unknown value is `null`. [The methods](/methods.markdown) define every number, [the document](/openapi.json) every field.\n")
	for _, tag := range p.Tags {
		heading := tag.Name
		if heading == "Service" {
			heading = "Optional"
		}
		fmt.Fprintf(&out, "\n## %s\n\n", heading)
		for _, e := range p.Endpoints {
			if e.Get.Tags[0] == tag.Name {
				fmt.Fprintf(&out, "- [%s](%s): %s\n", e.Get.Summary, strings.ReplaceAll(e.Path, "{u}", "spx"), e.Get.Description)
			}
		}
	}
	return out.Bytes()
}
