package dynamicconfig

import "strings"

// nearest returns the candidate that a mistyped word most likely stands for, or
// nothing when none is near: at most a quarter of the letters differ (two at
// least are let pass), or the word is a candidate without what stands before its
// last dots, or it begins one candidate and no other. Letter case does not count;
// among equals the first wins.
func nearest(word string, candidates []string) string {
	lower := strings.ToLower(word)
	limit := max(2, len(word)/4)
	best, found := limit+1, ""
	begun, begins := "", 0
	for _, candidate := range candidates {
		other := strings.ToLower(candidate)
		if strings.HasSuffix(other, "."+lower) {
			return candidate
		}
		if strings.HasPrefix(other, lower) {
			begun = candidate
			begins++
		}
		if d := distance(lower, other, best); d < best && d < len(candidate) {
			best, found = d, candidate
		}
	}
	if found == "" && begins == 1 && len(word) > 2 {
		return begun
	}
	return found
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b; from limit on it may return limit.
//
//	distance("batch", "bacth", 3) = 1, a swap
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, above, twoAbove := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			replaced := above[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(replaced, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoAbove[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least >= limit {
			return limit
		}
	}
	return min(rows[len(a)%3][len(b)], limit)
}

// didYouMean returns `, did you mean "x"?` or nothing.
func didYouMean(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return `, did you mean "` + near + `"?`
	}
	return ""
}
