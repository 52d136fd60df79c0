//go:build !race

package firsthop

const raceEnabled = false
