package resp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers/parsertest"
)

// array is an array of strings.
func arrayOf(words ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return s
}

// messages holds messages, their elements, and their spans.
var messages = []struct {
	name, text string
	want       string // NAME: [word] {event} (payload) element ..., with types
	span       string
}{
	{"publish", arrayOf("PUBLISH", "a:b", "hello"), `PUBLISH: *3 [PUBLISH] {a:b} (hello)`, `PUBLISH 0+37 body 30 "a:b"`},
	{"publish in lower case", arrayOf("publish", "a", ""), `PUBLISH: *3 [publish] {a} ()`, `PUBLISH 0+30 body 28 "a"`},
	{"publish in mixed case", arrayOf("Publish", "a", ""), `PUBLISH: *3 [Publish] {a} ()`, `PUBLISH 0+30 body 28 "a"`},
	{"spublish", arrayOf("SPUBLISH", "a", "x"), `SPUBLISH: *3 [SPUBLISH] {a} (x)`, `SPUBLISH 0+32 body 29 "a"`},
	{"xadd", arrayOf("XADD", "race", "*", "k", "v"), `XADD: *5 [XADD] {race} $* $k $v`, `XADD 0+45 body 24 "race"`},
	{"xack", arrayOf("XACK", "race", "g", "1-0"), `XACK: *4 [XACK] {race} $g $1-0`, `XACK 0+40 body 24 "race"`},
	{"xread", arrayOf("XREAD", "BLOCK", "0", "STREAMS", "race", "$"), `XREAD: *6 [XREAD] $BLOCK $0 $STREAMS {race} $$`, `XREAD 0+63 body 56 "race"`},
	{"xreadgroup", arrayOf("XREADGROUP", "GROUP", "g", "me-1", "STREAMS", "race", ">"),
		`XREADGROUP: *7 [XREADGROUP] $GROUP $g $me-1 $STREAMS {race} $>`, "XREADGROUP 0+79 body 72 \"race\" @1=4\r\nme-1"},
	{"subscribe", arrayOf("SUBSCRIBE", "a", "b"), `SUBSCRIBE: *3 [SUBSCRIBE] {a} $b`, `SUBSCRIBE 0+33 body 26 "a"`},
	{"subscribe in lower case", arrayOf("subscribe", "a", "b"), `SUBSCRIBE: *3 [subscribe] {a} $b`, `SUBSCRIBE 0+33 body 26 "a"`},
	{"unsubscribe from all", arrayOf("UNSUBSCRIBE"), `UNSUBSCRIBE: *1 [UNSUBSCRIBE]`, `UNSUBSCRIBE 0+22 body 22 "UNSUBSCRIBE"`},
	{"set", arrayOf("SET", "k", "v"), `COMMAND: *3 [SET] $k $v`, `COMMAND 0+27 body 13 "SET"`},
	{"ping", arrayOf("PING"), `PING: *1 [PING]`, `PING 0+14 body 14`},
	{"hello", arrayOf("HELLO", "3"), `HELLO: *2 [HELLO] $3`, `HELLO 0+22 body 15`},
	{"auth", arrayOf("AUTH", "x"), `AUTH: *2 [AUTH] $x`, `AUTH 0+21 body 14`},
	{"quit", arrayOf("QUIT"), `QUIT: *1 [QUIT]`, `QUIT 0+14 body 14`},
	{"reset", arrayOf("reset"), `RESET: *1 [reset]`, `RESET 0+15 body 15`},
	{"inline auth", "AUTH x\r\n", `AUTH: [AUTH] < x>`, `AUTH 0+8 body 4`},

	{"message", arrayOf("message", "a:b", "hello"), `message: *3 [message] {a:b} (hello)`, `message 0+37 body 30 "a:b"`},
	{"message of CR LF", arrayOf("message", "a", "\r\n"), `message: *3 [message] {a} (` + "\r\n" + `)`, `message 0+32 body 28 "a"`},
	{"message, RESP3", ">" + arrayOf("message", "a", "x")[1:], `message: >3 [message] {a} (x)`, `message 0+31 body 28 "a"`},
	{"smessage", arrayOf("smessage", "a", "x"), `smessage: *3 [smessage] {a} (x)`, `smessage 0+32 body 29 "a"`},
	{"pmessage", arrayOf("pmessage", "a*", "ab", "hi"), `pmessage: *4 [pmessage] $a* {ab} (hi)`, `pmessage 0+42 body 38 "ab"`},
	{"subscribed", "*3\r\n$9\r\nsubscribe\r\n$3\r\nFoo\r\n:17\r\n", `subscribe: *3 [subscribe] {Foo} :17`, `subscribe 0+33 body 28 "Foo" +#0=17`},
	{"subscribed, RESP3", ">3\r\n$10\r\npsubscribe\r\n$3\r\nF*o\r\n:1\r\n", `psubscribe: >3 [psubscribe] {F*o} :1`, `psubscribe 0+34 body 30 "F*o" +#0=1`},
	{"unsubscribed", "*3\r\n$11\r\nunsubscribe\r\n$3\r\nFoo\r\n:0\r\n", `unsubscribe: *3 [unsubscribe] {Foo} :0`, `unsubscribe 0+35 body 31 "Foo" #0=0`},
	{"unsubscribed from nothing", "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n", `unsubscribe: *3 [unsubscribe] null :0`, `unsubscribe 0+31 body 4`},
	{"pong, subscribed", arrayOf("pong", "x"), `+PONG: *2 [pong] $x`, `+PONG 0+21 body 14`},
	{"invalidate", ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n", `push: >2 [invalidate] *1 $a`, `push 0+32 body 21 "invalidate"`},

	{"ok", "+OK\r\n", `+OK: +OK`, `+OK 0+5 body 1`},
	{"pong", "+PONG\r\n", `+PONG: +PONG`, `+PONG 0+7 body 1`},
	{"status", "+RESET\r\n", `Status: +RESET`, `Status 0+8 body 1`},
	{"empty status", "+\r\n", `Status: +`, `Status 0+3 body 1`},
	{"error", "-ERR unknown command\r\n", `Error: -ERR unknown command`, `Error 0+22 body 1`},
	{"long error", "!5\r\nERR x\r\n", `Error: !ERR x`, `Error 0+11 body 4`},
	{"integer", ":100\r\n", `Integer: :100`, `Integer 0+6 body 1`},
	{"negative integer", ":-1\r\n", `Integer: :-1`, `Integer 0+5 body 1`},
	{"bulk", "$5\r\nhello\r\n", `Bulk: $hello`, `Bulk 0+11 body 4`},
	{"empty bulk", "$0\r\n\r\n", `Bulk: $`, `Bulk 0+6 body 4`},
	{"null bulk", "$-1\r\n", `Bulk: null`, `Bulk 0+5 body 1`},
	{"null array", "*-1\r\n", `Array: null`, `Array 0+5 body 5`},
	{"empty array", "*0\r\n", `Array: *0`, `Array 0+4 body 4`},
	{"null", "_\r\n", `Null: _`, `Null 0+3 body 1`},
	{"boolean", "#t\r\n", `Boolean: #t`, `Boolean 0+4 body 1`},
	{"double", ",-1.5e3\r\n", `Double: ,-1.5e3`, `Double 0+9 body 1`},
	{"infinity", ",-inf\r\n", `Double: ,-inf`, `Double 0+7 body 1`},
	{"big number", "(3492890328409238509324850943850943825024385\r\n", `Big number: (3492890328409238509324850943850943825024385`, `Big number 0+46 body 1`},
	{"verbatim", "=6\r\ntxt:ab\r\n", `Verbatim: =txt:ab`, `Verbatim 0+12 body 4`},
	{"set of", "~2\r\n:1\r\n:2\r\n", `Set: ~2 :1 :2`, `Set 0+12 body 4`},
	{"map", "%1\r\n+a\r\n:1\r\n", `Map: %1 +a :1`, `Map 0+12 body 4`},
	{"nested", "*2\r\n*1\r\n*0\r\n:1\r\n", `Array: *2 *1 *0 :1`, `Array 0+16 body 4`},
	{"array of strings", arrayOf("xxx", "xxx"), `Array: *2 $xxx $xxx`, `Array 0+22 body 4`},
	{"array that begins like a command", "*2\r\n$3\r\nget\r\n:1\r\n", `Array: *2 $get :1`, `Array 0+17 body 4`},
	{"attribute", "|1\r\n+ttl\r\n:3600\r\n*1\r\n:3\r\n", `Attribute: |1 +ttl :3600 *1 :3`, `Attribute 0+25 body 4`},
	{"stream", "*1\r\n*2\r\n$4\r\nrace\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n", `Stream: *1 *2 {race} *1 *2 $1-0 *2 $k $v`, `Stream 0+53 body 26 "race"`},
	{"stream, RESP3", "%1\r\n$4\r\nrace\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n", `Stream: %1 {race} *1 *2 $1-0 *2 $k $v`, `Stream 0+49 body 22 "race"`},
	{"range of a stream", "*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n", `Array: *1 *2 $1-0 *2 $k $v`, `Array 0+35 body 4`},

	{"inline publish", "PUBLISH Foo \"Hi there :)\"\r\n", `PUBLISH: [PUBLISH] {Foo} < "Hi there :)">`, `PUBLISH 0+27 body 11 "Foo"`},
	{"inline publish to a quoted channel", "PUBLISH \"a b\" x\n", `PUBLISH: [PUBLISH] {a b} <" x>`, `PUBLISH 0+16 body 12 "a b"`},
	{"inline ping", "PING\r\n", `PING: [PING]`, `PING 0+6 body 4`},
	{"inline set", "set k v\r\n", `COMMAND: [set] < k v>`, `COMMAND 0+9 body 3 "set"`},
	{"empty line", "\r\n", `EMPTY:`, `EMPTY 0+2 body 0`},
}

func show(m Message, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v:", m.Name)
	for _, f := range m.Fields {
		text := string(f.Bytes(b))
		switch f.Kind {
		case FieldWord:
			fmt.Fprintf(&s, " [%s]", text)
		case FieldEvent:
			fmt.Fprintf(&s, " {%s}", text)
		case FieldPayload:
			fmt.Fprintf(&s, " (%s)", text)
		case FieldNull:
			s.WriteString(" null")
		case FieldLine:
			fmt.Fprintf(&s, " <%s>", text)
		default:
			fmt.Fprintf(&s, " %c%s", f.Type, text)
		}
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			if m := parsertest.Parses(t, Parse, show, tt.text, tt.want); m.Length != len(tt.text) {
				t.Errorf("Length %d, want %d", m.Length, len(tt.text))
			}
			parsertest.CutShort(t, Parse, tt.text)
			if tt.span == "" {
				return
			}
			// The spans of two in a row are those of one.
			suite.Shows(t, newScanner(), tt.span+"\n"+tt.span+"\n", tt.text+tt.text)
		})
	}
}

func TestDepth(t *testing.T) {
	m, _, err := Parse([]byte("*2\r\n*1\r\n|1\r\n+a\r\n:1\r\n:2\r\n:3\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, f := range m.Fields {
		got = append(got, f.Depth)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 3, 3, 2, 1}, got); diff != "" {
		t.Error(diff)
	}
	if _, found := m.Field(FieldEvent); found {
		t.Error("an array with a channel")
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       fault
	}{
		{"binary", "\x00", faultCommand},
		{"unknown command", "FAKE COMMAND\r\n", faultCommand},
		{"words that are none", "not RESP\r\n", faultCommand},
		{"word of a hundred letters", strings.Repeat("a", 100), faultCommand},
		{"integer", ":x\r\n", faultNumber},
		{"no integer", ":\r\n", faultNumber},
		{"long integer", ":" + strings.Repeat("1", 50), faultNumber},
		{"boolean", "#x\r\n", faultNumber},
		{"null", "_x\r\n", faultNumber},
		{"length", "$x\r\n", faultNumber},
		{"no length", "$\r\n", faultNumber},
		{"streamed", "$?\r\n", faultNumber},
		{"negative length", "$-2\r\n", faultLength},
		{"null map", "%-1\r\n", faultLength},
		{"huge string", "$536870913\r\n", faultLength},
		{"huge array", "*67108865\r\n", faultLength},
		{"many digits", "*000000000000\r\n", faultNumber},
		{"bare line feed", "$1\nx\r\n", faultNumber},
		{"carriage return alone", "$1\rx", faultLine},
		{"string without an end", "$1\r\nxxx", faultEnd},
		{"string with half an end", "$1\r\nx\rx", faultEnd},
		{"status with a bare line feed", "+OK\n", faultLine},
		{"element", "*1\r\nx", faultType},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse([]byte(tt.text))
			parsertest.Malformed(t, err, faults[tt.want])
		})
	}
}
