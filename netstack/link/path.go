package link

// CheckPath returns what is wrong with the path of a socket that somebody else makes, and
// that is to be dialled: ErrPath, or nil.
func CheckPath(path string) error { return checkPath(path) }
