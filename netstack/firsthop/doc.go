// Package firsthop is the router that virtual machines see behind their NICs.
package firsthop
