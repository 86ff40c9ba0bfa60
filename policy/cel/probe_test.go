package cel_test
import ("testing";"strings";"encoding/json";"github.com/verbgate/verbgate/packs";"github.com/verbgate/verbgate/policy/cel")
func BenchmarkProbe(b *testing.B) {
	big := strings.Repeat("x", 65536)
	nums := make([]any,1000); for i := range nums { nums[i]=json.Number("1") }
	items := make([]any,1000); for i := range items { items[i]=map[string]any{"name":strings.Repeat("y",900),"kind":"entity"} }
	for name, rule := range map[string]string{
		"nested": `params.nums.all(a, params.nums.all(b, a + b == 2))`,
		"size": `size(params.s) > 1`,
		"contains": `!params.s.contains("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxy")`,
		"matchSimple": `params.s.matches("^[a-z0-9_]*$")`,
		"matchAlt": `!params.s.matches("(x+x+)+y")`,
		"matchNFA": `!params.s.matches("(x|xx|xxx|xxxx){20}y")`,
		"matchBig": `!params.s.matches("(x?){100}y")`,
		"items": `params.items.all(i, has(i.kind) && i.kind in ["entity", "note"] && (!has(i.name) || size(i.name) <= 1256))`,
		"deep": `params.items == params.list`,
	} {
		b.Run(name, func(b *testing.B) {
			set := compileWith(b, cel.Config{MaxCost: 1e12}, one(rule))
			in := input(b, `{}`)
			in.Params["s"]=big; in.Params["nums"]=nums; in.Params["items"]=items; in.Params["list"]=append([]any{}, items...)
			b.ReportAllocs()
			for b.Loop() { if err := set.Check(b.Context(), in); err != nil { b.Fatal(err) } }
			_, err := cel.Compile(mans(one(rule)), cel.Config{MaxCost: 1})
			b.Log(err)
		})
	}
}
func mans(c ...packs.Check) []packs.Manifest { return []packs.Manifest{manifest(c...)} }
