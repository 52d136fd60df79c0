//go:build race

package firsthop

// raceEnabled: the detector makes wireguard's joining of packets allocate.
const raceEnabled = true
