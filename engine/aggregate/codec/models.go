package codec

import (
	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// models are the learned probabilities of a frame's decisions. Their zero value
// is untaught. SPEC.md section 6 has the same list.
type models struct {
	record, more, paired  model.Bit
	acked, step, pairs    model.Int
	kinds                 [8][8]model.Bit // by the last kind
	payload               [8]model.Bit    // by kind
	flags                 [2][256]model.Bit
	single                [2]model.Bit
	opened                [2]model.Bit // by whether the group is a singleton
	secrets               model.Bit
	secretsLen            model.Int
	count, extra          [2]model.Int
	source                [2][4]model.Bit
	members               [3]model.Members // by source
	fresh, follows        [2]model.Bit
	reuse                 model.Bit
	reversed, unpaired    model.Bit
	keySame               [48]model.Bit // by byte of the addresses; then the ports, the protocol
	keyBits               [2]model.Bit  // by address
	keyStep               model.Int
	oneSpan               [2]model.Bit // by whether the group is a singleton, as the next
	spans                 model.Int
	templateGuess         [3]model.Bit // and 2 for spans behind the first
	templateNew, based    model.Bit
	exact                 [2]model.Bit // by whether the template's last span was
	depth                 [templateDepth]model.Bit
	literal               [2]model.Bit // by whether the template has a body
	literalLen, hole      model.Int
	holesSame             [2]model.Bit // by whether the template has holes
	body                  model.Body
	layout                [2]model.Column
	layoutNext, layoutNew model.Bit
	layoutSame            model.Bit
	layoutLen             model.Int
	opaque                [2]model.Column
	id, label, seq, ack   [2]model.Column
	window, tsval, tsecr  [2]model.Column
	scattered             [2]model.Column // TSvals compared with the group's first
	sums                  [2]model.Column
	values                [parsers.NumCounters]model.Column // by counter
	ackOther, tsecrOther  [2]model.Column
	shuffled              [2]model.Bit
	zeroID                model.Bit
	sackRight, sackLeft   [2]model.Column // of the first block, of the others
	rightOther, leftOther model.Column
}
