package coap

// The numbers of the options that are looked at (12.2, RFC 7641).
const (
	optionObserve = 6
	optionURIPath = 11

	maxOption = 65535
)

// Where an option stands.
const (
	inRequest = 1 << iota
	inResponse
)

// An option is what is known of one by its number (5.10).
type option struct {
	name     string
	min, max int // bytes of the value
	where    uint8
	again    bool // may be there more than once
	text     bool
}

var knownOptions = [...]option{
	1:             {"If-Match", 0, 8, inRequest, true, false},
	3:             {"Uri-Host", 1, 255, inRequest, false, true},
	4:             {"ETag", 1, 8, inRequest | inResponse, true, false},
	5:             {"If-None-Match", 0, 0, inRequest, false, false},
	optionObserve: {"Observe", 0, 3, inRequest | inResponse, false, false},
	7:             {"Uri-Port", 0, 2, inRequest, false, false},
	8:             {"Location-Path", 0, 255, inResponse, true, true},
	9:             {"OSCORE", 0, 255, inRequest | inResponse, false, false},
	optionURIPath: {"Uri-Path", 0, 255, inRequest, true, true},
	12:            {"Content-Format", 0, 2, inRequest | inResponse, false, false},
	14:            {"Max-Age", 0, 4, inResponse, false, false},
	15:            {"Uri-Query", 0, 255, inRequest, true, true},
	16:            {"Hop-Limit", 1, 1, inRequest, false, false},
	17:            {"Accept", 0, 2, inRequest, false, false},
	19:            {"Q-Block1", 0, 3, inRequest | inResponse, false, false},
	20:            {"Location-Query", 0, 255, inResponse, true, true},
	23:            {"Block2", 0, 3, inRequest | inResponse, false, false},
	27:            {"Block1", 0, 3, inRequest | inResponse, false, false},
	28:            {"Size2", 0, 4, inRequest | inResponse, false, false},
	31:            {"Q-Block2", 0, 3, inRequest | inResponse, true, false},
	35:            {"Proxy-Uri", 1, 1034, inRequest, false, true},
	39:            {"Proxy-Scheme", 1, 255, inRequest, false, true},
	60:            {"Size1", 0, 4, inRequest | inResponse, false, false},
}
