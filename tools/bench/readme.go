package main

import (
	"fmt"
	"os"
	"strings"
)

// readmeHeading begins README's table of sizes.
const readmeHeading = "| capture | plain | zstd -3 | zstd -19 | sheaf | set-up aside |\n|---|---:|---:|---:|---:|---:|\n"

// readmeRows are the rows of README's table.
func readmeRows(all []Size) []string {
	var rows []string
	for i := range all {
		cells := all[i].figures()
		cells[3] = "**" + cells[3] + "**"
		rows = append(rows, fmt.Sprintf("| %s | %s |", all[i].Name, strings.Join(cells, " | ")))
	}
	return rows
}

// splitReadme returns what is before the rows of README's table, those, and what
// is behind them.
func splitReadme(page string) (before string, rows []string, behind string, err error) {
	before, behind, found := strings.Cut(page, readmeHeading)
	if !found {
		return "", nil, "", fmt.Errorf("no table that begins with\n%s", readmeHeading)
	}
	for strings.HasPrefix(behind, "|") {
		row, rest, _ := strings.Cut(behind, "\n")
		rows, behind = append(rows, row), rest
	}
	return before + readmeHeading, rows, behind, nil
}

// writeReadme writes the rows into a file in the place of those that it has.
func writeReadme(name string, all []Size) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, _, behind, err := splitReadme(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(before+strings.Join(readmeRows(all), "\n")+"\n"+behind), 0o644)
}
