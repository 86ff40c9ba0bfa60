package request_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// Repeats are found whatever the number of names, and however they are written.
func TestRepeatsAreFoundAtEverySize(t *testing.T) {
	for n := 1; n < 150; n++ {
		args := make([]string, n)
		members := make([]string, n)
		for i := range n {
			args[i] = fmt.Sprintf("n%d=%d", i, i)
			members[i] = fmt.Sprintf(`"n%d":%d`, i, i)
		}
		req, err := request.Parse("v(" + strings.Join(args, ",") + ")")
		require.NoError(t, err)
		require.Len(t, req.Ops[0].Args, n)
		v := arg(t, "v(x={"+strings.Join(members, ",")+"})")
		require.Equal(t, n, v.Len())

		for _, again := range []int{0, n / 2, n - 1} {
			repeat := fmt.Sprintf("n%d=0", again)
			e := parseError(t, "[v(a=1), v("+strings.Join(args, ",")+","+repeat+")]")
			require.Equal(t, request.DuplicateArg, e.Kind)
			require.Equal(t, fmt.Sprintf("n%d", again), e.Arg)

			escaped := fmt.Sprintf(`"\u006e%d":-1`, again)
			v = arg(t, "v(x={"+strings.Join(members, ",")+","+escaped+"})")
			require.Equal(t, n, v.Len())
			last := request.Value{}
			for key, member := range v.Members() {
				if key == fmt.Sprintf("n%d", again) {
					last = member
				}
			}
			require.Equal(t, "-1", last.Number().String())
			req, err = request.Parse(`{"tool":"v","args":{` + strings.Join(members, ",") + "," + escaped + "}}")
			require.NoError(t, err)
			require.Len(t, req.Ops[0].Args, n)
			require.Equal(t, "-1", req.Ops[0].Args[n-1].Value.Number().String())
		}
	}
}

// Names that several calls share repeat nothing.
func TestCallsDoNotShareNames(t *testing.T) {
	many := "v(" + manyArgs(60) + ")"
	req, err := request.Parse("[" + many + "," + many + ",v(" + manyArgs(14) + ")," + many + "]")
	require.NoError(t, err)
	require.Len(t, req.Ops, 4)
	require.Len(t, req.Ops[2].Args, 14)
}
