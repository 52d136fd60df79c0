//go:build race

package firsthop

// raceEnabled: under the detector a sync.Pool forgets by chance.
const raceEnabled = true
