//go:build race

package linktest

// raceEnabled: the race detector allocates.
const raceEnabled = true
