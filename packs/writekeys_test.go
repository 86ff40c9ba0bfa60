package packs_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/packs"
)

func TestWriteKeyTuples(t *testing.T) {
	params := []packs.Param{
		{Name: "id", Type: packs.String}, {Name: "uuid", Type: packs.UUID}, {Name: "into", Type: packs.String},
		{Name: "ids", Type: packs.ArrayOf(packs.String)}, {Name: "uuids", Type: packs.ArrayOf(packs.UUID)},
		{Name: "name", Type: packs.String, Default: "main"}, {Name: "home", Type: packs.String, Default: "1B4E28BA-2FA1-4D2B-883F-0016D3CCA427"},
	}
	type args = map[string]any
	tests := []struct {
		name string
		keys []string
		args args
		want []string
	}{
		{"OKNoTemplates", nil, args{"id": "a"}, nil},
		{"OKOne", []string{"record:{id}"}, args{"id": "a"}, []string{`record:"a"`}},
		{"OKTuple", []string{"edge:{id}:{into}"}, args{"id": "a", "into": "b"}, []string{`edge:"a":"b"`}},
		{"OKNoConfusion", []string{"edge:{id}:{into}"}, args{"id": `a":"b`, "into": "c"}, []string{`edge:"a\":\"b":"c"`}},
		{"OKPrintable", []string{"record:{id}"}, args{"id": "\u202e\n"}, []string{`record:"\u202e\n"`}},
		{"OKTextAsItIs", []string{"record:{id}"}, args{"id": "A"}, []string{`record:"A"`}},
		{"OKFullIDLowered", []string{"record:{id}"}, args{"id": "1B4E28BA-2FA1-4D2B-883F-0016D3CCA427"}, []string{`record:"1b4e28ba-2fa1-4d2b-883f-0016d3cca427"`}},
		{"OKFullIDsLoweredInLists", []string{"edge:{into}:{ids}"}, args{"into": "A", "ids": []any{"1B4E28BA-2fa1-4D2B-883F-0016D3CCA427", "1B4E28BA"}},
			[]string{`edge:"A":"1b4e28ba-2fa1-4d2b-883f-0016d3cca427"`, `edge:"A":"1B4E28BA"`}},
		{"OKNoFullIDAsItIs", []string{"record:{id}", "record:{into}"}, args{"id": "1B4E28BA-2FA1-4D2B-883F-0016D3CCA42G", "into": "1B4E28BA2FA14D2B883F0016D3CCA427"},
			[]string{`record:"1B4E28BA-2FA1-4D2B-883F-0016D3CCA42G"`, `record:"1B4E28BA2FA14D2B883F0016D3CCA427"`}},
		{"OKDefaultFullIDLowered", []string{"slot:{home}"}, args{}, []string{`slot:"1b4e28ba-2fa1-4d2b-883f-0016d3cca427"`}},
		{"OKUUIDLowered", []string{"record:{uuid}"}, args{"uuid": "AB"}, []string{`record:"ab"`}},
		{"OKList", []string{"record:{ids}"}, args{"ids": []any{"a", json.Number("1"), nil, "b"}}, []string{`record:"a"`, `record:"b"`}},
		{"OKUUIDList", []string{"record:{uuids}"}, args{"uuids": []any{"AB"}}, []string{`record:"ab"`}},
		{"OKListInTuple", []string{"edge:{id}:{ids}"}, args{"id": "x", "ids": []any{"a", "b"}}, []string{`edge:"x":"a"`, `edge:"x":"b"`}},
		{"OKTwiceIsKept", []string{"record:{id}", "record:{into}"}, args{"id": "a", "into": "a"}, []string{`record:"a"`, `record:"a"`}},
		{"OKDefaultCounts", []string{"slot:{name}"}, args{}, []string{`slot:"main"`}},
		{"OKEmptyString", []string{"record:{id}"}, args{"id": ""}, []string{`record:""`}},
		{"OKAbsentNoKey", []string{"record:{id}"}, args{}, nil},
		{"OKNullNoKey", []string{"slot:{name}"}, args{"name": nil}, nil},
		{"OKNumberNoKey", []string{"record:{id}"}, args{"id": json.Number("1")}, nil},
		{"OKHalfATupleNoKey", []string{"edge:{id}:{into}"}, args{"id": "a"}, nil},
		{"OKListGivenStringNoKey", []string{"record:{ids}"}, args{"ids": "a"}, nil},
		{"OKStringGivenListNoKey", []string{"record:{id}"}, args{"id": []any{"a"}}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := &packs.Verb{Name: "x", Params: params, WriteKeys: tt.keys}
			require.Equal(t, tt.want, v.WriteKeyTuples(tt.args))
		})
	}
}

func TestParsedWriteKeys(t *testing.T) {
	v := &packs.Verb{WriteKeys: []string{"edge:{a}:{b}", "not a template", "record:{id}"}}
	require.Equal(t, []packs.WriteKey{
		{Space: "edge", Params: []string{"a", "b"}}, {Space: "record", Params: []string{"id"}},
	}, v.ParsedWriteKeys())
}

// Two different tuples never share a text, and one spelt in two ways does.
func FuzzWriteKeyTuples(f *testing.F) {
	f.Add("a", "b", "a", "c")
	f.Add(`a":"b`, "c", "a", `b":"c`)
	f.Add("\xff", "", `\xff`, "")
	f.Add("1b4e28ba-2fa1-4d2b-883f-0016d3cca427", "", "1B4E28BA-2FA1-4D2B-883F-0016D3CCA427", "")
	f.Add("1b4e28ba", "", "1B4E28BA", "")
	v := &packs.Verb{
		Params:    []packs.Param{{Name: "a", Type: packs.String}, {Name: "b", Type: packs.String}},
		WriteKeys: []string{"edge:{a}:{b}"},
	}
	f.Fuzz(func(t *testing.T, a1, b1, a2, b2 string) {
		one := v.WriteKeyTuples(map[string]any{"a": a1, "b": b1})
		two := v.WriteKeyTuples(map[string]any{"a": a2, "b": b2})
		require.Equal(t, sameKey(a1, a2) && sameKey(b1, b2), one[0] == two[0])
	})
}

var fullID = regexp.MustCompile(`^(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

func sameKey(a, b string) bool {
	return a == b || fullID.MatchString(a) && fullID.MatchString(b) && strings.EqualFold(a, b)
}
