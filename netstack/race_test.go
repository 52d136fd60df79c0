//go:build race

package netstack

// raceEnabled: the detector makes wireguard's joining of packets allocate.
const raceEnabled = true
